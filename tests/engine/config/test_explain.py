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
        "name": "set-variable",
        "from": "app.yaml:10:9",
        "settings": {
            "name": {"value": "stage", "from": "app.yaml:6:23"},
            "value": {"value": '"Oslo"', "from": "app.yaml:11:28"},
        },
    }


def test_defaults_are_filled_in_and_called_so(config: octo.Config) -> None:
    assert explain(config, "hail.if[then].tell")["settings"] == {
        "message": {"value": "body", "from": "app.yaml:18:24"},
        "level": {"value": "info", "from": "default"},
        "logger": {"value": None, "from": "default"},
        "full": {"value": False, "from": "default"},
    }


def test_inner_blocks_are_shown_with_their_settings(config: octo.Config) -> None:
    assert explain(config, "hail.if")["settings"]["then"]["value"] == {
        "process": [{"type": "log", "name": "tell", "message": "body", "level": "info", "full": False}]
    }


def test_a_wrong_address_says_what_exists(config: octo.Config) -> None:
    with pytest.raises(UsageError, match=r'^no block "stmp" in that chain \(blocks: stamp, if\)$'):
        explain(config, "hail.stmp")
