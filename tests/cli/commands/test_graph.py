"""octo_cli/commands/graph.py: a config drawn on standard output, or into a file."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFIG = """\
env: [ { name: CITY, default: Oslo } ]
flows:
  - name: one
    process:
      - { type: log, settings: { message: '"a rather long text, longer than the line of a terminal"' } }
      - { type: flow-ref, settings: { flow: two } }
  - name: two
    process: [ { type: set-payload, settings: { value: '1' } } ]
"""


@pytest.fixture
def graph(octo, tmp_path: Path):
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    return lambda *args, **more: octo("graph", "--config", "app.yaml", *args, **more)


def test_a_pipe_gets_the_tree(graph):
    assert graph().stdout == (
        "one\n"
        '├─ log  message: "a rather long text, longer than the line of a terminal"\n'
        "└─ flow-ref  → two\n"
        "\n"
        "two  called by one\n"
        "└─ set-payload  value: 1\n"
    )


def test_a_terminal_gets_lines_of_its_width_in_colour(graph, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")

    plain = graph("--flow", "one", terminal="out").stdout
    assert plain == 'one\n├─ log  message: "a rather lo…\n└─ flow-ref  → two\n'
    painted = graph("--flow", "two", terminal="out", environ={"NO_COLOR": ""}).stdout
    assert painted.splitlines()[1] == "\x1b[2m└─ \x1b[0m\x1b[36mset-payload\x1b[0m\x1b[2m  value: 1\x1b[0m"


@pytest.mark.parametrize(
    ("args", "name", "start"),
    [
        ([], "a.txt", "one\n├─ log"),
        ([], "a.mmd", "flowchart TD\n"),
        ([], "a.html", "<!doctype html>\n"),
        (["--format", "mermaid"], "a.html", "flowchart TD\n"),
        (["--format", "mermaid"], "a.md", "flowchart TD\n"),
    ],
    ids=["tree", "mermaid", "html", "format", "other"],
)
def test_a_file_is_drawn_as_its_name_says_unless_a_format_is_given(graph, tmp_path, args, name, start):
    ran = graph("--out", name, *args)

    assert (ran.stdout, ran.stderr, ran.status) == ("", "", 0)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_one_flow_can_be_drawn(graph):
    assert graph("--flow", "two").stdout == "two  called by one\n└─ set-payload  value: 1\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--flow", "tow"], 'error: flow "tow" is not registered\nhint: did you mean `two`?\n'),
        (
            ["--out", "a.PNG"],
            "error: `--out`: nothing is known of how to draw a `.PNG`\n"
            "hint: end the name in one of `.html`, `.htm`, `.mmd`, `.mermaid`, `.txt`, or say how with `--format`\n",
        ),
        (["--out", "no/a.html"], "error: `--out`: there is no directory `no`\nhint: make it first\n"),
        (
            ["--format", "svg"],
            "error: `--format`: 'svg' is not one of 'tree', 'mermaid', 'html'\nhint: see `octo graph --help`\n",
        ),
    ],
    ids=["flow", "suffix", "directory", "format"],
)
def test_what_cannot_be_drawn_is_refused(graph, args, message):
    ran = graph(*args, terminal="err")

    assert (ran.stdout, ran.stderr, ran.status) == ("", message, 2)


def test_control_characters_never_reach_the_terminal(octo, tmp_path):
    config = 'flows: [ { name: "a\\eb", process: [ { type: log, settings: { message: "\\"\\eb\\"" } } ] } ]\n'
    (tmp_path / "app.yaml").write_text(config, encoding="utf-8")

    assert octo("graph", "--config", "app.yaml").stdout == 'a\\u001bb\n└─ log  message: "\\u001bb"\n'


def test_a_config_with_problems_is_not_drawn(octo, tmp_path):
    (tmp_path / "app.yaml").write_text("flows: [ { name: f, process: [ { type: lok } ] } ]\n", encoding="utf-8")

    ran = octo("graph", "--config", "app.yaml")

    assert (ran.stdout, ran.status) == ("", 2)


LINKED = """\
connectors:
  - { name: llm, type: llm-scripted, settings: { turns: [ { text: hi } ] } }
  - { name: old, type: llm-scripted, settings: { turns: [ { text: hi } ] } }
