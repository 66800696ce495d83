"""octo_cli/commands/validate.py: files that hold one agent, and configs that declare some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

AGENT = "connector: far\nprompt: {resource: p.md}\nmodel: ${MODEL}\n"


@pytest.fixture
def validate(octo: Any, tmp_path: Path) -> Any:
    """Check an agent file of `agents` beside a config."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "p.md").write_text("Be kind.", encoding="utf-8")

    def run(text: str, *options: str, **more: Any) -> Any:
        (tmp_path / "agents" / "desk.agent.yaml").write_text(text, encoding="utf-8")
        return octo("validate", "--config", "agents/desk.agent.yaml", *options, **more)

    return run


def test_an_agent_file_is_checked_apart_from_what_it_refers_to(validate: Any) -> None:
    assert validate(AGENT, terminal="out err") == ("agents/desk.agent.yaml is valid: 1 agent\n", "", 0)
    assert json.loads(validate(AGENT).stdout) == {"ok": True, "agents": 1, "problems": []}


def test_what_is_wrong_with_it_is_told_where_it_stands(validate: Any) -> None:
    assert validate("connector: x\nprompt: y\nmodle: z\n", terminal="err") == (
        "",
        'error: agents/desk.agent.yaml:3:1: unknown field "modle" in agent `desk`\n'
        "    3 | modle: z\n"
        "      | ^^^^^\n"
        "hint: did you mean `model`?\n",
        2,
    )
    found = json.loads(validate("connector: x\nprompt: y\nmodle: z\n", "--json").stdout)
    assert [problem["message"] for problem in found["problems"]] == ['unknown field "modle" in agent `desk`']


@pytest.mark.parametrize("name", ["desk.agent.yml", "DESK.AGENT.YAML"])
def test_a_file_with_nearly_the_name_of_an_agent_file_is_told(octo: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / name).write_text("connector: x\nprompt: y\n", encoding="utf-8")
    (tmp_path / "app.yaml").write_text("flows: [{name: f, process: []}]\n", encoding="utf-8")

    told = octo("validate", "--config", "app.yaml", terminal="err")
    assert told.status == 0
    assert (
        f"warning: `agents/{name}` is not read: the name of an agent file ends with `.agent.yaml`\nhint: rename it\n"
    ) in told.stderr


def test_a_literal_secret_is_a_warning_and_strictly_a_problem(validate: Any) -> None:
    text = "connector: x\nprompt: sk-abcdefghij0123456789\n"
    told = (
        "agents/desk.agent.yaml:2:9: this looks like a secret, and agents are kept with all their versions\n"
        "      | ***\n"
        "      | ^^^\n"
        "hint: declare a variable under `env:` with `secret: true`, and write `${NAME}`\n"
    )

    assert validate(text, terminal="err")[1:] == (f"warning: {told}", 0)
    assert validate(text, "--strict", terminal="err")[1:] == (f"error: {told}", 2)


