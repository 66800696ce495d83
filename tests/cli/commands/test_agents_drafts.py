"""octo_cli/recording.py, octo/runlog/keeper.py: what the record of a run keeps of a draft that an agent worked as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

APP = """\
connectors:
  - {name: llm, type: llm-scripted, settings: {turns: [{text: '"hi"'}]}}
agents:
  desk: {connector: llm, prompt: Be kind.}
flows:
  - name: main
    process:
      - {type: ai-agent, name: answer, agent: desk, input: '"hello"'}
"""
ANN = {"OCTO_USER": "ann"}


def recorded(octo: Any, *options: str) -> dict[str, Any]:
    """The agent of the last run."""
    ran = octo("invoke", "--config", "app.yaml", "--flow", "main", *options, environ=ANN)
    assert ran.status == 0, ran.stderr
    (run, *_) = json.loads(octo("runs", "list").stdout)["runs"]
    (agent,) = run["agents"]
    assert isinstance(agent, dict)
    return agent


@pytest.fixture(autouse=True)
def drafted(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(APP, encoding="utf-8")
    assert recorded(octo)["source"] == "deployed"
    assert octo("agents", "draft", "desk", "--set", "prompt=Be ${BOLD}", environ=ANN).status == 0
    (tmp_path / "app.yaml").write_text("env: [{name: BOLD, default: bold}]\n" + APP, encoding="utf-8")


def test_the_draft_is_kept_with_references_as_they_are_written(octo: Any) -> None:
    agent = recorded(octo, "--drafts")

    assert (agent["name"], agent["source"], agent["version"]) == ("desk", "draft", 1)
    assert agent["value"] == {"connector": "llm", "prompt": "Be ${BOLD}"}


def test_only_its_hash_is_kept_on_request(octo: Any) -> None:
    agent = recorded(octo, "--drafts", "--no-record-values")

    assert "value" not in agent
    assert len(agent["hash"]) == 32


def test_what_is_deployed_is_in_the_history_and_not_kept_again(octo: Any) -> None:
    assert "value" not in recorded(octo)
