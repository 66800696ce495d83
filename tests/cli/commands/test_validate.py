"""octo_cli/commands/validate.py: every problem of a config, and what a block came out as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

GOOD = """\
processors:
  - name: stamp
    type: set-variable
    settings: { name: stage, value: '"start"' }
flows:
  - name: relay
    process:
      - ref: stamp
        settings: { value: '"end"' }
      - type: log
        message: 'body'
"""
BAD = """\
flows:
  - name: relay
    process:
      - type: set-paylod
        settings: { value: 'body' }
      - type: set-payload
        settings: { value: 'bdy.x' }
"""


@pytest.fixture
def validate(octo: Any, tmp_path: Path) -> Any:
    def call(text: str, *args: str, **more: Any) -> Any:
        (tmp_path / "app.yaml").write_text(text, encoding="utf-8")
        return octo("validate", "--config", "app.yaml", *args, **more)

    return call


def test_a_valid_config_is_said_to_be_valid(validate: Any) -> None:
    assert validate(GOOD, terminal="out err") == ("app.yaml is valid: 1 flow, 0 connectors, 2 blocks\n", "", 0)
    assert validate(GOOD) == ('{"ok":true,"flows":1,"connectors":0,"blocks":2,"problems":[]}\n', "", 0)


@pytest.mark.parametrize("text", ["", "# nothing yet", "flows:", "service: {name: shop}\nflows: []"])
def test_a_config_with_nothing_to_run_is_warned_of(validate: Any, text: str) -> None:
    outcome = validate(text, terminal="out err")
    assert outcome == (
        "app.yaml is valid: 0 flows, 0 connectors, 0 blocks\n",
        "warning: the config declares nothing that can run\n"
        "hint: `flows:` lists what it can do; `octo new DIR` writes an example\n",
        0,
    )
    assert validate(text, "--strict").status == 2


def test_all_problems_are_shown_each_with_its_line(validate: Any) -> None:
    assert validate(BAD, terminal="out err") == (
        "",
        'error: app.yaml:4:15: block "set-paylod" not registered\n'
        "    4 |       - type: set-paylod\n"
        "      |               ^^^^^^^^^^\n"
        "hint: did you mean `set-payload`?\n"
        "\n"
        "error: app.yaml:7:29: compile expression \"bdy.x\": undeclared reference to 'bdy'\n"
        "    7 |         settings: { value: 'bdy.x' }\n"
        "      |                             ^^^\n"
        "hint: did you mean `body`?\n",
        2,
    )


def test_in_a_pipe_each_problem_is_a_record(validate: Any) -> None:
    assert validate(BAD) == (
        "",
        'level=ERROR msg="config problem" error="block \\"set-paylod\\" not registered" '
        'file=app.yaml line=4 column=15 hint="did you mean `set-payload`?"\n'
        'level=ERROR msg="config problem" error="compile expression \\"bdy.x\\": undeclared reference to \'bdy\'" '
        'file=app.yaml line=7 column=29 hint="did you mean `body`?"\n'
        'level=ERROR msg="cli stopped with error" error="app.yaml:4:15: block \\"set-paylod\\" not registered\\n'
        'app.yaml:7:29: compile expression \\"bdy.x\\": undeclared reference to \'bdy\'" '
        'file=app.yaml line=4 column=15 hint="did you mean `set-payload`?"\n',
        2,
    )


def test_json_holds_the_problems(validate: Any) -> None:
    outcome = validate(BAD, "--json", terminal="out err")

    assert outcome.stdout == (
        '{"ok":false,"problems":['
        '{"column":15,"file":"app.yaml","hint":"did you mean `set-payload`?","line":4,'
        '"message":"block \\"set-paylod\\" not registered","severity":"error"},'
        '{"column":29,"file":"app.yaml","hint":"did you mean `body`?","line":7,'
        '"message":"compile expression \\"bdy.x\\": undeclared reference to \'bdy\'","severity":"error"}]}\n'
    )
    assert outcome.status == 2


WARNED = "flows: [{name: relay}]\n---\nmore: 1\n"


def test_a_warning_does_not_fail(validate: Any) -> None:
    stdout, stderr, status = validate(WARNED, terminal="out err")

    assert stdout == "app.yaml is valid: 1 flow, 0 connectors, 0 blocks\n"
    assert stderr.startswith("warning: app.yaml:2:1: ")
    assert status == 0


def test_under_strict_a_warning_is_a_problem(validate: Any) -> None:
    stdout, stderr, status = validate(WARNED, "--strict", terminal="out err")

    assert stdout == ""
    assert stderr.startswith("error: app.yaml:2:1: ")
    assert status == 2


def test_explain_says_what_a_block_came_out_as(validate: Any) -> None:
    assert validate(GOOD, "--explain", "relay.stamp", terminal="out err") == (
        "address: relay.stamp\n"
        "type: set-variable\n"
        "label: set-variable\n"
        "from: app.yaml:8:9\n"
        "settings:\n"
        "  name: stage  # app.yaml:4:23\n"
        "  value: '\"end\"'  # app.yaml:9:28\n",
        "",
        0,
    )
    assert validate(GOOD, "--explain", "relay.stamp", "--json", terminal="out err").stdout == (
        '{"address":"relay.stamp","type":"set-variable","label":"set-variable","from":"app.yaml:8:9","settings":'
        '{"name":{"from":"app.yaml:4:23","value":"stage"},"value":{"from":"app.yaml:9:28","value":"\\"end\\""}}}\n'
    )


AGENT = """\
connectors: [{name: model, type: llm-scripted, settings: {turns: [{text: done}]}}]
flows:
  - name: ask
    process:
      - type: ai-agent
        name: helper
        connector: model
        prompt: |
          You help: 1 < 2.
          Be brief.
        tools:
          - name: look
            description: Look something up
            inputSchema: '{"required": ["n"], "properties": {"n": {"maximum": 1e6}}}'
            process:
              - type: set-variable
                name: note
                settings: {name: seen, value: body.n}
