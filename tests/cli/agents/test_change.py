"""octo_cli/agents/change.py, octo_cli/agents/editing.py: deploy, draft and restore."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from desks import FIRST, SECOND, answer, deploy, failure


def test_a_draft_is_written_in_an_editor(agents: Any, tmp_path: Path) -> None:
    deploy(agents, "one")
    editor = tmp_path / "ed.py"
    editor.write_text(
        "import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('kind', 'bold'))\n",
        encoding="utf-8",
    )
    environ = {"EDITOR": f"{sys.executable} {editor}"}

    assert answer(agents("draft greet --edit", environ=environ)) == {"name": "greet", "base": 1, "changed": True}
    assert answer(agents("draft greet"))["value"]["prompt"] == "Be bold."
    assert answer(agents("draft greet --edit", environ=environ)) == {"name": "greet", "changed": False}


def test_what_cannot_be_read_from_the_editor_is_kept(agents: Any, tmp_path: Path) -> None:
    deploy(agents, "one")
    editor = tmp_path / "ed.py"
    editor.write_text("import sys\nopen(sys.argv[1], 'w').write('promt: x')\n", encoding="utf-8")
    outcome = agents("draft greet --edit", terminal="err", environ={"EDITOR": f"{sys.executable} {editor}"})
    kept = outcome.stderr.partition("what you wrote is kept in ")[2].partition(":")[0]

    assert Path(kept).read_text(encoding="utf-8") == "promt: x"
    Path(kept).unlink()
    assert 'unknown field "promt" in agent `greet`' in outcome.stderr
    assert outcome.status == 2


@pytest.mark.parametrize(
    ("environ", "error"),
    [
        ({}, ("no editor is known", "say which in `EDITOR`, or use `--file` or `--set`", 2)),
        ({"EDITOR": "/no/such"}, ("cannot run `/no/such`: no such file or directory", "", 2)),
        ({"VISUAL": "false"}, ("`false` ended with status 1, and nothing was changed", "", 2)),
    ],
    ids=["none", "not there", "failed"],
)
def test_an_editor_that_is_not_there_changes_nothing(agents: Any, environ: Any, error: Any) -> None:
    assert failure(agents("draft new --edit", terminal="err", environ=environ)) == error
    assert answer(agents("list"))["agents"] == []


def test_a_draft_is_discarded(agents: Any) -> None:
    agents("draft greet --file one.agent.yaml")

    assert answer(agents("draft greet --discard")) == {"name": "greet", "discarded": True}
    assert agents("draft greet").status == 2


def test_the_linked_agents_of_a_config_are_deployed_together(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    agents("draft desk --set prompt=mine")
    agents("draft unlinked --file one.agent.yaml")

    assert answer(agents("deploy --config app.yaml --yes")) == {
        "deployed": [{"name": "desk", "version": 2, "changed": True}]
    }
    assert answer(agents("draft unlinked"))["base"] is None


def test_nothing_is_deployed_together_without_somebody_to_ask(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    agents("draft desk --set prompt=mine")
    outcome = agents("deploy --config app.yaml", terminal="err")

    assert failure(outcome) == (
        "deploy the draft of `desk` (from v1), which main.answer links: nobody is there to be asked",
        "`--yes` does it without asking",
        2,
    )
    assert answer(agents("draft desk"))["base"] == 1


def test_some_of_the_linked_agents_are_deployed_by_name(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    agents("draft desk --set prompt=mine")

    assert failure(agents("deploy --config app.yaml --only dask", terminal="err")) == (
        'agent "dask" not found',
        "did you mean `desk`?",
        2,
    )
    assert answer(agents("deploy --config app.yaml --only desk"))["deployed"][0]["version"] == 2


def test_a_draft_is_not_deployed_over_what_came_after_its_base(agents: Any) -> None:
    deploy(agents, "one")
    agents("draft greet --set model=m2")
    deploy(agents, "two")

    assert failure(agents("deploy greet", terminal="err")) == (
        'agent "greet": the draft was begun from v1, and v2 is deployed; deployed since: `prompt`, `temperature`; '
        "changed in the draft: `model`; in both: nothing",
        "`octo agents diff greet current draft` shows what would change; `--force` deploys the draft as it is",
        2,
    )
    assert answer(agents("deploy greet --force")) == {"name": "greet", "version": 3, "changed": True}


def test_a_literal_secret_is_told_and_refused_when_that_is_wanted(agents: Any) -> None:
    Path("s.agent.yaml").write_text("connector: llm\nprompt: sk-abcdefghij0123456789\n", encoding="utf-8")
    told = agents("deploy greet --file s.agent.yaml --strict")
    assert told.status == 2
    assert 'error="s.agent.yaml:2:9: this looks like a secret, and agents are kept with all their' in told.stderr
    assert "sk-abc" not in told.stderr
    assert "sk-abc" not in agents("deploy greet --file s.agent.yaml --strict", terminal="err").stderr
    assert answer(agents("list"))["agents"] == []

    told = agents("deploy greet --file s.agent.yaml")
    assert told.status == 0
    assert 'level=WARN msg="this looks like a secret' in told.stderr


def test_a_restore_tells_what_the_old_version_refers_to_and_is_gone(agents: Any) -> None:
    Path("old.agent.yaml").write_text("connector: gone\nprompt: ${CITY}\n", encoding="utf-8")
    deploy(agents, "old", "one")
    outcome = agents("restore greet 1 --yes --config app.yaml")

    assert json.loads(outcome.stdout) == {
        "name": "greet",
        "restored": 1,
        "version": 3,
        "missing": [{"kind": "connector", "name": "gone"}, {"kind": "variable", "name": "CITY"}],
    }
    assert outcome.stderr == (
        'level=WARN msg="connector `gone`, which v1 refers to, is not there"\n'
        'level=WARN msg="variable `CITY`, which v1 refers to, is not there"\n'
    )
    assert outcome.status == 0


def test_a_file_of_another_agent_is_not_taken(agents: Any) -> None:
    Path("one.agent.yaml").write_text(f"name: other\n{FIRST}", encoding="utf-8")

    for line in ("deploy greet --file one.agent.yaml", "draft greet --file one.agent.yaml"):
        assert failure(agents(line, terminal="err")) == (
            'one.agent.yaml:1:7: this is agent "other", not "greet"\n    1 | name: other\n      |       ^',
            "write `name: greet`, or leave it out",
            2,
        )
    assert answer(agents("list")) == {"agents": []}


def test_a_value_is_read_from_standard_input(agents: Any) -> None:
    assert answer(agents("deploy greet --file -", stdin=FIRST)) == {"name": "greet", "version": 1, "changed": True}
    assert answer(agents("draft greet --file -", stdin=SECOND)) == {"name": "greet", "base": 1, "changed": True}
    assert answer(agents("deploy greet")) == {"name": "greet", "version": 2, "changed": True}
    assert failure(agents("deploy greet --file -", stdin="connector: llm", terminal="err")) == (
        "standard input:1:1: ai-agent requires a prompt",
        "add `prompt:`",
        2,
    )


def test_a_note_that_looks_like_a_key_is_told_and_refused_when_that_is_wanted(agents: Any) -> None:
    line = f"deploy greet --file one.agent.yaml --note {'sk-' + 'a' * 30}"
    told = "`--note` looks like a secret, and notes are kept with their versions\nhint: say why, without the key\n"

    assert agents(f"{line} --strict", terminal="err")[1:] == (f"error: {told}", 2)
    assert answer(agents("list")) == {"agents": []}
    assert agents(line, terminal="err")[1:] == (f"warning: {told}", 0)
