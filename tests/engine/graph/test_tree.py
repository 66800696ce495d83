"""octo/graph/tree.py: a config as a tree for the terminal."""

from __future__ import annotations

from drawn import HANDS, SERVING, picture
from octo.graph.tree import Line, Span, cut, lines


def text(line: Line) -> str:
    return "".join(span.text for span in line)


def test_the_tree_shows_flows_blocks_branches_and_connectors(tmp_path):
    assert "\n".join(map(text, lines(picture(tmp_path)))) == (
        """\
answer  Answer a ticket.
├─ set-variable  stamp  name: stage, value: "start"
├─ switch  kind
│  ├─ mail  when: body.kind == "mail"
│  │  └─ log  message: "mail"
│  └─ default  (nothing)
├─ ai-agent  clerk  [claude]  prompt: Help. The key is ***.
│  ├─ tool find  Finds a customer.
│  │  └─ rest  [crm]  path: "/c"
│  └─ default
│     └─ flow-ref  hand-over  → later  oneWay: true
└─ on error
   └─ set-payload  value: vars.error

later  called by answer
└─ handle-errors
   ├─ process
   │  └─ rest  [crm]  path: "/t"
   └─ error
      └─ log  message: "down"

connectors
├─ claude  llm-anthropic  used by answer.clerk
├─ crm  http-client  used by answer.clerk[find].rest, later.handle-errors[process].rest
└─ spare  http-client  used by nothing"""
    )


def test_the_tree_shows_where_flows_take_their_messages_from(tmp_path):
    assert "\n".join(map(text, lines(picture(tmp_path, SERVING)))) == (
        """\
fetch
├─ from cron  schedule: @every 1h
└─ log  message: "fetch"

read
└─ from queue  [jobs]  subject: page

connectors
├─ jobs  queue  feeds read
└─ idle  queue  used by nothing"""
    )


def test_a_long_setting_is_shortened(tmp_path):
    config = f"flows: [{{name: f, process: [{{type: log, settings: {{message: '\"{'x' * 200}\"'}}}}]}}]"

    assert text(list(lines(picture(tmp_path, config)))[1]) == f'└─ log  message: "{"x" * 69}…'


def test_a_line_can_be_cut_to_a_width():
    line = (Span("└─ ", "faint"), Span("log", "type"), Span("  level: warn"))

    assert [text(cut(line, width)) for width in (None, 19, 18, 6, 5, 1)] == [
        "└─ log  level: warn",
        "└─ log  level: warn",
        "└─ log  level: wa…",
        "└─ lo…",
        "└─ l…",
        "…",
    ]


def test_routes_and_the_chains_of_a_retry_are_branches(tmp_path):
    config = """
      connectors: [{name: model, type: llm-scripted, settings: {turns: [{text: x}]}}]
      flows:
        - name: sort
          process:
            - type: ai-router
              connector: model
              prompt: Choose.
              routes:
                - {name: billing, description: It is about money., process: [{type: log, message: body}]}
                - {name: others, description: All the rest.}
              default: {process: [{type: log, message: '"nobody"'}]}
            - type: ai-retry
              connector: model
              prompt: Mend.
              process: [{type: log, message: body.x}]
              error: [{type: log, message: vars.error}]
    """

    assert "\n".join(map(text, lines(picture(tmp_path, config)))) == (
        """\
sort
├─ ai-router  [model]  prompt: Choose.
│  ├─ billing  It is about money.
│  │  └─ log  message: body
│  ├─ others  All the rest.  (nothing)
│  └─ default
│     └─ log  message: "nobody"
└─ ai-retry  [model]  prompt: Mend.
   ├─ process
   │  └─ log  message: body.x
   └─ error
      └─ log  message: vars.error

connectors
└─ model  llm-scripted  used by sort.ai-router, sort.ai-retry"""
    )


def test_tools_that_are_agents_flows_and_a_search_of_the_web_are_shown(tmp_path):
    assert "\n".join(map(text, lines(picture(tmp_path, HANDS)))) == (
        """\
main
└─ ai-agent  lead  [boss]  prompt: Do it.
   ├─ tool research  Finds out.
   │  └─ ai-agent  [hand]  prompt: Look.
   │     ├─ tool look  → look-up
   │     └─ tool note
   │        └─ log  message: "n"
   ├─ tool gone  → nowhere
   └─ tool web search  → the web

look-up  called by main
└─ log  message: "l"

connectors
├─ boss  llm-scripted  used by main.lead
└─ hand  llm-scripted  used by main.lead[research].ai-agent"""
    )


def test_an_agent_that_is_linked_stands_beside_its_block(tmp_path):
    text = """
connectors:
  - { name: m, type: llm-scripted, settings: { turns: [ { text: x } ] } }
agents:
  - { name: desk, connector: m, prompt: Answer. }
flows:
  - { name: f, process: [ { type: ai-agent, name: live, agent: desk } ] }
"""
    rows = ["".join(span.text for span in line) for line in lines(picture(tmp_path, text))]

    assert rows[1] == "└─ ai-agent  live  agent desk  [m]"
