"""octo/agent/asking.py: blocks that are no agents on real wires, and who pays for their calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from octo.errors import BlockError
from octo.testing.harness import runtime
from vendor import AnthropicServer, call, reply

ROUTER = """
      - type: ai-router
        connector: claude
        prompt: Choose.
        routes: [{name: a, description: A., process: [{type: set-payload, value: '"a"'}]}]
"""
MAPPING = """
      - {type: ai-mapping, connector: claude, prompt: Map.}
"""
RETRY = """
      - type: ai-retry
        connector: claude
        prompt: Mend.
        process: [{type: set-payload, value: body.qty}]
"""
DECIDES = reply(calls=[call("get_body", {})]), reply(calls=[call("select_route", {"route": "a"})])
MAPS = (reply("1"),)
MENDS = (reply(calls=[call("revise_message", {"body": {"qty": 1}})]),)


async def run(server: AnthropicServer, blocks: str, **settings: Any) -> Any:
    """Run a flow of these blocks on the server; the body that came out."""
    given = json.dumps({"apiKey": "sk-ant-x", "baseURL": server.url, **settings})
    text = f"connectors: [{{name: claude, type: llm-anthropic, settings: {given}}}]\n"
    async with runtime(f"{text}flows:\n  - name: f\n    process:{blocks}") as octo:
        return (await octo.invoke("f", {"x": 1})).body


BLOCKS = pytest.mark.parametrize(
    ("blocks", "script", "body"),
    [(ROUTER, DECIDES, "a"), (MAPPING, MAPS, 1), (RETRY, MENDS, 1)],
    ids=["router", "mapping", "retry"],
)


@BLOCKS
async def test_the_vendor_takes_what_is_sent(blocks, script, body):
    with AnthropicServer(list(script)) as server:
        assert await run(server, blocks) == body

    assert server.refusals == []


@BLOCKS
@pytest.mark.parametrize(("cache", "marked"), [("auto", False), ("on", True), ("off", False)])
async def test_prompts_are_marked_for_caching_only_where_the_connector_says_so(blocks, script, body, cache, marked):
    with AnthropicServer(list(script)) as server:
        await run(server, blocks, promptCache=cache)

    assert ["cache_control" in json.dumps(request.json) for request in server.requests] == [marked] * len(script)


async def test_a_model_that_thinks_can_be_forced_to_choose_a_route():
    with AnthropicServer(list(DECIDES)) as server:
        assert await run(server, ROUTER, thinking="adaptive") == "a"

    assert [(request.json["tool_choice"]["type"], "thinking" in request.json) for request in server.requests] == [
        ("any", False),
        ("any", False),
    ]
    assert server.refusals == []


async def test_an_agent_pays_for_the_models_in_its_tools():
    text = """
      connectors:
        - name: boss
          type: llm-scripted
          settings:
            turns:
              - {calls: [{name: map}], usage: {inputTokens: 1, outputTokens: 1}}
        - name: clerk
          type: llm-scripted
          settings: {turns: [{text: 1, usage: {inputTokens: 60, outputTokens: 40}}]}
      flows:
        - name: f
          process:
            - type: ai-agent
              connector: boss
              prompt: Do it.
              budget: {maxTokens: 100}
              tools:
                - name: map
                  description: Maps.
                  process: [{type: ai-mapping, connector: clerk, prompt: Map.}]
    """
    async with runtime(text) as octo:
        with pytest.raises(BlockError) as error:
            await octo.invoke("f", {})

    assert error.value.message == 'block "ai-agent": ai-agent: budget exceeded, and no default path is configured'
