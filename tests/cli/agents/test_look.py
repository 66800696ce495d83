"""octo_cli/agents/look.py, octo_cli/agents/words.py, octo_cli/table.py: what there is, and what has changed."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from desks import APP, FIRST, SECOND, answer, deploy, failure
from octo.agent import versions
from octo.agent.versions import Change
from octo.store.store import Store


def test_the_list_tells_where_agents_come_from_and_who_links_them(agents: Any, octo: Any) -> None:
    assert octo("invoke", "--config", "app.yaml", "--flow", "find", environ={"OCTO_USER": "ann"}).status == 0
    deploy(agents, "one", name="desk")
    deploy(agents, "one")

    assert agents("list --config app.yaml", terminal="out").stdout == (
        "NAME   VERSION  MODEL  TOOLS  SOURCE    DRIFT  UPDATED       LINKED BY\n"
        "desk   v2       llm        0  app.yaml  drift  0 s ago, ann  main.answer\n"
        "greet  v1       llm        0                   0 s ago, ann\n"
    )


def test_the_list_for_programs_has_the_same_keys_for_all_agents(agents: Any) -> None:
    deploy(agents, "one")
    agents("draft other --file two.agent.yaml")
    found = answer(agents("list --config app.yaml --json"))["agents"]

    assert [(one["name"], one["version"], one["draft"], one["drift"]) for one in found] == [
        ("desk", None, None, False),
        ("greet", 1, None, False),
        ("other", None, {"base": None}, False),
    ]
    keys = "name version hash draft connector model tools description source drift updated by linkedBy"
    assert [list(one) for one in found] == [keys.split()] * 3


def test_an_agent_that_no_run_has_stored_yet_is_told_with_its_config(agents: Any) -> None:
    assert agents("list --config app.yaml", terminal="out").stdout == (
        "NAME  MODEL         TOOLS  SOURCE    UPDATED            LINKED BY\n"
        "desk  llm/${MODEL}      1  app.yaml  with the next run  main.answer\n"
    )
    (told,) = answer(agents("list --config app.yaml"))["agents"]
    assert (told["version"], told["updated"], told["tools"]) == (None, None, 1)
    shown = agents("show desk --config app.yaml", terminal="out").stdout
    assert shown.startswith("desk comes into the store with the next run\nhash ")
    assert agents("export desk --config app.yaml").stdout.count("name: desk") == 1
    assert not Path(".octo").exists()


def test_a_table_is_no_wider_than_the_terminal(agents: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    deploy(agents, "one", name="a/very/long/name/of/an/agent/that/does/not/fit")
    _, row = agents("list", terminal="out").stdout.splitlines()

    assert len(row) <= 60
    assert "…" in row


@pytest.mark.parametrize("verb", ["list", "history greet"])
def test_a_long_name_of_a_user_is_cut_before_that_of_the_agent(
    agents: Any, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    agents(f"deploy greet --file one.agent.yaml --user {'x' * 80}")
    _, row, *_ = agents(verb, terminal="out").stdout.splitlines()

    assert len(row) <= 70
    assert "…" in row
    assert row.startswith(("greet  v1", "v1  "))


def test_a_terminal_gets_colours_and_a_pipe_none(agents: Any) -> None:
    deploy(agents, "one", "two")
    colours = {"NO_COLOR": ""}

    assert "\x1b[31m-prompt: Be kind.\x1b[0m" in agents("diff greet", terminal="out", environ=colours).stdout
    for verb in ("list", "show greet", "history greet"):
        assert "\x1b[" in agents(verb, terminal="out", environ=colours).stdout
        assert "\x1b[" not in agents(verb, terminal="out").stdout
        assert "\x1b[" not in agents(verb, environ=colours).stdout


def test_an_agent_is_shown_with_where_it_comes_from_and_what_it_lacks(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    agents('draft desk --set tools=[{"name":"x","flow":"gone"}]')
    agents("deploy desk")
    shown = agents("show desk --deps --config app.yaml", terminal="out").stdout

    assert shown == (
        "desk v2\n"
        f"hash {_hash('desk')}\n"
        "declared by app.yaml, which says something else\n"
        "refers to connector `llm`, variable `MODEL`, flow `gone`\n"
        "flow `gone` is not there\n"
        "\n"
        "description: Answers customers\n"
        "connector: llm\n"
        "model: ${MODEL}\n"
        "prompt: Be kind.\n"
        "tools:\n"
        "  - name: x\n"
        "    flow: gone\n"
    )


def test_a_version_and_a_draft_can_be_shown(agents: Any) -> None:
    deploy(agents, "one", "two")
    agents("draft greet --set prompt=mine")

    assert agents("show greet@1 --yaml").stdout == FIRST
    assert agents("show greet --yaml").stdout == SECOND
    assert agents("show greet --draft --yaml").stdout == SECOND.replace("Be short.", "mine")
    found = answer(agents("show greet@1 --json"))
    assert (found["state"], found["version"], found["current"]) == ("pinned", 1, 2)
    assert found["value"] == {"connector": "llm", "prompt": "Be kind."}
    assert "+edits on v2: `octo agents draft greet` shows the draft\n" in agents("show greet", terminal="out").stdout


def test_the_draft_is_that_of_the_user(agents: Any) -> None:
    deploy(agents, "one")
    agents("draft greet --set prompt=mine --user bob")

    assert answer(agents("list"))["agents"][0]["draft"] is None
    assert answer(agents("list --user bob"))["agents"][0]["draft"] == {"base": 1}


def test_the_history_is_told_newest_first_with_what_it_does_not_hold(
    agents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    deploy(agents, "one")
    agents("deploy greet --file two.agent.yaml --note shorter")
    agents("restore greet 1 --yes")
    lines = agents("history greet", terminal="out").stdout.splitlines()

    assert [line.split() for line in lines[1:4]] == [
        ["v3", "current", "0", "s", "ago", "ann", "restore", "of", "v1", lines[1].split()[-1]],
        ["v2", "0", "s", "ago", "ann", "deploy", lines[2].split()[-2], "shorter"],
        ["v1", "0", "s", "ago", "ann", "deploy", lines[3].split()[-1]],
    ]
    assert lines[1].split()[-1] == lines[3].split()[-1]
    assert lines[5:] == [
        "versions hold the agent alone: what its connectors, variables, flows, skills and",
        "other agents held at the time is not kept, so two versions that are equal may",
        "work differently",
    ]


def test_the_history_says_when_older_versions_are_gone(agents: Any) -> None:
    deploy(agents, "one", "two")
    agents("clear-history greet --yes")

    assert "versions before v2 were trimmed, cleared or deleted\n" in agents("history greet", terminal="out").stdout
    found = answer(agents("history greet --json"))
    assert (found["current"], found["olderGone"], len(found["versions"])) == (2, True, 1)
    assert list(found["versions"][0]) == ["version", "current", "at", "by", "origin", "hash", "note"]


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ("", ("version", 1, "current", 2, False)),
        ("1 2", ("version", 1, "version", 2, False)),
        ("v2", ("version", 2, "current", 2, True)),
        ("1 draft", ("version", 1, "draft", 2, False)),
        ("current draft", ("current", 2, "draft", 2, False)),
    ],
)
def test_any_two_values_can_be_compared(agents: Any, sides: str, expected: Any) -> None:
    deploy(agents, "one", "two")
    agents("draft greet --set prompt=mine")
    found = answer(agents(f"diff greet {sides}"))
    one, other = found["from"], found["to"]

    assert (one["state"], one["version"], other["state"], other["version"], found["equal"]) == expected


def test_the_source_is_compared_as_it_is_now(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    Path("app.yaml").write_text(APP.replace("Be kind.", "Be brief."), encoding="utf-8")

    for options in ("", " --config app.yaml"):
        found = answer(agents(f"diff desk source current{options}"))
        assert (found["from"]["state"], found["changes"]) == ("source", ["prompt"])


def test_a_difference_may_be_an_exit_status(agents: Any) -> None:
    deploy(agents, "one", "two")

    assert agents("diff greet --exit-code").status == 1
    assert agents("diff greet 2 2 --exit-code").status == 0
    assert agents("diff greet").status == 0
    assert agents("diff greet 2 2", terminal="out").stdout.startswith(
        "no difference between greet v2 (deploy, ann) and greet v2 (deploy, ann)\nversions hold the agent alone: "
    )


def test_values_that_a_newer_octo_wrote_are_shown_as_they_are(agents: Any) -> None:
    async def write() -> None:
        with Store(Path(".octo")) as store:
            await versions.deploy(store, "new", {"connector": "llm", "telepathy": True}, Change("x", 1))

    asyncio.run(write())
    assert answer(agents("show new"))["value"] == {"connector": "llm", "telepathy": True}


def test_an_agent_that_no_run_has_stored_yet_can_be_compared(agents: Any) -> None:
    assert agents("diff desk source current --config app.yaml", terminal="out").stdout.startswith(
        "no difference between desk in app.yaml and desk as the next run stores it\n"
    )


@pytest.mark.parametrize("line", ["show new", "history new", "diff new", "restore new 1 --yes", "clear-history new"])
def test_of_an_agent_that_is_a_draft_only_the_draft_is_named(agents: Any, line: str) -> None:
    agents("draft new --file one.agent.yaml")

    assert failure(agents(line, terminal="err")) == (
        'agent "new" not found',
        "there is a draft of it: `octo agents deploy new` puts yours in force",
        2,
    )


def test_blocks_that_share_an_address_are_counted(agents: Any) -> None:
    text = APP.replace("name: answer, ", "") + "      - {type: ai-agent, agent: desk, input: body.q}\n"
    Path("app.yaml").write_text(text, encoding="utf-8")

    assert "main.ai-agent ×2\n" in agents("list --config app.yaml", terminal="out").stdout


def _hash(name: str) -> str:
    with sqlite3.connect(".octo/octo.db") as db:
        return str(db.execute("SELECT hash FROM agent WHERE name = ?", (name,)).fetchone()[0])


def test_an_agent_of_a_newer_octo_works_without_the_tools_that_nobody_knows_here(agents: Any, octo: Any) -> None:
    import sqlite3

    octo("invoke", "--config", "app.yaml", "--flow", "main", "--data", '{"q": "?"}')
    newer = '{"connector":"llm","mood":"calm","prompt":"p","tools":[{"name":"new","teleport":{"to":"b"}}]}'
    with sqlite3.connect(".octo/octo.db") as db:
        db.execute("UPDATE agent SET value = ?", (newer,))
        db.execute("UPDATE agent_version SET value = ?", (newer,))
    db.close()

    ran = octo("invoke", "--config", "app.yaml", "--flow", "main", "--data", '{"q": "?"}')

    assert ran.status == 0
    assert 'msg="keys that this octo does not know are left out" agent=desk keys="mood, tools.0.teleport"' in ran.stderr
