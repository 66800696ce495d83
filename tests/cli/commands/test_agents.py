"""octo_cli/commands/agents.py, octo_cli/agents/desk.py, octo_cli/agents/look.py, octo_cli/agents/words.py,
octo_cli/agents/change.py, octo_cli/agents/editing.py, octo_cli/agents/keep.py, octo_cli/agents/carry.py,
octo_cli/table.py: the life of an agent, from its first deploy to its end.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from octo.agent import versions
from octo.agent.versions import Change
from octo.store.store import Store

APP = """\
env:
  - {name: MODEL, default: m1}
connectors:
  - {name: llm, type: llm-scripted, settings: {rules: [{when: 'true', text: hi}]}}
agents:
  desk:
    description: Answers customers
    connector: llm
    model: ${MODEL}
    prompt: Be kind.
    tools:
      - {name: look, flow: find}
flows:
  - {name: find, process: []}
  - name: main
    process:
      - {type: ai-agent, name: answer, agent: desk, input: body.q}
"""
FIRST = "connector: llm\nprompt: Be kind.\n"
SECOND = "connector: llm\nprompt: Be short.\ntemperature: 0.5\n"


@pytest.fixture
def agents(octo: Any, tmp_path: Path) -> Any:
    """`octo agents …` of ann, in a directory with a config and two agent files."""
    for name, text in {"app.yaml": APP, "one.agent.yaml": FIRST, "two.agent.yaml": SECOND}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def run(line: str, **options: Any) -> Any:
        return octo("agents", *line.split(), environ={"OCTO_USER": "ann"} | options.pop("environ", {}), **options)

    return run


def answer(outcome: Any) -> Any:
    assert (outcome.stderr, outcome.status) == ("", 0)
    return json.loads(outcome.stdout)


def deploy(agents: Any, *files: str, name: str = "greet") -> None:
    for file in files:
        assert agents(f"deploy {name} --file {file}.agent.yaml").status == 0


def failure(outcome: Any) -> tuple[str, str, int]:
    """The error and the hint of a command that a person runs, and its status."""
    error, _, hint = outcome.stderr.strip().partition("\nhint: ")
    return error.removeprefix("error: "), hint, outcome.status


# ---------------------------------------------------------------- a life


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


# ---------------------------------------------------------------- list and show


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


def _hash(name: str) -> str:
    with sqlite3.connect(".octo/octo.db") as db:
        return str(db.execute("SELECT hash FROM agent WHERE name = ?", (name,)).fetchone()[0])


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


# ---------------------------------------------------------------- history and differences


def test_the_history_is_told_newest_first_with_what_it_does_not_hold(agents: Any) -> None:
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
    assert lines[5] == (
        "versions hold the agent alone: what its connectors, variables, flows, skills and other agents held at the "
        "time is not kept, so two versions that are equal may work differently"
    )


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


# ---------------------------------------------------------------- drafts


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


# ---------------------------------------------------------------- deploy


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


# ---------------------------------------------------------------- restore, rename, delete


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


def test_an_agent_of_another_file_is_adopted(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    Path("other.yaml").write_text(APP.replace("Be kind.", "Be brief."), encoding="utf-8")
    refused = octo("invoke", "--config", "other.yaml", "--flow", "find", terminal="err")
    assert refused.status == 2
    assert f'agent "desk" is declared by `{Path.cwd() / "app.yaml"}`, in another way' in refused.stderr

    assert answer(agents("adopt desk --config other.yaml")) == {"adopted": [{"name": "desk", "version": 2}]}
    assert octo("invoke", "--config", "other.yaml", "--flow", "find").status == 0


# ---------------------------------------------------------------- export and import


def test_agents_are_carried_to_another_store(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    assert agents("export desk --with-deps --config app.yaml --out bundle.yaml") == ("", "", 0)
    assert Path("bundle.yaml").read_text(encoding="utf-8") == (
        "# Made by `octo agents export`; `octo agents import FILE` brings the agents into a store.\n"
        "env:\n"
        "  - name: MODEL\n"
        "    default: m1\n"
        "connectors:\n"
        "  - name: llm\n"
        "    type: llm-scripted\n"
        "    settings:\n"
        "      rules:\n"
        "        - text: hi\n"
        "          when: 'true'\n"
        "agents:\n"
        "  - name: desk\n"
        "    description: Answers customers\n"
        "    connector: llm\n"
        "    model: ${MODEL}\n"
        "    prompt: Be kind.\n"
        "    tools:\n"
        "      - name: look\n"
        "        flow: find\n"
        "flows:\n"
        "  - name: find\n"
        "    process: []\n"
    )
    assert answer(agents("import bundle.yaml --store there")) == {"imported": [{"name": "desk", "version": 1}]}
    assert answer(agents("import bundle.yaml --store there")) == {"imported": [{"name": "desk", "version": None}]}
    one, other = (answer(agents(f"show desk{where}")) for where in ("", " --store there"))
    assert one["hash"] == other["hash"]


def test_no_credential_of_a_connector_is_carried_and_one_of_an_agent_is_told(agents: Any) -> None:
    key = "sk-" + "a" * 30
    Path("app.yaml").write_text(
        "env: [{name: PW, default: x}]\n"
        "connectors:\n"
        "  - name: far\n"
        "    type: llm-anthropic\n"
        f"    settings: {{apiKey: k, baseURL: 'https://u:hidden@far.example/v1', headers: {{x-more: {key}}}}}\n"
        "  - {name: near, type: llm-anthropic, settings: {apiKey: k, baseURL: 'https://u:${PW}@near.example'}}\n"
        "agents:\n"
        f"  a: {{connector: far, prompt: p, description: {key}}}\n"
        "  b: {connector: near, prompt: p}\n",
        encoding="utf-8",
    )

    told = agents("export a b --with-deps --config app.yaml", terminal="err")
    assert "warning: `agents.a.description` looks like a secret, and is exported as it is\n" in told.stderr
    assert "hidden" not in told.stdout
    assert told.stdout.count(key) == 1
    for line in ("https://${FAR_BASEURL_USER}@far.example/v1", "https://u:${PW}@near.example", "${FAR_HEADERS_X_MORE}"):
        assert line in told.stdout


@pytest.mark.parametrize("verb", ["import b.yaml", "deploy a --file a.yaml"])
@pytest.mark.parametrize("prompt", ["", "prompt: null", "prompt: ' '"])
def test_an_agent_without_a_prompt_does_not_come_into_the_store(agents: Any, verb: str, prompt: str) -> None:
    Path("b.yaml").write_text(f"agents:\n  - name: a\n    connector: far\n    {prompt}\n", encoding="utf-8")
    Path("a.yaml").write_text(f"connector: far\n{prompt}\n", encoding="utf-8")
    told = agents(verb, terminal="err")

    assert "ai-agent requires a prompt" in told.stderr
    assert told.status == 2
    assert answer(agents("list")) == {"agents": []}


def test_a_key_of_other_tools_is_left_out_at_import(agents: Any) -> None:
    Path("b.yaml").write_text("agents: {a: {connector: llm, prompt: x, streaming: true}}\n", encoding="utf-8")
    outcome = agents("import b.yaml", terminal="err")

    assert outcome.stderr == (
        "warning: agent a: `streaming` is left out: how much is shown is the affair of the caller\n"
    )
    assert answer(agents("show a"))["value"] == {"connector": "llm", "prompt": "x"}


def test_what_an_imported_agent_needs_and_the_config_lacks_is_told(agents: Any) -> None:
    Path("b.yaml").write_text("agents: {a: {connector: far, prompt: x}}\n", encoding="utf-8")

    assert agents("import b.yaml --config app.yaml", terminal="err").stderr == (
        "warning: agent a: connector `far` is not there\n"
    )


# ---------------------------------------------------------------- what cannot be


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


def test_values_that_a_newer_octo_wrote_are_shown_as_they_are(agents: Any) -> None:
    async def write() -> None:
        with Store(Path(".octo")) as store:
            await versions.deploy(store, "new", {"connector": "llm", "telepathy": True}, Change("x", 1))

    asyncio.run(write())
    assert answer(agents("show new"))["value"] == {"connector": "llm", "telepathy": True}