agents:
  desk: { connector: old, prompt: p, tools: [ { name: look, process: [ { type: log, settings: { message: '1' } } ] } ] }
  boss: { connector: llm, prompt: p, tools: [ { name: ask, agent: desk@1 } ] }
flows:
  - name: main
    process:
      - { type: ai-agent, name: live, agent: desk, input: body }
      - { type: ai-agent, name: pinned, agent: desk@1, input: body }
      - { type: ai-agent, name: chief, agent: boss, input: body }
"""


def test_agents_are_drawn_as_links_lead_to_them_in_the_store(octo, tmp_path):
    (tmp_path / "app.yaml").write_text(LINKED, encoding="utf-8")
    octo("invoke", "--config", "app.yaml", "--flow", "main")
    octo("agents", "deploy", "desk", "--file", "-", stdin="connector: llm\nprompt: p\n")

    assert octo("graph", "--config", "app.yaml").stdout == (
        "main\n"
        "├─ ai-agent  live  agent desk  [llm]  input: body\n"
        "├─ ai-agent  pinned  agent desk@1  [old]  input: body\n"
        "│  └─ tool look\n"
        "│     └─ log  message: 1\n"
        "└─ ai-agent  chief  agent boss  [llm]  [old]  input: body\n"
        "   └─ tool ask  → agent desk@1\n"
        "\n"
        "connectors\n"
        "├─ llm  llm-scripted  used by main.live, main.chief\n"
        "└─ old  llm-scripted  used by main.pinned, main.chief\n"
    )


def test_a_store_that_cannot_be_read_is_told_and_what_is_declared_is_drawn(octo, tmp_path):
    (tmp_path / "app.yaml").write_text(LINKED, encoding="utf-8")
    (tmp_path / ".octo").mkdir()
    (tmp_path / ".octo" / "octo.db").write_bytes(b"no store at all, but a text")
    outcome = octo("graph", "--config", "app.yaml", terminal="err")

    assert outcome.stderr == (
        f"warning: agents are drawn as the config declares them: `{Path('.octo/octo.db')}` is not an SQLite file\n"
        "hint: move it away, or name another directory with `--store DIR`\n"
    )
    assert "├─ ai-agent  live  agent desk  [old]  input: body\n" in outcome.stdout


def test_agents_inside_a_linked_one_are_drawn_and_tools_that_cannot_be_read_are_told(octo, tmp_path):
    (tmp_path / "app.yaml").write_text(
        """\
connectors:
  - { name: llm, type: llm-scripted, settings: { turns: [ { text: hi } ] } }
  - { name: other, type: llm-scripted, settings: { turns: [ { text: hi } ] } }
agents:
  desk:
    connector: llm
    prompt: p
    tools:
      - { name: lost, description: d, process: [ { type: rest, connector: gone, method: GET, path: '"/"' } ] }
      - { name: help, agent: { connector: other, prompt: q, tools: [ { name: call, description: c, process: [] } ] } }
flows:
  - { name: main, process: [ { type: ai-agent, name: live, agent: desk } ] }
""",
        encoding="utf-8",
    )

    assert octo("graph", "--config", "app.yaml").stdout == (
        "main\n"
        "└─ ai-agent  live  agent desk  [llm]\n"
        "   ├─ tool lost  → what cannot be read  d\n"
        "   └─ tool help\n"
        "      └─ ai-agent  [other]  prompt: q\n"
        "         └─ tool call  c  (nothing)\n"
        "\n"
        "connectors\n"
        "├─ llm  llm-scripted  used by main.live\n"
        "└─ other  llm-scripted  used by main.live[help].ai-agent\n"
    )
    mermaid = octo("graph", "--config", "app.yaml", "--format", "mermaid").stdout
    assert '-.->|"tool lost"| b1n1(["what cannot be read"]):::tool\n' in mermaid
    assert "what cannot be read" in octo("graph", "--config", "app.yaml", "--format", "html").stdout
