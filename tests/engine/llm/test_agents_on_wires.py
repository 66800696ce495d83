"""octo/agent/loop.py, octo/llm/wires: whole runs of an agent before the doubles of all five wires.

What was seen to go wrong elsewhere: calls that were cut off are run, empty answers pass for success, results go to the
wrong call, prompts are not the same twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo.errors import OctoError
from octo.llm.chat import Usage
from octo.llm.framing import DONE, EventFraming
from octo.observe import AgentEnded, ToolReturned
from octo.testing.harness import runtime
from soaking import examples
from vendor.doubles import DOUBLES, KEY, Double, Said

CONNECTORS = {
    "Chat Completions": "llm-openrouter",
    "Responses": "llm-openai",
    "Anthropic Messages": "llm-anthropic",
    "Gemini": "llm-gemini",
    "Bedrock Converse": "llm-bedrock",
}
ON_EACH_WIRE = pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
AGENT = """
      - type: ai-agent
        name: ag
        connector: m
        prompt: Work on it.
        {more}
        tools:
          - name: write
            description: Writes a file.
            inputSchema:
              type: object
              properties: {{path: {{type: string}}, content: {{type: string}}}}
              required: [content]
            process:
              - {{type: set-variable, settings: {{name: written, value: body}}}}
              - {{type: set-payload, settings: {{value: '{result}'}}}}
