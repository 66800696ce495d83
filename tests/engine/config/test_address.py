"""octo/config/address.py and octo/config/explain.py: every block has an address, and an address finds its block."""

import pytest

from octo.config.address import blocks, find
from octo.errors import UsageError
from octo.testing.harness import config

CONFIG = """
  processors: [ { name: stamp, type: log } ]
  flows:
    - name: main
      process:
        - { type: set-payload, name: shape, settings: { value: body } }
        - type: if
          condition: 'true'
          then: { process: [ { type: log, name: inner } ] }
          else: { process: [ { ref: stamp } ] }
        - type: switch
          name: route
          cases:
            - { when: 'true', name: first, process: [ { type: log } ] }
            - { when: 'true', process: [ { type: log }, { type: log } ] }
      error: [ { type: log, name: last } ]
"""


def test_every_block_has_its_address():
    assert [block.address for _, block in blocks(config(CONFIG))] == [
        "main.shape",
        "main.if",
        "main.if[then].inner",
        "main.if[else].stamp",
        "main.route",
        "main.route[first].log",
        "main.route[1].log",
        "main.route[1].log",
        "main[error].last",
    ]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("main.shape", "main.shape"),
        ("main[process].shape", "main.shape"),
        ("main.set-payload", "main.shape"),
        ("main.if[then].inner", "main.if[then].inner"),
        ("main.if[else].stamp", "main.if[else].stamp"),
        ("main.switch[first].log", "main.route[first].log"),
        ("main.route[0].log", "main.route[first].log"),
        ("main.if[then].log", "main.if[then].inner"),
        ("main[error].last", "main[error].last"),
    ],
)
def test_an_address_finds_its_block_by_name_type_or_ref(address, found):
    assert find(config(CONFIG), address).address == found


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("main", "that is no block address"),
        ("mian.shape", 'no flow named "mian" (flows: main)'),
        ("main[errors].last", 'no chain named "errors" (chains: process, error)'),
        ("main.shpe", 'no block "shpe" in that chain (blocks: shape, if, route)'),
        ("main.if.inner", "block `if` needs a branch here (branches: then, else)"),
        ("main.if[than].inner", 'block `if` has no branch "than" (branches: then, else)'),
        ("main.shape[then].x", 'block `shape` has no branch "then" (branches: none)'),
        ("main.route[1].log", '"log" matches 2 blocks in the same chain (FILE:15, FILE:15)'),
        ("main.if[then]", "that names a branch, not a block"),
        ("main..x", "that is no block address"),
    ],
)
def test_an_address_that_finds_nothing_says_what_exists(address, message):
    loaded = config(CONFIG)
    with pytest.raises(UsageError) as caught:
        find(loaded, address)

    assert str(caught.value).replace(str(loaded.origin.path), "FILE") == message


def test_an_address_without_a_branch_says_how_one_is_written():
    with pytest.raises(UsageError) as caught:
        find(config(CONFIG), "main.if.inner")

    assert caught.value.hint == "write it like `if[then].block`"


@pytest.mark.parametrize(
    ("address", "name", "mark"),
    [
        ("main.dot.ted", "dot.ted", "."),
        ("main.a[0]", "a[0]", "["),
        ("main.one", "one,two", ","),
        ("main.route[th.en].log", "th.en", "."),
        ("a.b.last", "a.b", "."),
    ],
)
def test_a_name_that_no_address_can_hold_is_told(address, name, mark):
    loaded = config("""
      flows:
        - name: main
          process:
            - { type: log, name: dot.ted }
            - { type: log, name: "a[0]" }
            - { type: log, name: "one,two" }
            - { type: switch, name: route, cases: [ { when: 'true', name: th.en, process: [ { type: log } ] } ] }
        - { name: a.b, process: [ { type: log, name: last } ] }
    """)

    with pytest.raises(UsageError) as caught:
        find(loaded, address)

    assert caught.value.message == f"no address can hold the name `{name}`: `{mark}` divides addresses"
    assert caught.value.hint == "give it a name without `.`, `[`, `]`, `,`"


def test_a_name_goes_before_a_type_and_a_type_before_a_ref():
    loaded = config("""
      processors: [ { name: keep, type: log } ]
      flows:
        - name: main
          process:
            - { type: set-payload, name: log, settings: { value: body } }
            - { ref: keep, name: kept }
    """)

    assert find(loaded, "main.log").address == "main.log"
    assert find(loaded, "main.log").type == "set-payload"
    assert find(loaded, "main.keep").address == "main.kept"


def test_a_block_with_a_name_does_not_give_way_to_one_of_its_type_without():
    loaded = config("""
      flows:
        - name: main
          process: [ { type: log, name: first }, { type: log } ]
    """)

    file = str(loaded.origin.path)
    with pytest.raises(UsageError) as caught:
        find(loaded, "main.log")
    assert caught.value.message == f'"log" matches 2 blocks in the same chain ({file}:4, {file}:4)'
