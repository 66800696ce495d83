"""octo_cli/agents/keep.py: clear-history, rename and delete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desks import APP, answer, deploy


@pytest.mark.parametrize("verb", ["restore greet 1", "clear-history greet", "delete greet"])
def test_what_cannot_be_undone_is_asked_for(agents: Any, verb: str) -> None:
    deploy(agents, "one", "two")
    outcome = agents(verb, terminal="err")

    assert outcome.stderr.endswith(": nobody is there to be asked\nhint: `--yes` does it without asking\n")
    assert outcome.status == 2
    assert len(answer(agents("history greet"))["versions"]) == 2


def test_clearing_and_deleting_are_told_in_the_log(agents: Any) -> None:
    deploy(agents, "one", "two")

    assert agents("clear-history greet --yes").stderr == (
        'level=INFO msg="agent_event" action=clear agent=greet versions=1 user=ann\n'
    )
    assert agents("delete greet --yes").stderr == (
        'level=INFO msg="agent_event" action=delete agent=greet versions=1 user=ann\n'
    )


def test_clearing_names_drafts_that_stay(agents: Any) -> None:
    deploy(agents, "one", "two")
    agents("draft greet --set prompt=mine")

    assert agents("clear-history greet --yes", terminal="out err").stdout == (
        "removed 1 version of greet, v2 stays; 1 draft of it may still hold what they held\n"
    )


def test_a_new_name_is_told_to_those_who_use_the_old_one(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")

    assert agents("rename desk help --config app.yaml", terminal="out").stdout == (
        "renamed desk to help\n"
        "main.answer links desk\n"
        "app.yaml declares desk: rename it there, too, or it comes back with the next load\n"
    )


def test_configs_that_ran_an_agent_are_named_when_it_gets_another_name(agents: Any, octo: Any) -> None:
    ran = octo("invoke", "--config", "app.yaml", "--flow", "main", "--data", '{"q": "hello"}')
    assert ran.status == 0, ran.stderr

    assert answer(agents("rename desk help")) == {
        "name": "help",
        "was": "desk",
        "linkedBy": [],
        "usedBy": [],
        "configs": [str(Path.cwd() / "app.yaml")],
        "source": str(Path.cwd() / "app.yaml"),
    }


def test_a_declared_agent_comes_back_after_it_was_deleted(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    outcome = agents("delete desk --yes", terminal="err")
    assert outcome.stderr == "warning: `app.yaml` declares desk: it comes back with the next load\n"

    octo("invoke", "--config", "app.yaml", "--flow", "find")
    assert [one["version"] for one in answer(agents("list"))["agents"]] == [2]
    assert "versions before v2 were trimmed, cleared or deleted\n" in agents("history desk", terminal="out").stdout


def test_an_agent_that_was_renamed_has_no_file_and_goes_without_a_warning(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    outcome = agents("rename desk bureau", terminal="out")
    assert outcome.stdout.splitlines()[-1] == (
        "app.yaml declares desk: rename it there, too, or it comes back with the next load"
    )

    listed = {one["name"]: one for one in answer(agents("list"))["agents"]}
    assert (listed["bureau"]["source"], listed["bureau"]["drift"]) == (None, False)
    assert agents("delete bureau --yes", terminal="err").stderr == ""


def test_agents_that_have_one_as_a_tool_are_told_when_it_gets_another_name_or_goes(agents: Any) -> None:
    deploy(agents, "one")
    boss = "connector: llm\nprompt: p\ntools: [{name: ask, agent: 'greet@1'}]\n"
    Path("boss.agent.yaml").write_text(boss, encoding="utf-8")
    deploy(agents, "boss", name="boss")
    agents("draft chief --file boss.agent.yaml")

    assert agents("rename greet hello", terminal="out").stdout == (
        "renamed greet to hello\nagent boss has greet as a tool\nagent chief has greet as a tool\n"
    )
    deploy(agents, "one")
    gone = agents("delete greet --yes", terminal="err")
    assert gone.stderr == (
        "warning: agent boss has greet as a tool, which fails from now on\n"
        "warning: agent chief has greet as a tool, which fails from now on\n"
    )
    assert json.loads(gone.stdout)["usedBy"] == ["boss", "chief"]


def test_declared_agents_that_have_one_as_a_tool_are_told_when_it_gets_another_name(agents: Any) -> None:
    deploy(agents, "one")
    more = "  boss: {connector: llm, prompt: p, tools: [{name: ask, agent: greet}]}\nflows:"
    Path("app.yaml").write_text(APP.replace("flows:", more), encoding="utf-8")

    assert answer(agents("rename greet hello --config app.yaml"))["usedBy"] == ["boss"]
