"""octo/config/explain.py: what a block came out as."""

from __future__ import annotations

from pathlib import Path

import pytest

import octo
from octo.config.explain import explain
from octo.errors import UsageError

CONFIG = """\
env:
  - { name: CITY, default: Oslo }
processors:
  - name: stamp
    type: set-variable
    settings: { name: stage, value: '"start"' }
flows:
  - name: hail
    process:
      - ref: stamp
        settings: { value: '"${CITY}"' }
      - type: if
        condition: 'true'
        then:
          process:
            - type: log
              name: tell
              message: 'body'
            - ref: stamp
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> octo.Config:
    monkeypatch.chdir(tmp_path)
    Path("app.yaml").write_text(CONFIG, encoding="utf-8")
    return octo.load("app.yaml", environ={})


def test_each_setting_says_where_it_is_written(config: octo.Config) -> None:
    assert explain(config, "hail.stamp") == {
        "address": "hail.stamp",
        "type": "set-variable",
        "label": "set-variable",
        "from": "app.yaml:10:9",
        "settings": {
            "name": {"value": "stage", "from": "app.yaml:6:23"},
            "value": {"value": '"Oslo"', "from": "app.yaml:11:28"},
        },
    }


def test_defaults_are_filled_in_and_called_so_unless_they_are_empty(config: octo.Config) -> None:
    assert explain(config, "hail.if[then].tell")["settings"] == {
        "message": {"value": "body", "from": "app.yaml:18:24"},
        "level": {"value": "info", "from": "default"},
        "full": {"value": False, "from": "default"},
    }


def test_inner_blocks_are_shown_as_they_would_be_written(config: octo.Config) -> None:
    assert explain(config, "hail.if")["settings"]["then"]["value"] == {
        "process": [
            {"type": "log", "label": "tell", "settings": {"message": "body", "level": "info", "full": False}},
            {"type": "set-variable", "settings": {"name": "stage", "value": '"start"'}},
        ]
    }


@pytest.mark.parametrize(
    ("address", "error", "hint"),
    [
        ("hail.stmp", '`hail.stmp`: no block "stmp" in that chain (blocks: stamp, if)', "did you mean `stamp`?"),
        ("x.stamp", '`x.stamp`: no flow named "x" (flows: hail)', "`octo graph` draws the blocks of a config"),
        (
            "hail",
            "`hail`: that is no block address",
            "write `flow.block`, or `flow.block[branch].block` for an inner block",
        ),
    ],
    ids=["no such block", "no such flow", "no address"],
)
def test_a_wrong_address_is_repeated_with_what_exists(
    config: octo.Config, address: str, error: str, hint: str | None
) -> None:
    with pytest.raises(UsageError) as caught:
        explain(config, address)

    assert (caught.value.message, caught.value.hint) == (error, hint)
