"""octo/layout/upgrade.py: older spellings of what agents remember, written as they are today."""

from textwrap import dedent, indent

import pytest

from octo.config import document
from octo.errors import ConfigError
from octo.layout.lay_out import lay_out
from octo.layout.upgrade import upgrade

ID = "0c3f4b5e-0000-4000-8000-00000000000a"


def block(keys):
    """A config with one agent that has some keys."""
    head = "flows:\n  - name: f\n    process:\n      - type: ai-agent\n        name: ag\n"
    return head + indent(dedent(keys).strip("\n") + "\n", " " * 8)


def upgraded(text, baked_id=""):
    """The text upgraded and laid out."""
    return lay_out(upgrade(text.encode(), "app.yaml", baked_id), "app.yaml").decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "memory:\n  kind: auto # the last ones\n  contextLength: 5",
            "memory:\n  kind: window # the last ones\n  contextLength: 5",
            id="auto with a count",
        ),
        pytest.param(
            "memory: {kind: auto, context_length: 5, memoryId: ' '}",
            "memory:\n  kind: window\n  context_length: 5",
            id="auto with a blank id",
        ),
        pytest.param("memory: {kind: auto}\nmodel: x", "memory:\n  kind: off\nmodel: x", id="auto without a count"),
        pytest.param(
            f"memory: {{kind: auto, contextLength: 0, memoryId: {ID}}}", "memory:\n  kind: off", id="auto with 0"
        ),
        pytest.param(
            "memory: {kind: auto, contextLength: 5}\nmemoryId: body.a\nmodel: x",
            "memory:\n  kind: window\n  contextLength: 5\nmodel: x",
            id="an id that was not read",
        ),
        pytest.param(
            "messagesContextLength: 7 # some\nmodel: x",
            "memory: # some\n  kind: window\n  contextLength: 7\nmodel: x",
            id="the oldest spelling",
        ),
        pytest.param("messages_context_length: 0\nmodel: x", "model: x", id="the oldest spelling with 0"),
        pytest.param(
            "messagesContextLength: 7\nmemory: {kind: off}",
            "memory:\n  kind: off",
            id="the oldest that was ignored",
        ),
        pytest.param(
            """
            memory:
              kind: manual
              messages:
                # who we are
                - role: system
                  content: |
                    Be brief.
                - { role: user, content: Hi }
            previousMessages: body.h
            model: x
            """,
            """
            memory:
              kind: off
            model: x
            previousMessages:
              value:
                # who we are
                - role: system
                  content: |
                    Be brief.
                - role: user
                  content: Hi
            """,
            id="manual",
        ),
        pytest.param(
            "memory: {kind: manual}", "memory:\n  kind: off\npreviousMessages:\n  value: []", id="manual without any"
        ),
    ],
)
def test_older_spellings_become_those_of_today(before, after):
    assert upgraded(block(before)) == block(after)


@pytest.mark.parametrize(
    ("baked_id", "after"),
    [
        ("memory-id", f"memory:\n  kind: window\n  contextLength: 5\nmemoryId:\n  value: {ID} # of all"),
        ("run", "memory:\n  kind: window\n  contextLength: 5"),
    ],
)
def test_an_id_in_memory_goes_where_one_says(baked_id, after):
    comment = " # of all" if baked_id == "memory-id" else ""
    before = f"memory:\n  kind: auto\n  contextLength: 5\n  memoryId: {ID}{comment}"

    assert upgraded(block(before), baked_id) == block(after)


def test_an_id_of_which_nobody_says_what_becomes_of_it_is_a_problem():
    with pytest.raises(ConfigError) as caught:
        upgraded(block(f"memory: {{kind: auto, contextLength: 5, memoryId: {ID}}}"))

    (problem,) = caught.value.problems
    assert (str(problem), problem.hint) == (
        f"app.yaml:6:58: `memory` has an id of its own, `{ID}`",
        "`--keep-as-memory-id` keeps it for every run, `--use-run-memory-id` leaves it to the runs",
    )


def test_processors_and_blocks_that_refer_to_them_are_upgraded():
    text = """\
processors:
  - name: desk
    type: ai-agent
    settings:
      memory: {kind: auto, contextLength: 5}
flows:
  - name: f
    process:
      - ref: desk
        name: a
        messagesContextLength: 2
      - type: if
        then:
          process:
            - type: ai-agent
              memory: {kind: auto}
      - type: log
        memory: {kind: auto}
"""

    data = document.parse(upgraded(text), "").data
    first, branch, other = data["flows"][0]["process"]
    assert data["processors"][0]["settings"]["memory"] == {"kind": "window", "contextLength": 5}
    assert first["memory"] == {"kind": "window", "contextLength": 2}
    assert branch["then"]["process"][0]["memory"] == {"kind": "off"}
    assert other["memory"] == {"kind": "auto"}


