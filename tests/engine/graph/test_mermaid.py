"""octo/graph/mermaid.py: a config as a Mermaid flowchart, which Mermaid itself reads."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from browser import in_browser
from drawn import HANDS, SERVING, SHOP, named, picture
from mutants import SOURCES
from octo.graph.mermaid import lines

MERMAID = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "octo-tests" / "mermaid.min.js"
ODD = [
    'say "hi"',
    "a & b < c",
    "#35; [x]{y}(z)",
    "`code` **bold**",
    "end",
    "subgraph",
    "ünï→",
    "a;b|c",
    "%%",
    "1. item",
    "\\n",
]


def chart(text: str, folder: Path) -> str:
    return "\n".join(lines(picture(folder, text)))


def in_mermaid(folder: Path, charts: list[str]) -> list[list[str]]:
    """The texts of the nodes that Mermaid draws for each chart, or what it says against it."""
    page = f'<!doctype html><meta charset="utf-8"><body><script src="{MERMAID.as_uri()}"></script></body>'
    script = f"""
        mermaid.initialize({{startOnLoad: false}});
        const drawn = [];
        for (const [index, chart] of {json.dumps(charts)}.entries()) {{
            try {{
                const box = document.createElement("div");
                document.body.append(box);
                box.innerHTML = (await mermaid.render(`chart${{index}}`, chart)).svg;
                drawn.push([...box.querySelectorAll(".node .nodeLabel p")].map(label => label.textContent));
            }} catch (error) {{ drawn.push(["fault", error.message]) }}
        }}
        return drawn;
    """
    drawn: list[list[str]] = in_browser(folder, page, script.replace("</", "<\\/"), patient=True)
    return drawn


def test_a_config_is_a_flowchart(tmp_path):
    config = """
        connectors: [ { name: m, type: llm-scripted, settings: { turns: [ { text: hi } ] } } ]
        flows:
          - name: main
            process:
              - type: ai-agent
                name: clerk
                connector: m
                prompt: Help.
                tools: [ { name: look, description: Looks., process: [ { type: log } ] } ]
                default: { process: [] }
              - { type: flow-ref, settings: { flow: other } }
            error: [ { type: log } ]
          - name: other
            process: []
        """

    assert chart(config, tmp_path) == (
        """\
flowchart TD
  subgraph f1s["main"]
    f1(["main"]):::flow
    b1{{"clerk<br/>ai-agent"}}
    f1 ==> b1
    b2["log"]:::tool
    b1 -.->|"tool look"| b2
    b1 -->|"default"| b1n2(( ))
    b3["flow-ref"]
    b1 ==> b3
    b4["log"]:::error
    f1 -.->|"on error"| b4
  end
  subgraph f2s["other"]
    f2(["other"]):::flow
  end
  c1[("m<br/>llm-scripted")]:::connector
  b1 -.- c1
  b3 -. calls .-> f2
  classDef flow stroke:#2563eb,stroke-width:2px
  classDef source stroke:#16a34a,stroke-width:2px
  classDef tool stroke:#7c3aed
  classDef error stroke:#dc2626
  classDef connector stroke:#64748b,stroke-dasharray:4 3"""
    )


def test_a_source_stands_before_its_flow(tmp_path):
    found = chart(SERVING, tmp_path).splitlines()

    assert [line.strip() for line in found if "f1i" in line or "f2i" in line] == [
        'f1i>"cron<br/>schedule#58; #64;every 1h"]:::source',
        "f1i ==> f1",
        'f2i>"queue<br/>subject#58; page"]:::source',
        "f2i ==> f2",
        "f2i -.- c1",
    ]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> dict[str, list[str]]:
    """What Mermaid draws of each sample, of a config with everything in it, and of one with odd names."""
    folder = tmp_path_factory.mktemp("mermaid")
    configs = {
        "shop": SHOP,
        "serving": SERVING,
        "odd": named(*ODD),
        "structures": SOURCES["structures"],
        "empty": "flows: []",
    }
    charts = {name: chart(text, folder) for name, text in configs.items()}
    return dict(zip(charts, in_mermaid(folder, list(charts.values())), strict=True))


def test_mermaid_draws_every_chart(drawn):
    assert {name: texts for name, texts in drawn.items() if texts[:1] == ["fault"]} == {}
    assert len(drawn["structures"]) > 15


def test_mermaid_shows_names_letter_by_letter(drawn):
    names = [text.removesuffix("set-payload") for text in drawn["odd"] if text.endswith("set-payload")]

    assert {name.replace("\u200b", "") for name in names} == set(ODD)


def test_a_long_name_is_cut(tmp_path):
    assert f'["{"x" * 59}…<br/>set-payload"]' in chart(named("x" * 100), tmp_path)


def test_a_tool_that_is_a_flow_is_an_arrow_to_it_and_one_that_is_elsewhere_a_node(tmp_path):
    drawn = [line.strip() for line in chart(HANDS, tmp_path).split("\n")]

    assert [line for line in drawn if '"tool ' in line] == [
        'b1 -.->|"tool research"| b2',
        'b2 -.->|"tool note"| b3',
        'b1 -.->|"tool gone"| b1n2(["nowhere"]):::tool',
        'b1 -.->|"tool web search"| b1n3(["the web"]):::tool',
        'b2 -.->|"tool look"| f2',
    ]


def test_a_chain_that_only_watches_is_drawn_apart(tmp_path: Path):
    text = """
connectors: [{ name: m, type: llm-scripted, settings: { turns: [{ text: x }] } }]
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Do it.
        tools: [{ name: t, description: x, process: [{ type: set-payload, value: '1' }] }]
        events: { process: [{ type: log, name: hear, message: '1' }] }
"""
    drawn = chart(text, tmp_path).splitlines()

    assert [line.strip() for line in drawn if "events" in line or "hear" in line] == [
        'b3["hear<br/>log"]',
        'b1 -.->|"events"| b3',
    ]


def test_an_agent_that_is_linked_stands_in_its_block(tmp_path):
    text = """
connectors:
  - { name: m, type: llm-scripted, settings: { turns: [ { text: x } ] } }
agents:
  - { name: desk, connector: m, prompt: Answer. }
flows:
  - { name: f, process: [ { type: ai-agent, name: live, agent: desk } ] }
"""
    assert '    b1["live<br/>ai-agent<br/>agent desk"]' in list(lines(picture(tmp_path, text)))
