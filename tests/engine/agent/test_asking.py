"""octo/agent/asking.py: blocks that are no agents on real wires, and who pays for their calls."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fake_model import FakeRuntime
from octo.errors import BlockError
from octo.testing.harness import config, runtime
from vendor import AnthropicServer, call, reply
from vendor.doubles import DOUBLES, Double, Offline, Said

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

    assert error.value.message == (
        'block "ai-agent": ai-agent: budget exceeded (`maxTokens` is 100, 102 are used up), '
        "and no default path is configured"
    )


# ---------------------------------------------------------------- all wires


async def over(double: Double, blocks: str, *script: Said, thinks: bool = False) -> Any:
    """Run a flow of these blocks on a model of the vendor, whose rules judge each request; the body that came out."""
    text = "connectors: [{name: claude, type: llm-scripted, settings: {turns: [{text: x}]}}]\n"
    runtime = FakeRuntime(config(f"{text}flows:\n  - name: f\n    process:{blocks}"))
    server = double.serve([double.say(said) for said in script])
    runtime.model = double.asked("http://double", Offline(server), **(double.settings if thinks else {}))
    async with runtime:
        return (await runtime.invoke("f", {"x": 1}, vars={"user": "Ada"})).body


@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
async def test_a_router_works_over_every_wire(double, thinks):
    looks = Said(calls=(("get_body", {}), ("list_variables", {}), ("get_variable", {"name": "user"})))

    assert await over(double, ROUTER, looks, Said(calls=(("select_route", {"route": "a"}),)), thinks=thinks) == "a"


@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
async def test_a_retry_works_over_every_wire(double, thinks):
    fails, helps = (Said(calls=(("revise_message", {"body": body}),)) for body in ({"y": 1}, {"qty": 2}))

    assert await over(double, RETRY, fails, helps, thinks=thinks) == 2


@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
async def test_a_mapping_works_over_every_wire(double):
    assert await over(double, MAPPING, Said('{"tier": "smb"}')) == {"tier": "smb"}


@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
async def test_a_refusal_is_no_choice_over_any_wire(double):
    assert await over(double, ROUTER, Said(refuses=True)) == {"x": 1}


@pytest.mark.parametrize(
    ("block", "script"),
    [(ROUTER, DECIDES[1:]), (MAPPING, MAPS), (RETRY, MENDS)],
    ids=["router", "mapping", "retry"],
)
async def test_a_prompt_may_stand_in_a_file(block, script):
    with AnthropicServer(list(script)) as server:
        given = json.dumps({"apiKey": "sk-ant-x", "baseURL": server.url})
        text = f"connectors: [{{name: claude, type: llm-anthropic, settings: {given}}}]\n"
        block = re.sub(r"prompt: \w+\.", "prompt: {resource: how.md}", block)
        async with runtime(f"{text}flows:\n  - name: f\n    process:{block}", files={"how.md": "With care.\n"}) as octo:
            await octo.invoke("f", {"x": 1})

    assert "\n\nWith care." in json.dumps(server.requests[0].json["system"]).replace("\\n", "\n")
