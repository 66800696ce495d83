"""What is said of agents with names as a whole, by the commands: what stays apart, what stays, and what is told."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

APP = """\
env:
  - {name: TOKEN, default: horse-battery, secret: true}
connectors:
  - {name: llm, type: llm-scripted, settings: {rules: [{when: 'true', text: hi}]}}
agents:
  desk:
    connector: llm
    prompt: Use ${TOKEN}.
    memory: {kind: window, contextLength: 4}
flows:
  - name: main
    process:
      - {type: ai-agent, name: answer, agent: desk, input: body.q, memoryId: body.who}
"""
ANN = {"OCTO_USER": "ann"}
INVOKE = ("invoke", "--config", "app.yaml", "--flow", "main", "--data", '{"q": "hello", "who": "customer-1"}')


@pytest.fixture
def project(octo: Any, tmp_path: Path) -> Path:
    """A config that has run, so that its agent is in the store."""
    (tmp_path / "app.yaml").write_text(APP, encoding="utf-8")
    assert octo(*INVOKE, environ=ANN).status == 0
    return tmp_path


def answer(outcome: Any) -> Any:
    assert outcome.status == 0, outcome.stderr
    return json.loads(outcome.stdout)


def test_drafts_stand_neither_in_the_history_nor_in_the_record_of_an_ordinary_run(octo: Any, project: Path) -> None:
    octo("agents", "draft", "desk", "--set", "prompt=Secret plan.", environ=ANN)
    octo(*INVOKE, environ=ANN)
    (run, *_) = answer(octo("runs", "list"))["runs"]
    history = octo("agents", "history", "desk").stdout

    assert [(one["name"], one["source"], one["version"]) for one in run["agents"]] == [("desk", "deployed", 1)]
    assert [(one["version"], one["by"]) for one in json.loads(history)["versions"]] == [(1, "ann")]
    assert "plan" not in history
    assert "plan" not in octo("runs", "show", "latest", "--full").stdout


def test_no_command_that_shows_an_agent_shows_the_value_of_a_variable(octo: Any, project: Path) -> None:
    octo("agents", "draft", "desk", "--set", "model=${TOKEN}", environ=ANN)
    for line in (
        "agents show desk --config app.yaml --deps",
        "agents show desk --draft --config app.yaml",
        "agents history desk --config app.yaml",
        "agents diff desk current draft --config app.yaml",
        "agents diff desk source current --config app.yaml",
        "agents export desk --with-deps --config app.yaml",
        "agents draft desk --config app.yaml",
        "agents deploy desk --config app.yaml --note x",
        "agents list --config app.yaml",
        "runs show latest",
    ):
        told = octo(*line.split(), environ=ANN)
        assert told.status == 0, told.stderr
        assert "horse-battery" not in told.stdout + told.stderr

    stored = b"".join(file.read_bytes() for file in (project / ".octo").iterdir())
    assert b"horse-battery" not in stored
    assert b"Use ${TOKEN}." in stored


def test_what_an_agent_remembers_and_its_runs_stay_when_it_goes_and_its_history_is_cleared(
    octo: Any, project: Path
) -> None:
    remembered = octo("memory", "list").stdout
    runs = octo("runs", "list").stdout
    (project / "two.yaml").write_text("connector: llm\nprompt: Two.\n", encoding="utf-8")
    for line in ("deploy desk --file two.yaml", "clear-history desk --yes", "delete desk --yes"):
        assert octo("agents", *line.split(), environ=ANN).status == 0

    assert '"block":"main.answer"' in remembered
    assert octo("memory", "list").stdout == remembered
    assert octo("runs", "list").stdout == runs


def test_an_agent_goes_on_with_its_memory_after_it_was_restored(octo: Any, project: Path) -> None:
    (project / "two.yaml").write_text("connector: llm\nprompt: Two.\n", encoding="utf-8")
    octo("agents", "deploy", "desk", "--file", "two.yaml", environ=ANN)
    octo("agents", "restore", "desk", "1", "--yes", environ=ANN)
    octo(*INVOKE, environ=ANN)

    (memory,) = answer(octo("memory", "list"))["memories"]
    assert (memory["block"], memory["count"]) == ("main.answer", 4)


def test_a_missing_variable_is_told_with_agent_and_key_and_a_missing_connector_with_its_name(
    octo: Any, project: Path
) -> None:
    (project / "app.yaml").write_text(APP.replace(", default: horse-battery", ""), encoding="utf-8")
    missing = octo(*INVOKE, environ=ANN, terminal="err")
    assert (
        'error: app.yaml:13:9: block "answer": agent "desk": `prompt`: environment variable "TOKEN" is referenced but '
        "not set and has no default\n"
    ) in missing.stderr

    octo("agents", "draft", "desk", "--set", "connector=gone", "--set", "prompt=x", environ=ANN)
    octo("agents", "deploy", "desk", environ=ANN)
    missing = octo(*INVOKE, environ=ANN, terminal="err")
    assert (
        'error: app.yaml:13:9: block "answer": agent "desk": `connector`: connector "gone" is not configured\n'
    ) in missing.stderr
    assert missing.stderr.endswith("\nhint: known names: `llm`\n")


def test_a_restored_version_is_seen_by_the_next_run_and_a_pin_stays(octo: Any, project: Path) -> None:
    two = project / "two.yaml"
    two.write_text("connector: llm\nprompt: Two.\n", encoding="utf-8")
    octo("agents", "deploy", "desk", "--file", "two.yaml", environ=ANN)
    octo("agents", "restore", "desk", "1", "--yes", environ=ANN)
    pinned = APP.replace("agent: desk,", "agent: desk@2,").replace(", memoryId: body.who", "")

    found = []
    for text in (APP, pinned):
        (project / "app.yaml").write_text(text, encoding="utf-8")
        assert octo(*INVOKE, environ=ANN).status == 0
        (run, *_) = answer(octo("runs", "list"))["runs"]
        found += [(one["source"], one["version"]) for one in run["agents"]]
    assert found == [("deployed", 3), ("pinned", 2)]


def test_names_that_lead_out_of_the_store_are_refused_by_every_command_that_gives_one(octo: Any, project: Path) -> None:
    before = octo("agents", "list").stdout
    for line in (
        "rename desk ../desk",
        "rename desk desk@1",
        "deploy ../x --file app.yaml",
        "draft x/../y --set prompt=x --set connector=llm",
    ):
        told = octo("agents", *line.split(), environ=ANN, terminal="err")
        assert (told.stdout, told.status) == ("", 2)
        assert "` is no name of an agent\nhint: " in told.stderr
    names = [
        [(one["name"], one["version"]) for one in json.loads(text)["agents"]]
        for text in (before, octo("agents", "list").stdout)
    ]
    assert names == [[("desk", 1)]] * 2


def test_the_store_of_agents_is_one_file_for_its_owner_and_out_of_version_control(octo: Any, project: Path) -> None:
    (project / "two.yaml").write_text("connector: llm\nprompt: Two.\n", encoding="utf-8")
    assert octo("agents", "deploy", "new", "--file", "two.yaml", "--store", "there", environ=ANN).status == 0
    assert octo("agents", "deploy", "newer", "--file", "two.yaml", environ=ANN | {"OCTO_STORE": "there"}).status == 0

    found = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (project / "there").iterdir()}
    assert found.pop(".gitignore")
    assert found == {"octo.db": "0o600"}
    assert stat.S_IMODE((project / "there").stat().st_mode) == 0o700
    assert (project / "there" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert [one["name"] for one in answer(octo("agents", "list", "--store", "there"))["agents"]] == ["new", "newer"]
    assert [one["name"] for one in answer(octo("agents", "list"))["agents"]] == ["desk"]


@pytest.mark.parametrize("verb", ["deploy new --file f.yaml", "draft new --file f.yaml", "import b.yaml"])
@pytest.mark.parametrize(
    ("key", "error"),
    [
        (
            "memory_id: x",
            "`memory_id` does not belong to an agent: it names a conversation or a person, and stays on the block",
        ),
        (
            "apiKey: x",
            "`apiKey` does not belong to an agent: credentials stand in connectors only, and an agent names its "
            "connector",
        ),
        ("system_prompt: x", "`prompt` and `system_prompt` are two spellings of one key"),
        ("promt: x", 'unknown field "promt" in agent `new`'),
        ("maxIterations: 1001", "ai-agent: `maxIterations` is at most 1000, found 1001"),
    ],
    ids=["an id", "a credential", "two spellings", "a slip", "too many turns"],
)
def test_what_no_agent_may_say_comes_into_the_store_in_no_way(
    octo: Any, project: Path, verb: str, key: str, error: str
) -> None:
    text = f"connector: llm\nprompt: p\n{key}\n"
    (project / "f.yaml").write_text(text, encoding="utf-8")
    (project / "b.yaml").write_text(
        f"agents:\n  new:\n{''.join(f'    {line}' for line in text.splitlines(True))}", "utf-8"
    )
    told = octo("agents", *verb.split(), environ=ANN, terminal="err")

    assert error in told.stderr
    assert (told.stdout, told.status) == ("", 2)
    assert [one["name"] for one in answer(octo("agents", "list", environ=ANN))["agents"]] == ["desk"]


def test_the_record_of_a_run_tells_which_version_of_every_agent_worked_also_of_tools(octo: Any, project: Path) -> None:
    turns = "turns: [{calls: [{name: ask, args: {user_message: hm}}]}, {text: a}, {text: b}]"
    (project / "app.yaml").write_text(
        APP.replace("rules: [{when: 'true', text: hi}]", turns)
        .replace("  desk:\n", "  front: {connector: llm, prompt: F., tools: [{name: ask, agent: desk}]}\n  desk:\n")
        .replace("agent: desk,", "agent: front,")
        .replace(", memoryId: body.who", ""),
        encoding="utf-8",
    )
    octo("agents", "draft", "desk", "--set", "prompt=Try.", environ=ANN)
    for drafts in ((), ("--drafts",)):
        assert octo(*INVOKE, *drafts, environ=ANN).status == 0

    tested, plain, _ = answer(octo("runs", "list"))["runs"]
    found = [
        [(one["address"], one["name"], one["source"], one["version"], len(one["hash"])) for one in run["agents"]]
        for run in (plain, tested)
    ]
    assert found == [
        [("main.answer", "front", "deployed", 1, 32), ("main.answer[ask].ai-agent", "desk", "deployed", 1, 32)],
        [("main.answer", "front", "deployed", 1, 32), ("main.answer[ask].ai-agent", "desk", "draft", 1, 32)],
    ]


def test_a_flow_is_carried_with_the_agents_that_it_links_and_what_those_need(octo: Any, project: Path) -> None:
    (project / "app.yaml").write_text(
        APP.replace("flows:\n", "flows:\n  - {name: find, process: []}\n  - {name: alone, process: []}\n").replace(
            "  desk:\n",
            "  helper: {connector: llm, prompt: H., tools: [{name: look, flow: find}]}\n"
            "  unused: {connector: llm, prompt: U.}\n"
            "  desk:\n    tools: [{name: ask, agent: helper}]\n",
        ),
        encoding="utf-8",
    )
    assert octo(*INVOKE, environ=ANN).status == 0
    told = octo("agents", "export", "--flow", "main", "--with-deps", "--config", "app.yaml")

    assert (told.stderr, told.status) == ("", 0)
    assert [line.strip() for line in told.stdout.splitlines() if "- name: " in line] == [
        *("- name: TOKEN", "- name: llm", "- name: desk", "- name: ask", "- name: helper", "- name: look"),
        *("- name: main", "- name: find"),
    ]
    assert "horse-battery" not in told.stdout


def test_what_the_tools_of_an_agent_refer_to_is_checked_with_the_config(octo: Any, project: Path) -> None:
    tools = """\
    tools:
      - {name: count, process: [{type: python, settings: {file: gone.py, function: f}}]}
      - {name: look, process: [{type: flow-ref, settings: {flow: gone}}]}
      - {name: sum, inputs: {n: {expr: bdy.n}}, process: []}