def test_nothing_is_written_when_a_config_is_checked(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(
        "connectors: [{name: llm, type: llm-scripted, settings: {rules: [{when: 'true', text: hi}]}}]\n"
        "agents: {a: {connector: llm, prompt: x}}\n",
        encoding="utf-8",
    )
    assert octo("validate", "--config", "app.yaml", terminal="out") == (
        "app.yaml is valid: 0 flows, 1 connector, 0 blocks, 1 agent\n",
        "",
        0,
    )
    assert not (tmp_path / ".octo").exists()


@pytest.mark.parametrize(
    ("link", "status", "problems"),
    [
        ("desk@1", 0, []),
        ("desk@2", 2, [('agent "desk" has no version 2', "the next run stores what is declared as version 1")]),
    ],
)
def test_a_pin_to_an_agent_that_no_run_has_stored_yet(
    octo: Any, tmp_path: Path, link: str, status: int, problems: list[tuple[str, str]]
) -> None:
    (tmp_path / "app.yaml").write_text(
        "connectors: [{name: m, type: llm-scripted, settings: {turns: [{text: hi}]}}]\n"
        "agents: {desk: {connector: m, prompt: p}}\n"
        f"flows: [{{name: f, process: [{{type: ai-agent, name: b, agent: {link}}}]}}]\n",
        encoding="utf-8",
    )

    told = octo("validate", "--config", "app.yaml", "--json")

    assert told.status == status
    assert [(one["message"], one["hint"]) for one in json.loads(told.stdout)["problems"]] == problems


def test_what_is_wrong_with_tools_of_a_declared_agent_is_told_once_where_it_is_written(
    octo: Any, tmp_path: Path
) -> None:
    (tmp_path / "app.yaml").write_text(
        """\
connectors:
  - {name: llm, type: llm-scripted, settings: {turns: [{text: hi}]}}
agents:
  boss:
    connector: llm
    prompt: p
    tools:
      - {name: look, flow: fnd}
      - {name: ask, agent: dsk}
      - {name: sum, inputSchema: {properties: {total: {}}}, inputs: {totl: 1}, process: []}
      - name: deep
        process: [{type: ai-agent, agent: gone, input: body}]
  desk: {connector: llm, prompt: p}
flows:
  - {name: find, process: []}
  - name: main
    process:
      - {type: ai-agent, name: one, agent: boss, input: body}
      - {type: ai-agent, name: two, agent: boss, input: body}
""",
        encoding="utf-8",
    )
    found = json.loads(octo("validate", "--config", "app.yaml", "--json").stdout)["problems"]

    assert [(one["severity"], one["line"], one["message"], one["hint"]) for one in found] == [
        ("warning", 8, 'ai-agent tool `look`: flow "fnd" is not registered', "did you mean `find`?"),
        ("warning", 10, "ai-agent tool `sum` has no parameter `totl`", "did you mean `total`?"),
        ("warning", 9, 'agent "dsk" not found', "did you mean `desk`?"),
        ("warning", 12, 'agent "gone" not found', "`octo agents list` shows which agents there are"),
    ]


@pytest.mark.parametrize(
    ("agents", "place", "message", "hint"),
    [
        (
            "hello",
            "1:9",
            "`agents`: expected a list or a mapping, found text",
            "in a mapping, each agent stands under its name",
        ),
        ("{a: {prompt: [1]}}", "1:22", "`prompt`: expected text, found a list", None),
        ("{a: {prompt: 5}}", "1:22", "`prompt`: expected text, found the number 5", 'put it in quotes: "5"'),
        ("{a: {maxIterations: 1.5}}", "1:29", "`maxIterations`: expected a whole number, found the number 1.5", None),
        (
            "{a: {tools: [hello]}}",
            "1:22",
            "an entry of `tools`: expected a mapping, found text",
            "a mapping has a `key: value` on each line",
        ),
        ("{a: {temperature: true}}", "1:27", "`temperature`: expected a number, found the boolean true", None),
    ],
)
def test_a_wrong_kind_is_told_with_its_key_and_what_was_found(
    octo: Any, tmp_path: Path, agents: str, place: str, message: str, hint: str | None
) -> None:
    (tmp_path / "app.yaml").write_text(f"agents: {agents}\n", encoding="utf-8")
    found = json.loads(octo("validate", "--config", "app.yaml", "--json").stdout)["problems"]

    assert (f"{found[0]['line']}:{found[0]['column']}", found[0]["message"], found[0].get("hint")) == (
        place,
        message,
        hint,
    )


LINKED = """\
connectors: [{name: m, type: llm-scripted, settings: {turns: [{text: hi}]}}]
agents:
  desk:
    connector: m
    prompt: p
    input: '"hello"'
    enabledTools: [look]
    tools:
      - {name: look, process: [{type: if, name: ask, condition: 'true', then: {process: [{type: log, message: '1'}]}}]}
      - {name: lost, process: [{type: rest, connector: gone, method: GET, path: '"/"'}]}
      - {name: help, agent: {connector: m, prompt: q, tools: [{name: call, description: c, flow: main}]}}
flows:
  - name: main
    process:
      - {type: ai-agent, name: answer, agent: desk, enabledTools: [lost, lots], toolInputs: {lost: {a: 1}}}
"""


def test_a_tool_that_cannot_work_is_there_to_be_named(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(LINKED, encoding="utf-8")

    told = octo("validate", "--config", "app.yaml", "--json")

    assert told.status == 0
    assert [(one["message"], one["hint"]) for one in json.loads(told.stdout)["problems"]] == [
        ('connector "gone" is not configured', "known names: `m`"),
        ("ai-agent: no tool `lots` is there to enable", "did you mean `lost`?"),
    ]


def test_what_the_block_says_itself_counts_in_the_explanation(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(LINKED, encoding="utf-8")

    settings = json.loads(octo("validate", "--config", "app.yaml", "--explain", "main.answer").stdout)["settings"]

    assert settings["enabledTools"] == {"value": ["lost", "lots"], "from": "app.yaml:15:67"}
    assert settings["input"] == {"value": '"hello"', "from": "agent desk"}

    (tmp_path / "app.yaml").write_text(LINKED.replace("enabledTools: [lost, lots]", "input: ' '"), encoding="utf-8")
    settings = json.loads(octo("validate", "--config", "app.yaml", "--explain", "main.answer").stdout)["settings"]
    assert settings["input"] == {"value": '"hello"', "from": "agent desk"}


def test_blocks_in_tools_of_a_linked_agent_are_explained(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(LINKED, encoding="utf-8")

    def explained(address: str) -> Any:
        return octo("validate", "--config", "app.yaml", "--explain", address, terminal="err")

    assert json.loads(explained("main.answer[look].ask[then].log").stdout) == {
        "address": "main.answer[look].ask[then].log",
        "type": "log",
        "label": "log",
        "from": "agent desk",
        "settings": {
            "full": {"from": "default", "value": False},
            "level": {"from": "default", "value": "info"},
            "message": {"from": "agent desk", "value": "1"},
        },
    }
    nested = json.loads(explained("main.answer[help].ai-agent").stdout)
    assert nested["settings"]["prompt"] == {"value": "q", "from": "agent desk"}
    assert nested["tools"] == [{"kind": "flow main", "name": "call", "parameters": {}}]
    assert explained("main.answer[look].ask[then].lag").stderr.endswith(
        "error: `main.answer[look].ask[then].lag`: the tools of the agent have no such block (blocks: "
        "main.answer[look].ask, main.answer[look].ask[then].log, main.answer[help].ai-agent)\n"
        "hint: did you mean `main.answer[look].ask[then].log`?\n"
    )


def test_what_is_wrong_in_an_agent_inside_a_stored_one_is_told(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(
        "connectors: [{name: m, type: llm-scripted, settings: {turns: [{text: hi}]}}]\n"
        "flows: [{name: f, process: [{type: ai-agent, name: b, agent: desk}]}]\n",
        encoding="utf-8",
    )
    inner = "{connector: m, prompt: q, tools: [{name: r, description: d, flow: nowhere}]}"
    deployed = octo(
        "agents",
        "deploy",
        "desk",
        "--file",
        "-",
        stdin=f"connector: m\nprompt: p\ntools: [{{name: n, agent: {inner}}}]\n",
    )
    assert deployed.status == 0

    told = octo("validate", "--config", "app.yaml", "--json")

    assert [one["message"] for one in json.loads(told.stdout)["problems"]] == [
        'agent "desk": `f.b[n].ai-agent`: ai-agent tool `r`: flow "nowhere" is not registered'
    ]


@pytest.mark.parametrize("outer", ["deployed", "declared"])
def test_that_a_stored_agent_cannot_work_as_a_tool_of_another_is_told(octo: Any, tmp_path: Path, outer: str) -> None:
    value = "{connector: m, prompt: p, tools: [{name: n, agent: inner}]}"
    (tmp_path / "app.yaml").write_text(
        "connectors: [{name: m, type: llm-scripted, settings: {turns: [{text: hi}]}}]\n"
        "flows: [{name: f, process: [{type: ai-agent, name: b, agent: desk}]}]\n"
        + (f"agents: {{desk: {value}}}\n" if outer == "declared" else ""),
        encoding="utf-8",
    )
    octo("agents", "deploy", "inner", "--file", "-", stdin="connector: gone\nprompt: q\n")
    if outer == "deployed":
        octo("agents", "deploy", "desk", "--file", "-", stdin=value)

    told = octo("validate", "--config", "app.yaml", "--json")

    assert told.status == 0
    assert [(one["message"], one["hint"]) for one in json.loads(told.stdout)["problems"]] == [
        ('agent "desk": tool `n`: agent "inner": `connector`: connector "gone" is not configured', "known names: `m`")
    ]


@pytest.mark.parametrize("command", [("graph",), ("invoke", "--flow", "f"), ("agents", "check")])
def test_a_file_with_an_agent_is_no_config(octo: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "desk.agent.yaml").write_text("connector: m\nprompt: p\n", encoding="utf-8")

    assert octo(*command, "--config", "desk.agent.yaml", terminal="err") == (
        "",
        "error: `desk.agent.yaml` holds an agent, and not a config\n"
        "hint: `octo validate` checks it; a config declares it, and links it\n",
        2,
    )


@pytest.mark.parametrize(
    ("own", "over"),
    [
        (("memoryId", "enabledTools"), ("memory_id", "enabled_tools")),
        (("memory_id", "enabled_tools"), ("memoryId", "enabledTools")),
    ],
    ids=["the older over the newer", "the newer over the older"],
)
@pytest.mark.parametrize("kind", ["linked", "inline"])
def test_what_a_block_binds_counts_in_either_spelling(
    octo: Any, tmp_path: Path, kind: str, own: tuple[str, str], over: tuple[str, str]
) -> None:
    tools = (
        f"[{{name: n, inputs: {{{own[0]}: hers, {own[1]}: {{value: [one]}}}}, agent: {{connector: m, prompt: q, "
        "description: d, memory: {kind: window, contextLength: 4}, tools: [{name: one, description: d, process: []}, "
        "{name: two, description: d, process: []}]}}]"
    )
    (tmp_path / "app.yaml").write_text(
        "connectors:\n"
        "  - name: m\n"
        "    type: llm-scripted\n"
        "    settings:\n"
        "      rules:\n"
        '        - when: \'system.contains("OUT") && last.role == "user"\'\n'
        "          calls: [{name: n, args: {user_message: a}}]\n"
        "        - {when: 'last.role == \"user\"', calls: [{name: one}, {name: two}]}\n"
        "        - {when: 'true', text: done}\n"
        f"agents: {{desk: {{connector: m, prompt: OUT, tools: {tools}}}}}\n"
        "flows:\n"
        "  - name: f\n"
        "    process:\n"
        "      - type: ai-agent\n"
        "        name: a\n"
        + (
            "        agent: desk\n"
            if kind == "linked"
            else f"        connector: m\n        prompt: OUT\n        tools: {tools}\n"
        )
        + f"        toolInputs: {{n: {{{over[0]}: ours, {over[1]}: {{value: [two]}}}}}}\n",
        encoding="utf-8",
    )

    ran = octo("invoke", "--config", "app.yaml", "--flow", "f", "-v")

    assert ran.status == 0
    assert 'tool=one result="unknown tool' in ran.stderr
    assert 'tool=two result="unknown tool' not in ran.stderr
    key = octo("memory", "key", "ours", "--flow", "f", "--workspace", "").stdout.strip()
    assert [one["id"] for one in json.loads(octo("memory", "list", "--config", "app.yaml").stdout)["memories"]] == [key]


@pytest.mark.parametrize(
    ("inputs", "over", "place"),
    [("{memoryId: a, memory_id: b}", "{}", "agents"), ("{}", "{memory_id: a, memoryId: b}", "flows")],
    ids=["in the agent", "in the block"],
)
def test_both_spellings_of_an_input_are_refused(octo: Any, tmp_path: Path, inputs: str, over: str, place: str) -> None:
    nested = "{connector: m, prompt: q, memory: {kind: window, contextLength: 4}}"
    (tmp_path / "app.yaml").write_text(
        "connectors: [{name: m, type: llm-scripted, settings: {turns: [{text: hi}]}}]\n"
        f"agents: {{desk: {{connector: m, prompt: p, tools: [{{name: n, inputs: {inputs}, agent: {nested}}}]}}}}\n"
        f"flows: [{{name: f, process: [{{type: ai-agent, name: a, agent: desk, toolInputs: {{n: {over}}}}}]}}]\n",
        encoding="utf-8",
    )

    told = octo("validate", "--config", "app.yaml", terminal="err")

    assert told.status == 2
    one, other = ("memoryId", "memory_id") if place == "agents" else ("memory_id", "memoryId")
    assert f"ai-agent tool `n`: `{one}` and `{other}` are two spellings of one key\n" in told.stderr
    assert told.stderr.endswith("hint: keep one of them\n")


def test_what_a_block_binds_replaces_the_other_spelling_when_the_agent_is_put_into_it(
    octo: Any, tmp_path: Path
) -> None:
    nested = "{connector: m, prompt: q, description: d, memory: {kind: window, contextLength: 4}}"
    tool = f"{{name: n, inputs: {{memory_id: a}}, agent: {nested}}}"
    (tmp_path / "app.yaml").write_text(
        "connectors: [{name: m, type: llm-scripted, settings: {turns: [{text: hi}]}}]\n"
        f"agents: {{desk: {{connector: m, prompt: p, tools: [{tool}]}}}}\n"
        "flows:\n"
        "  - name: f\n"
        "    process:\n"
        "      - {type: ai-agent, name: a, agent: desk, toolInputs: {n: {memoryId: b}}}\n",
        encoding="utf-8",
    )

    done = octo("agents", "unlink", "--config", "app.yaml", "--flow", "f", "--block", "a", "--write")

    assert done.status == 0
    tools = json.loads(octo("validate", "--config", "app.yaml", "--explain", "f.a").stdout)["tools"]
    assert {key: filled["value"] for key, filled in tools[0]["parameters"].items()} == {
        "memoryId": {"value": "b"},
        "user_message": {"ai": True},
    }