@pytest.mark.parametrize("inputs", ["", ", inputs: {memoryId: {value: x}, enabledTools: {value: []}}"])
def test_what_a_nested_agent_remembers_is_bound_by_its_tool(inputs):
    memory = f"{{kind: auto, contextLength: 5, memoryId: {ID}}}"
    text = block(f"tools:\n  - {{name: t, agent: {{prompt: x, memory: {memory}}}{inputs}}}")

    tool = document.parse(upgraded(text, "memory-id"), "").data["flows"][0]["process"][0]["tools"][0]
    assert tool["agent"]["memory"] == {"kind": "window", "contextLength": 5}
    assert tool["inputs"] == ({"enabledTools": {"value": []}} if inputs else {}) | {"memoryId": {"value": ID}}


AGENT = "connector: m\nprompt: x\n"
NESTED = "tools:\n  - name: t\n    agent:\n      prompt: x\n      messagesContextLength: 2\n"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.agent.yaml", "{}"),
        ("app.yaml", "agents:\n  - name: a\n{}"),
        ("app.yaml", "agents:\n  a:\n{}"),
    ],
    ids=["a file", "a list", "a mapping"],
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("messagesContextLength: 7\n", {"memory": {"kind": "window", "contextLength": 7}}),
        (
            f"memory: {{kind: auto, contextLength: 5, memoryId: {ID}}}\n",
            {"memory": {"kind": "window", "contextLength": 5}},
        ),
        ("memory: {kind: auto}\n", {"memory": {"kind": "off"}}),
        ("memory: {kind: manual}\n", {"memory": {"kind": "off"}}),
        (
            NESTED,
            {"tools": [{"name": "t", "agent": {"prompt": "x", "memory": {"kind": "window", "contextLength": 2}}}]},
        ),
    ],
    ids=["the oldest spelling", "an id", "off", "manual without any", "nested"],
)
def test_agents_with_a_name_are_upgraded(file, text, before, after):
    agent = AGENT + before
    whole = text.format(indent(agent, "    ") if "agents" in text else agent)

    data = document.parse(upgrade(whole.encode(), file, "run").decode(), "").data

    if file == "app.yaml":
        data = data["agents"][0] if isinstance(data["agents"], list) else data["agents"]["a"]
    assert {key: item for key, item in data.items() if key not in ("name", "connector", "prompt")} == after


@pytest.mark.parametrize(
    ("memory", "problem"),
    [
        (
            f"{{kind: auto, contextLength: 5, memoryId: {ID}}}",
            (
                "a.agent.yaml:1:40: `memoryId` belongs to the blocks that link the agent",
                f"write `memoryId: {{value: {ID}}}` into each of them, and take it out here",
            ),
        ),
        (
            "{kind: manual, messages: [{role: user, content: x}]}",
            (
                "a.agent.yaml:1:24: `messages` belongs to the blocks that link the agent",
                "write `previousMessages: {value: [...]}` into each of them, and take it out here",
            ),
        ),
    ],
    ids=["an id", "messages"],
)
def test_what_blocks_say_of_an_agent_with_a_name_is_for_them_to_say(memory, problem):
    with pytest.raises(ConfigError) as caught:
        upgrade(f"memory: {memory}\n{AGENT}".encode(), "a.agent.yaml", "memory-id")

    assert [(str(one), one.hint) for one in caught.value.problems] == [problem]


def test_a_memory_that_is_an_alias_is_a_problem():
    text = "x-memory: &m {kind: auto, contextLength: 5}\n" + block("memory: *m")

    with pytest.raises(ConfigError) as caught:
        upgraded(text)

    (problem,) = caught.value.problems
    assert (str(problem), problem.hint) == (
        "app.yaml:7:9: `memory` is an alias",
        "write the mapping in its place, or upgrade it by hand",
    )


def test_a_comment_is_never_lost():
    with pytest.raises(ConfigError) as caught:
        upgraded(block("messagesContextLength: 0 # none\nmodel: x"))

    assert [(str(problem), problem.hint) for problem in caught.value.problems] == [
        (
            "app.yaml:1:1: cannot be upgraded without losing a comment or changing something else",
            "it has been left as it is",
        )
    ]


@pytest.mark.parametrize("text", ["", "[]", "# only a comment\n", block("memory: {kind: window, contextLength: 5}")])
def test_a_file_without_older_spellings_stays_as_it_is(text):
    assert upgrade(text.encode(), "app.yaml") == text.encode()


def test_what_is_upgraded_stays_so():
    once = upgraded(block("messagesContextLength: 7"))

    assert upgraded(once) == once
