"""octo_cli/agents/links.py, octo/agent/folding.py: octo agents check, pin, save and unlink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CONFIG = """\
env:
  - name: TONE
    default: kindly
connectors:
  - name: m
    type: llm-scripted
    settings: {turns: [{text: hi}]}
agents:
  - name: triage
    connector: m
    prompt: Answer ${TONE}.
    enabledTools: [search]
    tools:
      - name: search
        inputs: {index: all_docs}
        process: []
flows:
  - name: f
    process:
      # sorts
      - type: ai-agent
        name: sort
        # which
        agent: triage  # the one
        toolInputs: {search: {query: {expr: body.q}}}
        input: body.q
      - type: ai-agent  # does
        name: do
        input: body
        # how
        connector: m
        prompt: Do it for ${TONE}.
        tools:
          - {name: t, description: d, process: [], inputs: {x: {expr: body.y}}}
"""
SAVED = """\
      - type: ai-agent  # does
        name: do
        input: body
        # how
        agent: team/doer
"""
UNLINKED = """\
      - type: ai-agent
        name: sort
        # which
        connector: m
        prompt: Answer ${TONE}.
        enabledTools:
          - search
        tools:
          - name: search
            description: search
            inputs:
              index: all_docs
              query:
                expr: body.q
            process: []
        input: body.q
