"""A config with everything that can be drawn, for the tests of drawings."""

from __future__ import annotations

from pathlib import Path

import octo
from octo.graph.picture import Picture, draw

SECRET = "sk-ant-0123456789"

SHOP = """\
service: { name: shop }
env:
  - { name: API_KEY, required: true }
connectors:
  - { name: claude, type: llm-anthropic, settings: { apiKey: "${API_KEY}" } }
  - { name: crm, type: http-client, settings: { baseURL: "https://crm.example" } }
  - { name: spare, type: http-client, settings: { baseURL: "https://other.example" } }
processors:
  - { name: stamp, type: set-variable, settings: { name: stage, value: '"start"' } }
flows:
  - name: answer
    description: Answer a ticket.
    process:
      - ref: stamp
      - type: switch
        name: kind
        cases:
          - when: 'body.kind == "mail"'
            name: mail
            process: [ { type: log, settings: { message: '"mail"' } } ]
        default: { process: [] }
      - type: ai-agent
        name: clerk
        connector: claude
        prompt: |
          Help.
          The key is ${API_KEY}.
        tools:
          - name: find
            description: Finds a customer.
            inputSchema: { type: object }
            process: [ { type: rest, settings: { connector: crm, path: '"/c"' } } ]
        default: { process: [ { type: flow-ref, name: hand-over, settings: { flow: later, oneWay: true } } ] }
    error:
      - { type: set-payload, settings: { value: vars.error } }
  - name: later
    process:
      - type: handle-errors
        process: [ { type: rest, settings: { connector: crm, path: '"/t"' } } ]
        error: [ { type: log, settings: { message: '"down"' } } ]
"""

SERVING = """\
connectors:
  - { name: jobs, type: queue }
  - { name: idle, type: queue }
flows:
  - name: fetch
    source: { type: cron, settings: { schedule: "@every 1h" } }
    process: [ { type: log, settings: { message: '"fetch"' } } ]
  - name: read
    source: { type: queue, connector: jobs, settings: { subject: page } }
"""


def picture(folder: Path, text: str = SHOP, flow: str | None = None) -> Picture:
    """The picture of a config, or of one of its flows."""
    (folder / "app.yaml").write_text(text, encoding="utf-8")
    return draw(octo.load(folder / "app.yaml", environ={"API_KEY": SECRET}, cwd=folder), flow)


def named(*names: str) -> str:
    """A config in which the names stand wherever one may: of flows, blocks and tools; JSON is YAML."""
    import json

    blocks = [{"type": "set-payload", "name": name, "settings": {"value": json.dumps(name)}} for name in names]
    return json.dumps({"flows": [{"name": f"{name} {index}", "process": blocks} for index, name in enumerate(names)]})


HANDS = """\
connectors:
  - { name: boss, type: llm-scripted, settings: { turns: [ { text: x } ] } }
  - { name: hand, type: llm-scripted, settings: { turns: [ { text: x } ] } }
flows:
  - name: main
    process:
      - type: ai-agent
        name: lead
        connector: boss
        prompt: Do it.
        tools:
          - name: research
            description: Finds out.
            agent:
              connector: hand
              prompt: Look.
              tools:
                - { name: look, flow: look-up }
                - { name: note, process: [ { type: log, settings: { message: '"n"' } } ] }
          - { name: gone, flow: nowhere }
          - { webSearch: true }
  - { name: look-up, process: [ { type: log, settings: { message: '"l"' } } ] }
"""
"""An agent whose tools are an agent, a flow that is not there, and a search of the web."""