"""


class Watched:
    """What the agent did with the calls, and what it says that it used up."""

    kinds = (ToolReturned, AgentEnded)

    def __init__(self) -> None:
        self.results: list[tuple[str, str, bool]] = []
        self.usage: Usage | None = None

    def notify(self, event: Any) -> None:
        if isinstance(event, AgentEnded):
            self.usage = event.usage
        else:
            self.results.append((event.call_id, event.text, event.is_error))


def config(double: Double, url: str, *, more: str = "", result: str = '"written"') -> str:
    given = {"model": double.model, "baseURL": url + double.base, "apiKey": KEY}
    region = {"region": "eu-west-1"} if double.name == "Bedrock Converse" else {}
    connector = {"name": "m", "type": CONNECTORS[double.name], "settings": given | region}
    block = AGENT.format(more=more, result=result)
    return f"connectors: [{json.dumps(connector)}]\nflows:\n  - name: f\n    process:{block}"


async def run(double: Double, *script: Any, **more: str) -> tuple[Any, Watched, list[Any]]:
    """Run the agent: the message that came out, what was watched, and the bodies of the requests."""
    watched = Watched()
    with double.serve(script) as server:
        async with runtime(config(double, server.url, **more), observers=[watched]) as octo:
            message = await octo.invoke("f", {"x": 1})
        assert server.refusals == []
        return message, watched, [request.json for request in server.requests]


def write(arguments: Any) -> Said:
    return Said(calls=(("write", arguments),))


def parts(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False)


STREAMED = """stream: true
        emit: [text]
        events: {process: [{type: log, settings: {message: body}}]}"""
DEFAULT = "default: {process: [{type: set-payload, settings: {value: '\"gave up\"'}}]}"
WHOLE = {"path": "a", "content": "b"}


@ON_EACH_WIRE
@pytest.mark.parametrize("arguments", ['{"path":"a"', {"path": "a"}, WHOLE], ids=["broken", "incomplete", "whole"])
async def test_a_call_that_the_output_cap_cut_off_is_never_run(double: Double, arguments: Any):
    """Gemini gives arguments as objects, so a broken one cannot come; a call without them is what is left."""
    cut = double.say(replace(write(arguments), cut_off=True))
    message, _, bodies = await run(double, cut, double.say(write(WHOLE)), double.say(Said("done")))

    assert message.vars["written"] == WHOLE
    assert "maxTokens" in parts(bodies[1])

    message, watched, _ = await run(double, cut, cut, more=DEFAULT)
    assert (message.body, "written" in message.vars) == ("gave up", False)
    assert all(is_error for _, _, is_error in watched.results)


@ON_EACH_WIRE
@pytest.mark.parametrize("said", [Said(), Said(thinking="hm"), Said(" \n")], ids=["nothing", "thoughts", "space"])
async def test_an_empty_answer_is_asked_for_again_and_then_a_failure(double: Double, said: Said):
    message, _, bodies = await run(double, double.say(said), double.say(Said('"fine"')))

    assert (message.body, len(bodies)) == ("fine", 2)

    with pytest.raises(OctoError, match="the model gave an empty answer twice, and no tool ran"):
        await run(double, double.say(said), double.say(said))


@ON_EACH_WIRE
async def test_an_empty_answer_after_a_tool_leaves_what_the_tool_made(double: Double):
    message, _, _ = await run(double, double.say(write(WHOLE)), double.say(Said()))

    assert message.body == "written"


@ON_EACH_WIRE
@pytest.mark.parametrize("result", ['""', '" "', r'"\n\t"', "null"], ids=["empty", "space", "lines", "null"])
async def test_blank_results_are_taken_by_every_vendor(double: Double, result: str):
    said = double.say(replace(write(WHOLE), text=" "))
    message, _, bodies = await run(double, said, double.say(Said('"fine"')), result=result)

    assert message.body == "fine"
    assert len(bodies) == 2


@ON_EACH_WIRE
async def test_calls_of_one_tool_get_their_own_results(double: Double):
    both = Said(calls=(("write", {"content": "alpha"}), ("write", {"content": "beta"})))
    _, watched, bodies = await run(
        double, double.say(both), double.say(both), double.say(Said("done")), result="body.content"
    )

    ids = [id for id, _, _ in watched.results]
    assert len(set(ids)) == 4
    assert sorted(text.strip('"') for _, text, _ in watched.results) == ["alpha", "alpha", "beta", "beta"]
    assert parts(bodies[2]).count("alpha") == parts(bodies[2]).count("beta") == 4


@ON_EACH_WIRE
async def test_an_overload_in_a_stream_leaves_nothing_of_the_attempt_behind(double: Double):
    """A tool that was called before it is run once, for the attempt that came to its end."""
    said = double.say(replace(write(WHOLE), text="I write."))
    whole = len(await events_of(double, said))
    for place in (0, 1, whole // 2):
        broken = replace(said, faults=(double.stream_error(place),))
        message, watched, bodies = await run(double, broken, said, double.say(Said('"done"')), more=STREAMED)

        assert (message.body, len(watched.results)) == ("done", 1)
        assert parts(bodies[-1]).count("I write.") == 1


async def events_of(double: Double, said: Any) -> tuple[bytes, ...]:
    kept: list[Any] = []

    def keep(answer: Any) -> Any:
        kept.append(answer)
        return answer

    await run(double, replace(said, faults=(keep,)), double.say(Said('"done"')), more=STREAMED)
    return kept[0].pieces


@ON_EACH_WIRE
async def test_what_a_run_used_up_is_the_sum_of_its_calls(double: Double):
    _, watched, bodies = await run(double, double.say(write(WHOLE)), double.say(Said('"done"')))

    assert watched.usage is not None
    assert (watched.usage.prompt_tokens, watched.usage.output_tokens) == (20, 10)
    assert len(bodies) == 2


# ---------------------------------------------------------------- the same prompt

ENCODES = """
import json, sys
from octo.llm.chat import ChatRequest, ToolDefinition, user
from octo.llm.credentials import Credentials
from octo.llm.providers import PROVIDERS
from octo.llm.wire import Endpoint
fields = {name: {"type": "string"} for name in "zebra alpha mid".split()}
schema = {"type": "object", "properties": fields, "required": ["mid"]}
tools = tuple(ToolDefinition(name, "A tool.", schema) for name in "write append read".split())
request = ChatRequest((user(sys.argv[3]),), system="Work on it.", tools=tools, cache=True, cache_key="s/f.b")
row = PROVIDERS[sys.argv[1]]
credentials = Credentials(row.id, "http://h", row.key_header, api_key="k")
print(row.wire.encode(request, Endpoint(credentials, sys.argv[2]), stream=False).body.decode())
"""


@ON_EACH_WIRE
def test_prompts_are_the_same_in_every_process(double: Double):
    """Whatever the seed of hashes; another question changes nothing that stands before it."""

    def encoded(seed: int, question: str) -> str:
        command = [sys.executable, "-c", ENCODES, double.provider, double.model, question]
        environ = os.environ | {"PYTHONHASHSEED": str(seed)}
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout

    first, second, other = encoded(0, "a question"), encoded(20, "a question"), encoded(7, "what else?")

    assert first == second
    head = first.index("a question")
    assert other.startswith(first[:head])
    before = first[:head] if double.name != "Bedrock Converse" else first
    assert "Work on it." in before
    assert "zebra" in first


# ---------------------------------------------------------------- events, however they are cut

SAID = Said("It is — 7 😀\u2028 so", calls=(("write", {"content": "ü"}),))


@pytest.mark.parametrize(
    "double", [one for one in DOUBLES if one.name != "Bedrock Converse"], ids=lambda double: double.name
)
async def test_events_do_not_depend_on_how_their_stream_is_cut(double: Double):
    """Line ends of all kinds, comments, and cuts anywhere, also in the middle of a character."""
    stream = b"".join(await events_of(double, double.say(SAID)))
    expected = framed([stream])
    assert len(expected) >= 4

    @settings(max_examples=examples(few=40, all=5_000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(data=st.data())
    def stays_the_same(data: st.DataObject) -> None:
        ends = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n: keep-alive\n"])
        written = b""
        for line in stream.split(b"\n")[:-1]:
            end = data.draw(ends)
            # a CR and an LF with nothing between them are one end of a line
            written += line + (b"\r" if not line and written.endswith(b"\r") and end.startswith(b"\n") else end)
        places = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=20)))
        chunks = [written[a:b] for a, b in zip([0, *places], [*places, len(written)], strict=True)]
        assert framed(chunks) == expected

    stays_the_same()


def framed(chunks: list[bytes]) -> list[Any]:
    framing = EventFraming()
    found = [data for chunk in chunks for data in framing.feed(chunk)]
    return [data if data == DONE else json.loads(data) for data in (*found, *framing.finish())]