"""
    (project / "app.yaml").write_text(APP.replace("    prompt:", tools + "    prompt:"), encoding="utf-8")
    found = json.loads(octo("validate", "--config", "app.yaml", "--json").stdout)["problems"]

    assert [(one["line"], one["severity"], one["message"]) for one in found if one["line"] != 10] == [
        (9, "warning", "resource `gone.py` does not exist"),
        (11, "error", "compile expression \"bdy.n\": undeclared reference to 'bdy'"),
    ]


def test_a_flow_of_a_tool_that_is_not_there_is_a_warning_and_fails_no_run_that_does_not_call_it(
    octo: Any, project: Path
) -> None:
    tool = "    tools: [{name: look, process: [{type: flow-ref, settings: {flow: gone}}]}]\n"
    (project / "app.yaml").write_text(APP.replace("    prompt:", tool + "    prompt:"), encoding="utf-8")
    (warning,) = json.loads(octo("validate", "--config", "app.yaml", "--json").stdout)["problems"]

    assert (warning["severity"], warning["line"], warning["message"]) == (
        "warning",
        8,
        'flow "gone" is not registered',
    )
    assert [one["line"] for one in json.loads(octo("agents", "check", "--config", "app.yaml").stdout)["problems"]] == [
        8
    ]
    assert octo(*INVOKE, environ=ANN).status == 0
