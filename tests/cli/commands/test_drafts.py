"""octo_cli/options.py, octo_cli/serving.py: drafts of agents count with --drafts only."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from octo.agent import versions
from octo.agent.versions import Change
from octo.store.store import Store
from octo_cli.serving import Admin, Program
from octo_cli.session import Session

CONFIG = """\
connectors:
  - {name: old, type: llm-scripted, settings: {turns: [{text: deployed}]}}
  - {name: new, type: llm-scripted, settings: {turns: [{text: draft}]}}
agents:
  - {name: triage, connector: old, prompt: Sort.}
flows:
  - {name: f, process: [{type: ai-agent, name: sort, agent: triage}]}
"""
ME = {"OCTO_USER": "ann"}


@pytest.fixture
def drafted(octo: Any, tmp_path: Path) -> Path:
    """A config whose agent is deployed and has a draft."""
    (tmp_path / "a.yaml").write_text(CONFIG, encoding="utf-8")
    octo("invoke", "--config", "a.yaml", "--flow", "f")

    async def draft() -> None:
        with Store(tmp_path / ".octo") as store:
            await versions.put_draft(store, "triage", {"connector": "new", "prompt": "Sort."}, Change("ann", 0))

    asyncio.run(draft())
    return tmp_path / "a.yaml"


@pytest.mark.usefixtures("drafted")
def test_a_draft_counts_when_it_is_asked_for_and_the_log_says_so(octo: Any) -> None:
    call = ("invoke", "--config", "a.yaml", "--flow", "f")
    plain, with_drafts = octo(*call, environ=ME), octo(*call, "--drafts", environ=ME)

    assert (json.loads(plain.stdout)["body"], plain.stderr) == ("deployed", "")
    assert json.loads(with_drafts.stdout)["body"] == "draft"
    assert 'level=INFO msg="a draft of an agent is used" agent=triage base=v1 block=f.sort\n' in with_drafts.stderr


@pytest.mark.usefixtures("drafted")
def test_drafts_of_others_do_not_count(octo: Any) -> None:
    found = octo("invoke", "--config", "a.yaml", "--flow", "f", "--drafts", environ={"OCTO_USER": "bob"})

    assert json.loads(found.stdout)["body"] == "deployed"


@pytest.mark.parametrize(
    ("drafts", "told"),
    [
        pytest.param(False, True, id="drafts are not used"),
        pytest.param(True, False, id="drafts are used"),
    ],
)
def test_a_service_says_which_drafts_it_does_not_use(drafted: Path, capsys: Any, drafts: bool, told: bool) -> None:
    line = 'level=INFO msg="an agent has a draft, which is not used" agent=triage base=v1\n'

    async def serve() -> None:
        with Store(drafted.parent / ".octo") as store:
            program = Program(Session(ME), drafted, store, Admin("", False, ""), watch=False, drafts=drafts)
            serving = asyncio.create_task(program.run())
            await asyncio.sleep(0.5)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(serve())
    assert (line in capsys.readouterr().err) is told