"""


def test_explain_lays_a_block_out_as_one_would_write_it(validate: Any) -> None:
    assert validate(AGENT, "--explain", "ask.helper", terminal="out err") == (
        """\
address: ask.helper
type: ai-agent
label: helper
from: app.yaml:5:9
settings:
  connector: model  # app.yaml:7:20
  prompt: |  # app.yaml:8:17
    You help: 1 < 2.
    Be brief.
  outputType: text  # default
  maxIterations: 8  # default
  maxParallelTools: 10  # default
  contextMaxTokens: 200000  # default
  memoryCompaction: prune  # default
  tools:  # app.yaml:12:11
  - name: look
    description: Look something up
    inputSchema:
      required:
      - n
      properties:
        n:
          maximum: 1000000
    validateInput: true
    idempotent: false
    process:
    - type: set-variable
      label: note
      settings:
        name: seen
        value: body.n
    webSearch: false
  omitFromConversation: false  # default
  stream: false  # default
  memoryVolatile: false  # default
  userMemory: false  # default
  keepAttachments: false  # default
  answer: json  # default
what the model may call:
  look (process)
    n: by the model
""",
        "",
        0,
    )


def test_explain_names_what_exists_when_the_address_is_wrong(validate: Any) -> None:
    assert validate(GOOD, "--explain", "relay.stmp", terminal="err") == (
        "",
        'error: `relay.stmp`: no block "stmp" in that chain (blocks: stamp, log)\nhint: did you mean `stamp`?\n',
        2,
    )


def test_a_config_that_does_not_exist_is_a_problem(octo: Any) -> None:
    stdout, stderr, status = octo("validate", "--config", "none.yaml")

    assert (stdout, status) == ("", 2)
    assert "none.yaml" in stderr


LINKED = """\
connectors:
  - {name: m, type: llm-scripted, settings: {turns: [{text: x}]}}
agents:
  - name: triage
    connector: m
    prompt: Sort.
    tools:
      - {name: search, inputs: {index: all}, process: []}
flows:
  - name: f
    process:
      - type: ai-agent
        name: sort
        agent: triage
        toolInputs: {search: {tenant: {expr: body.tenant}}}
"""


def test_a_link_to_no_agent_is_a_problem(validate: Any, tmp_path: Path) -> None:
    assert validate(LINKED.replace("agent: triage", "agent: triag"), terminal="out err") == (
        "",
        'error: app.yaml:14:16: agent "triag" not found\n'
        "   14 |         agent: triag\n"
        "      |                ^\n"
        "hint: did you mean `triage`?\n",
        2,
    )
    assert not (tmp_path / ".octo").exists()


def test_what_a_link_says_without_effect_is_a_warning(validate: Any) -> None:
    text = LINKED.replace("toolInputs: {search:", "toolInputs: {serch:")
    warning = "ai-agent: no tool `serch` is there to bind"

    assert validate(text, terminal="out err").stderr.startswith(f"warning: app.yaml:15:29: {warning}\n")
    assert validate(text, "--strict").status == 2


def test_a_linked_agent_is_explained_with_who_says_what(validate: Any) -> None:
    assert validate(LINKED, "--explain", "f.sort", terminal="out err") == (
        "address: f.sort\n"
        "type: ai-agent\n"
        "label: sort\n"
        "from: app.yaml:12:9\n"
        "settings:\n"
        "  agent: triage  # app.yaml:14:16\n"
        "  toolInputs:  # app.yaml:15:21\n"
        "    search:\n"
        "      tenant:\n"
        "        expr: body.tenant\n"
        "  connector: m  # agent triage\n"
        "  prompt: Sort.  # agent triage\n"
        "what the model may call:\n"
        "  search (process)\n"
        '    index: {"value":"all"}  # agent triage\n'
        '    tenant: {"expr":"body.tenant"}  # app.yaml:15:39\n',
        "",
        0,
    )