"""


@pytest.fixture
def agents(octo: Any, tmp_path: Path) -> Any:
    (tmp_path / "a.yaml").write_text(CONFIG, encoding="utf-8")

    def call(verb: str, *args: str, **more: Any) -> Any:
        return octo("agents", verb, "--config", "a.yaml", *args, **more)

    return call


@pytest.fixture
def stored(octo: Any, agents: Any) -> None:
    """The declared agents are in the store."""
    octo("invoke", "--config", "a.yaml", "--flow", "f", "--data", '{"q": "x"}')


def block_lines(text: str) -> str:
    """A block as it is printed alone."""
    return text.replace("\n        ", "\n").removeprefix("      - ")


# ---------------------------------------------------------------- check


def test_links_with_nothing_wrong(agents: Any) -> None:
    assert agents("check", terminal="out err") == ("1 link, nothing wrong\n", "", 0)
    assert json.loads(agents("check").stdout) == {
        "ok": True,
        "links": [{"block": "f.sort", "agent": "triage", "pinned": False, "version": None}],
        "problems": [],
    }


def test_what_is_wrong_is_told_and_nothing_is_written(agents: Any, tmp_path: Path) -> None:
    text = CONFIG.replace("enabledTools: [search]", "enabledTools: []").replace("{search:", "{serch:")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")

    assert agents("check", terminal="out err") == (
        "",
        "warning: a.yaml:25:29: ai-agent: no tool `serch` is there to bind\n"
        "   25 |         toolInputs: {serch: {query: {expr: body.q}}}\n"
        "      |                             ^\n"
        "hint: did you mean `search`?\n"
        'warning: agent "triage": no block lets the model call tool `search`\n'
        "hint: add it to `enabledTools`, or remove it from the agent\n",
        2,
    )
    assert not (tmp_path / ".octo").exists()


# ---------------------------------------------------------------- pin


def test_a_declared_agent_that_no_run_has_stored_yet_is_pinned(octo: Any, agents: Any, tmp_path: Path) -> None:
    would = {"pinned": [{"block": "f.sort", "agent": "triage", "version": 1}], "written": False}
    assert json.loads(agents("pin", "--no-write").stdout) == would
    assert not (tmp_path / ".octo").exists()

    assert agents("pin", terminal="out err") == (
        "pinned f.sort to triage@1\n",
        "deployed triage v1\nchanged a.yaml\n",
        0,
    )
    octo("invoke", "--config", "a.yaml", "--flow", "f", "--data", '{"q": "x"}')
    assert [one["version"] for one in json.loads(octo("agents", "list").stdout)["agents"]] == [1]


@pytest.mark.usefixtures("stored")
def test_a_pin_is_written_into_the_config_and_every_comment_stays(agents: Any, tmp_path: Path) -> None:
    assert agents("pin", terminal="out err") == ("pinned f.sort to triage@1\n", "changed a.yaml\n", 0)
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == CONFIG.replace("agent: triage ", "agent: triage@1 ")
    assert agents("pin", terminal="out err") == ("nothing to pin\n", "", 0)
    assert json.loads(agents("pin").stdout) == {"pinned": [], "written": False}


@pytest.mark.usefixtures("stored")
def test_a_link_that_is_a_mapping_in_braces_becomes_a_text(agents: Any, tmp_path: Path) -> None:
    text = CONFIG.replace("agent: triage ", "agent: {name: triage} ")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")

    assert json.loads(agents("pin").stdout) == {
        "pinned": [{"block": "f.sort", "agent": "triage", "version": 1}],
        "written": True,
    }
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == CONFIG.replace("agent: triage ", "agent: triage@1 ")


@pytest.mark.usefixtures("stored")
def test_a_link_that_is_a_mapping_on_lines_of_its_own_gets_a_version(agents: Any, tmp_path: Path) -> None:
    text = CONFIG.replace("        agent: triage ", "        agent:\n          name: triage ")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    agents("pin")

    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == text.replace(
        "          name: triage  # the one\n", "          name: triage  # the one\n          version: 1\n"
    )


@pytest.mark.usefixtures("stored")
def test_a_pin_can_be_looked_at_first(agents: Any, tmp_path: Path) -> None:
    assert agents("pin", "triage", "--no-write", terminal="out err") == ("would pin f.sort to triage@1\n", "", 0)
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == CONFIG


@pytest.mark.usefixtures("stored")
def test_an_agent_that_the_config_does_not_link_cannot_be_pinned(agents: Any) -> None:
    assert agents("pin", "triag", terminal="out err") == (
        "",
        'error: agent "triag" not found\nhint: did you mean `triage`?\n',
        2,
    )


@pytest.mark.usefixtures("stored")
def test_links_of_processors_and_of_tools_are_pinned_once(agents: Any, tmp_path: Path) -> None:
    text = CONFIG.replace("agent: triage  # the one", "agent: triage@1").replace(
        "flows:\n",
        "processors:\n  - {name: p, type: ai-agent, settings: {agent: triage}}\nflows:\n"
        "  - {name: g, process: [{ref: p}, {ref: p}]}\n"
        "  - {name: h, process: [{type: ai-agent, connector: m, prompt: x, tools: [{name: t, agent: triage}]}]}\n",
    )
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")

    assert agents("pin", terminal="out err").status == 0
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == text.replace(
        "{agent: triage}", "{agent: triage@1}"
    ).replace("name: t, agent: triage}", "name: t, agent: triage@1}")


# ---------------------------------------------------------------- save


def test_an_agent_of_a_block_becomes_one_with_a_name(agents: Any, octo: Any, tmp_path: Path) -> None:
    saved = agents("save", "--flow", "f", "--block", "do", "--name", "team/doer", terminal="out err")

    assert saved == (block_lines(SAVED), "deployed team/doer v1\n", 0)
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == CONFIG
    assert json.loads(octo("agents", "show", "team/doer").stdout)["value"] == {
        "connector": "m",
        "prompt": "Do it for ${TONE}.",
        "tools": [{"name": "t", "description": "d", "inputs": {"x": {"expr": "body.y"}}, "process": []}],
    }


def test_the_block_in_the_file_links_it_on_request(agents: Any, tmp_path: Path) -> None:
    agents("save", "--flow", "f", "--block", "do", "--name", "team/doer", "--write")

    start = CONFIG.index("      - type: ai-agent  # does")
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == CONFIG[:start] + SAVED


def test_saving_and_unlinking_loses_nothing(agents: Any, octo: Any, tmp_path: Path) -> None:
    place = ("--flow", "f", "--block", "do")
    before = json.loads(octo("validate", "--config", "a.yaml", "--explain", "f.do").stdout)
    agents("save", *place, "--name", "team/doer", "--write")
    agents("unlink", *place, "--write")
    after = json.loads(octo("validate", "--config", "a.yaml", "--explain", "f.do").stdout)

    assert {key: found["value"] for key, found in after["settings"].items()} == {
        key: found["value"] for key, found in before["settings"].items()
    }


def test_a_block_that_was_saved_can_be_linked_afterwards(agents: Any, tmp_path: Path) -> None:
    place = ("--flow", "f", "--block", "do", "--name", "team/doer")
    agents("save", *place)

    again = agents("save", *place, "--write", terminal="out err")
    assert again == (block_lines(SAVED), "team/doer: unchanged at v1\nchanged a.yaml\n", 0)
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8").endswith(SAVED)


def test_a_name_that_the_config_declares_is_taken(agents: Any) -> None:
    assert agents("save", "--flow", "f", "--block", "do", "--name", "triage", terminal="out err") == (
        "",
        'error: a.yaml:9:5: an agent "triage" is declared here\nhint: choose another name\n',
        2,
    )
    assert [one["name"] for one in json.loads(agents("list").stdout)["agents"]] == ["triage"]


def test_an_agent_of_that_name_stays_as_it_is(agents: Any, tmp_path: Path) -> None:
    agents("save", "--flow", "f", "--block", "do", "--name", "doer")
    (tmp_path / "a.yaml").write_text(CONFIG.replace("Do it for", "Do all for"), encoding="utf-8")

    assert agents("save", "--flow", "f", "--block", "do", "--name", "doer", terminal="out err") == (
        "",
        'error: there is an agent "doer" already\nhint: choose another name\n',
        2,
    )


@pytest.mark.parametrize(
    ("verb", "block", "more", "message"),
    [
        pytest.param(
            "save",
            "sort",
            ["--name", "x"],
            "error: `f.sort` links an agent already\nhint: `octo agents unlink` puts it into the block\n",
            id="linked",
        ),
        pytest.param(
            "save",
            "do",
            ["--name", "../x"],
            "error: `../x` is no name of an agent\n"
            "hint: a name is made of segments with `/` between them; a segment has letters, "
            "digits, `_`, `.` and `-`, and begins with a letter, a digit or `_`\n",
            id="name",
        ),
        pytest.param(
            "unlink",
            "do",
            [],
            "error: `f.do` links no agent\nhint: `octo agents save` makes one of what it says\n",
            id="inline",
        ),
        pytest.param(
            "unlink",
            "dp",
            [],
            'error: `f.dp`: no block "dp" in that chain (blocks: sort, do)\n',
            id="no block",
        ),
    ],
)
def test_what_cannot_be_done_is_said(agents: Any, verb: str, block: str, more: list[str], message: str) -> None:
    assert agents(verb, "--flow", "f", "--block", block, *more, terminal="out err") == ("", message, 2)


# ---------------------------------------------------------------- unlink


def test_a_block_is_printed_with_all_that_its_agent_says(agents: Any, tmp_path: Path) -> None:
    unlinked = agents("unlink", "--flow", "f", "--block", "sort", terminal="out err")

    assert unlinked == (block_lines(UNLINKED), "1 comment is not in it, of what was replaced\n", 0)
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == CONFIG


def test_the_block_in_the_file_holds_it_on_request(agents: Any, octo: Any, tmp_path: Path) -> None:
    agents("unlink", "--flow", "f", "--block", "sort", "--write")

    start, end = CONFIG.index("      - type: ai-agent\n"), CONFIG.index("      - type: ai-agent  # does")
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == CONFIG[:start] + UNLINKED + CONFIG[end:]
    assert octo("validate", "--config", "a.yaml").status == 0


def test_bindings_of_tools_that_there_are_not_stay_on_the_block(agents: Any, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CONFIG.replace("{search: {query", "{gone: {query"), encoding="utf-8")

    unlinked = agents("unlink", "--flow", "f", "--block", "sort", terminal="out").stdout
    assert unlinked.endswith("toolInputs:\n  gone:\n    query:\n      expr: body.q\ninput: body.q\n")


def test_a_prompt_in_a_file_stays_there(agents: Any, tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("Answer.", encoding="utf-8")
    text = CONFIG.replace("prompt: Answer ${TONE}.", "prompt: {resource: p.md}")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")

    unlinked = agents("unlink", "--flow", "f", "--block", "sort", terminal="out").stdout
    assert "prompt:\n  resource: p.md\n" in unlinked


def test_an_agent_without_tools_stays_linked(agents: Any, tmp_path: Path) -> None:
    text = CONFIG.replace(
        "    tools:\n      - name: search\n        inputs: {index: all_docs}\n        process: []\n", ""
    )
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")

    assert agents("unlink", "--flow", "f", "--block", "sort", terminal="out err") == (
        "",
        "error: the agent has no tools, and in a block it needs one\nhint: leave the link as it is\n",
        2,
    )
