"""octo_cli/commands/agents.py, octo_cli/agents/desk.py: the life of an agent, and what cannot be."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from desks import deploy, failure


def test_an_agent_lives_from_a_draft_to_a_restored_version(agents: Any) -> None:
    told = [
        agents(line, terminal="out err").stdout
        for line in (
            "draft greet --file one.agent.yaml",
            "deploy greet",
            "draft greet --set temperature=0.5 --set prompt=Hello",
            "list",
            "diff greet current draft",
            "deploy greet --note warmer",
            "deploy greet --file one.agent.yaml",
            "deploy greet --file one.agent.yaml",
            "restore greet 2 --yes",
            "clear-history greet --yes",
            "rename greet team/greet",
            "delete team/greet --yes",
            "list",
        )
    ]

    assert told == [
        "kept the draft of a new agent: `octo agents deploy greet` puts it in force\n",
        "deployed greet v1\n",
        "kept the draft on v1: `octo agents deploy greet` puts it in force\n",
        "NAME   VERSION  DRAFT         MODEL  TOOLS  UPDATED\n"
        "greet  v1       +edits on v1  llm        0  0 s ago, ann\n",
        "--- greet v1 (draft, ann)\n"
        "+++ greet draft of ann\n"
        "@@ -1,2 +1,3 @@\n"
        " connector: llm\n"
        "-prompt: Be kind.\n"
        "+prompt: Hello\n"
        "+temperature: 0.5\n",
        "deployed greet v2\n",
        "deployed greet v3\n",
        "greet: unchanged at v3\n",
        "--- greet v3 (deploy, ann)\n"
        "+++ greet v2 (draft, ann)\n"
        "@@ -1,2 +1,3 @@\n"
        " connector: llm\n"
        "-prompt: Be kind.\n"
        "+prompt: Hello\n"
        "+temperature: 0.5\n"
        "restored v2 of greet as v4\n",
        "removed 3 versions of greet, v4 stays\n",
        "renamed greet to team/greet\n",
        "deleted team/greet with 1 version and 0 drafts\n",
        "there are no agents yet: `octo agents deploy NAME --file FILE` makes one\n",
    ]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        *(
            (f"{verb} grete{more}", ('agent "grete" not found', "did you mean `greet`?", 2))
            for verb, more in {
                **dict.fromkeys(("show", "history", "diff", "draft", "deploy", "export"), ""),
                "restore": " 1",
                **dict.fromkeys(("clear-history", "delete"), " --yes"),
                "rename": " new",
            }.items()
        ),
        (
            "show greet@7",
            ('agent "greet" has no version 7: version 1 is kept', "`octo agents history greet` lists them", 2),
        ),
        *(
            (
                line.format(10**30),
                (
                    f'agent "greet" has no version {10**30}: version 1 is kept',
                    "`octo agents history greet` lists them",
                    2,
                ),
            )
            for line in ("show greet@{}", "diff greet {} 1", "restore greet {} --yes")
        ),
        ("show greet@x", ("`greet@x` names no version", "for example `NAME@7`", 2)),
        (
            "diff greet yesterday",
            (
                "`yesterday` is nothing that can be compared",
                "a side is the number of a version, `current`, `draft` or `source`",
                2,
            ),
        ),
        (
            "diff greet",
            (
                'agent "greet" has no version before v1',
                "compare with `draft` or `source`: `octo agents diff greet current draft`",
                2,
            ),
        ),
        ("diff greet source", ('agent "greet" is declared by no file', "it lives in the store only", 2)),
        ("draft greet", ('agent "greet" has no draft of `ann`', "`octo agents draft greet --edit` begins one", 2)),
        (
            "draft greet --edit --discard",
            ("`--file`, `--set`, `--edit` and `--discard` exclude each other", "give one of them", 2),
        ),
        ("show greet@1 --draft", ("`--draft` shows the draft, and `@` a version", "give one of them", 2)),
        ("deploy", ("the name of an agent is needed", "or `--config PATH`, for all agents that it links", 2)),
        (
            "deploy a/../b --file one.agent.yaml",
            (
                "`a/../b` is no name of an agent",
                "a name is made of segments with `/` between them; a segment has letters, digits, `_`, `.` and `-`, "
                "and begins with a letter, a digit or `_`",
                2,
            ),
        ),
        (
            "deploy a@2 --file one.agent.yaml",
            ("`a@2` is no name of an agent", "`@` stands before the version of a pin", 2),
        ),
        ("deploy a --file nope.yaml", ("cannot read `nope.yaml`: no such file or directory", "", 2)),
        ("adopt a", ("a config is needed here", "name it with `--config PATH`", 2)),
        ("adopt a --config app.yaml", ('agent "a" not found', "`octo agents list` shows which agents there are", 2)),
        ("export", ("nothing is named to export", "name agents, or a flow with `--flow NAME`", 2)),
        ("export greet --with-deps", ("a config is needed here", "name it with `--config PATH`", 2)),
        (
            "import one.agent.yaml",
            ("`one.agent.yaml` holds no agents", "`octo agents deploy NAME --file FILE` takes an agent file", 2),
        ),
        (
            "rename greet greet",
            ('the agent "greet" has that name already', "choose another name", 2),
        ),
        (
            "list --store :memory:",
            ("a store in memory keeps nothing", "name a directory with `--store DIR`", 2),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_done_is_said_and_changes_nothing(agents: Any, line: str, error: Any) -> None:
    deploy(agents, "one")
    before = agents("history greet --json").stdout

    assert failure(agents(line, terminal="err")) == error
    assert agents("history greet --json").stdout == before


def test_a_store_that_cannot_be_written_is_told_and_intact(agents: Any) -> None:
    deploy(agents, "one")
    before = Path(".octo/octo.db").read_bytes()
    with sqlite3.connect(".octo/octo.db") as db:
        db.execute("PRAGMA user_version = 99999")
    outcome = agents("deploy greet --file two.agent.yaml", terminal="err")

    assert outcome.status == 2
    assert "is of version 99999, and this octo knows the versions up to" in outcome.stderr
    assert len(Path(".octo/octo.db").read_bytes()) == len(before)


def test_a_value_that_is_none_is_told_with_its_agent(agents: Any) -> None:
    deploy(agents, "one")
    with sqlite3.connect(".octo/octo.db") as db:
        db.execute("UPDATE agent SET value = '[1]'")

    assert failure(agents("show greet", terminal="err")) == ('agent "greet": its stored value is no mapping', "", 2)


def test_control_characters_reach_no_terminal(agents: Any) -> None:
    text = 'connector: llm\nprompt: "a\\e[31mb"\ndescription: "c\\ad"\n'
    Path("evil.agent.yaml").write_text(text, encoding="utf-8")
    deploy(agents, "one", "evil")
    agents("deploy greet --file one.agent.yaml --note a\x1b[2Jb")

    for line in ("list", "show greet@2", "history greet", "diff greet"):
        shown = agents(line, terminal="out").stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown


def test_the_store_is_for_its_owner_only(agents: Any) -> None:
    deploy(agents, "one")

    assert stat.S_IMODE(Path(".octo/octo.db").stat().st_mode) == 0o600
