"""octo/proxy/relay.py, octo/llm/proxy.py: the stock clients of the Messages and the Responses API see the same of the
proxy as of the vendor, whichever connector passes their requests on."""

import asyncio
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest

from proxied import proxy
from vendor import anthropic as messages
from vendor import responses
from vendor.anthropic import AnthropicServer
from vendor.faults import Fault, hang, reset
from vendor.responses import ResponsesServer
from vendor.scripted import ScriptedServer
from vendor.server import Answer, Request
from vendor.vertex import VertexClaudeServer

Json = Any
Play = Callable[[Any, str, Json], Awaitable[Json]]
"""A client, a model, and the other fields of a request to what is seen of the answer."""


@dataclass(frozen=True)
class Step:
    name: str
    asks: Json
    script: Sequence[Any]
    """What the vendor answers: to the request, and to one with the results of tools if there are any."""


@dataclass(frozen=True)
class Door:
    """A connector that passes requests on, and the double of the API behind it."""

    name: str
    server: Callable[..., ScriptedServer[Any]]
    settings: str
    path: str = ""

    def yaml(self, url: str) -> str:
        settings = f"baseURL: '{url}{self.path}', apiKey: secret-key, {self.settings}"
        return f"connectors:\n  - name: models\n    type: {self.name.split()[0]}\n    settings: {{ {settings} }}\n"


class FoundryServer(AnthropicServer):
    """Serves the same API below the path that Azure gives it."""

    def refuse(self, request: Request) -> Answer | None:
        request.path = request.path.removeprefix("/anthropic")
        return super().refuse(request)


LONG = "a text that is long enough to break off somewhere"
SCRIPTS = "naïve — 数字 7, 😀 and “more”\n\ttoo"
HELD = {"x_should_retry": "false"}
FAILURES = (400, 401, 403, 404, 413, 422, 429, 500, 529)
SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}},
    "required": ["id"],
    "additionalProperties": False,
}


async def outcome(seeing: Awaitable[Json]) -> Json:
    """What is seen, or how it failed."""
    try:
        return await seeing
    except (anthropic.APITimeoutError, openai.APITimeoutError):
        return "nobody waited"
    except (anthropic.APIStatusError, openai.APIStatusError) as error:
        waits = {name: value for name, value in error.response.headers.items() if name.startswith("retry")}
        return [type(error).__name__, error.status_code, error.body, waits]
    except (anthropic.APIError, openai.APIError) as error:
        return [type(error).__name__, str(error)]


def without_marks(seen: Json) -> Json:
    """What was seen, without what is made up anew each time."""
    return json.loads(re.sub(r'(?<=_)[0-9a-f]{8}(?=_)|(?<="encrypted_content": ")[^"]+', "", json.dumps(seen)))


# ---------------------------------------------------------------- Messages

TOOLS = [{"name": name, "description": "finds things", "input_schema": SCHEMA} for name in ("find", "look")]
BASE = {"max_tokens": 4000, "messages": [{"role": "user", "content": "hello"}]}
CALLS = [messages.call("find", {"id": 7}), messages.call("look", {"id": 8})]
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
TURNS = [
    {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "content": "good morning"},
    {"role": "user", "content": "and then?"},
]


def _streams(step: Step) -> Step:
    return Step(f"{step.name}, streamed", {**step.asks, "stream": True}, step.script)


def _spoilt(name: str, *faults: Fault) -> Step:
    return Step(name, {**BASE, "stream": True}, [messages.reply(LONG, faults=faults)])


ANSWERED = (
    Step("a text", BASE, [messages.reply("good morning to you")]),
    Step("every script", BASE, [messages.reply(SCRIPTS)]),
    Step("turns and instructions", {**BASE, "system": "be brief", "messages": TURNS}, [messages.reply("later")]),
    Step(
        "settings",
        {**BASE, "stop_sequences": ["END"], "metadata": {"user_id": "ann"}},
        [messages.reply("hi")],
    ),
    Step("cut off", {**BASE, "max_tokens": 5}, [messages.reply("and so", stop_reason="max_tokens")]),
    Step("thinking", {**BASE, **THINKING}, [messages.reply("42", thinking="six times seven")]),
    Step("a tool", {**BASE, "tools": TOOLS}, [messages.reply(calls=CALLS[:1]), messages.reply("done")]),
    Step("two tools", {**BASE, "tools": TOOLS}, [messages.reply("let me see", calls=CALLS), messages.reply("done")]),
    Step(
        "thinking before tools",
        {**BASE, **THINKING, "tools": TOOLS},
        [messages.reply(thinking="let me see", calls=CALLS), messages.reply("done")],
    ),
    Step(
        "this tool",
        {**BASE, "tools": TOOLS, "tool_choice": {"type": "tool", "name": "find", "disable_parallel_tool_use": True}},
        [messages.reply(calls=CALLS[:1]), messages.reply(calls=CALLS[:1])],
    ),
)
MESSAGES = (
    *ANSWERED,
    *map(_streams, ANSWERED),
    *(Step(f"status {status}", BASE, [messages.error(status, **HELD)]) for status in FAILURES),
    Step("asked to wait", {**BASE, "stream": True}, [messages.error(429, retry_after="99")]),
    _spoilt("pings", messages.pings()),
    _spoilt("an error in the stream", messages.error_event(4)),
    _spoilt("let go", hang(6)),
    Step("not waited for", BASE, [messages.reply(LONG, faults=[hang()])]),
)


async def ask_anthropic(client: anthropic.AsyncAnthropic, model: str, asks: Json) -> Json:
    fields = {"model": model, **asks}
    if not fields.pop("stream", False):
        message = await client.messages.create(**fields)
        seen: Json = [_dumped(message)]
    else:
        kinds = []
        async with client.messages.stream(**fields) as stream:
            async for event in stream:
                kinds.append(event.type)
                if LONG[:8] in str(getattr(event, "text", "")) and client.timeout == 1:
                    return "let go"
            message = await stream.get_final_message()
        seen = [kinds, _dumped(message)]
    calls = [block for block in message.content if block.type == "tool_use"]
    if not calls or len(asks["messages"]) > 2:
        return seen
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "found"} for call in calls]
    blocks = [block.model_dump(exclude_none=True, exclude={"caller", "parsed_output"}) for block in message.content]
    turns = [*asks["messages"], {"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    return seen + await ask_anthropic(client, model, {**asks, "messages": turns})


def _dumped(message: Any) -> Json:
    return {name: value for name, value in message.model_dump(mode="json").items() if name != "model"}


def anthropic_at(url: str) -> anthropic.AsyncAnthropic:
    own = {"anthropic-version": "2023-06-01", "x-api-key": "secret-key"}  # as its double wants them
    return anthropic.AsyncAnthropic(base_url=url, api_key="secret-key", max_retries=0, timeout=20, default_headers=own)


CLAUDE = "model: claude-sonnet-4-6"
MESSAGE_DOORS = (
    Door("llm-anthropic", AnthropicServer, CLAUDE),
    Door("llm-anthropic below v1", AnthropicServer, CLAUDE, "/v1/"),
    Door(
        "llm-anthropic on Vertex",
        VertexClaudeServer,
        f"platform: vertex, {CLAUDE}",
        "/v1/projects/p/locations/l/publishers/anthropic/models",
    ),
    Door("llm-azure-foundry", FoundryServer, CLAUDE),
)


# ---------------------------------------------------------------- Responses

FUNCTIONS = [
    {"type": "function", "name": name, "description": "finds things", "parameters": SCHEMA, "strict": True}
    for name in ("find", "look")
]
INPUT = {"input": [{"role": "user", "content": "hello"}]}
FORM = {"text": {"format": {"type": "json_schema", "name": "id", "schema": SCHEMA, "strict": True}}}
ASKED = [responses.call("find", {"id": 7}), responses.call("look", {"id": 8})]
GIVEN = (
    Step("a text", INPUT, [responses.reply("good morning to you")]),
    Step("every script", INPUT, [responses.reply(SCRIPTS)]),
    Step("instructions", {**INPUT, "instructions": "be brief", "max_output_tokens": 99}, [responses.reply("later")]),
    Step("cut off", INPUT, [responses.reply("and so", cut_by="max_output_tokens")]),
    Step(
        "reasoning",
        {**INPUT, "reasoning": {"effort": "low", "summary": "auto"}},
        [responses.reply("42", reasoning="6 * 7")],
    ),
    Step("a form", {**INPUT, **FORM}, [responses.reply('{"id":7}')]),
    Step("a tool", {**INPUT, "tools": FUNCTIONS}, [responses.reply(calls=ASKED[:1]), responses.reply("done")]),
    Step(
        "two tools",
        {**INPUT, "tools": FUNCTIONS},
        [responses.reply("let me see", calls=ASKED), responses.reply("done")],
    ),
    Step(
        "this tool",
        {**INPUT, "tools": FUNCTIONS, "tool_choice": {"type": "function", "name": "find"}},
        [responses.reply(calls=ASKED[:1]), responses.reply(calls=ASKED[:1])],
    ),
)
RESPONSES = (
    *GIVEN,
    *map(_streams, GIVEN),
    *(Step(f"status {status}", INPUT, [responses.error(status, **HELD)]) for status in FAILURES),
    Step("asked to wait", {**INPUT, "stream": True}, [responses.error(429, retry_after="99")]),
    Step(
        "an error in the stream", {**INPUT, "stream": True}, [responses.reply(LONG, faults=[responses.error_event(4)])]
    ),
    Step(
        "a failure in the stream",
        {**INPUT, "stream": True},
        [responses.reply(LONG, faults=[responses.failed_event(4)])],
    ),
    Step("let go", {**INPUT, "stream": True}, [responses.reply(LONG, faults=[hang(6)])]),
    Step("not waited for", INPUT, [responses.reply(LONG, faults=[hang()])]),
)


async def ask_openai(client: openai.AsyncOpenAI, model: str, asks: Json) -> Json:
    fields = {"model": model, "store": False, **asks}
    if not fields.get("stream"):
        answer = await client.responses.create(**fields)
        seen: Json = [_dumped(answer)]
    else:
        kinds, answer = [], None
        async with await client.responses.create(**fields) as stream:
            async for event in stream:
                kinds.append(event.type)
                answer = getattr(event, "response", answer)
                if event.type == "response.output_text.delta" and client.timeout == 1:
                    return "let go"
        seen = [kinds, _dumped(answer)]
    calls = [item for item in answer.output if item.type == "function_call"]
    if not calls or len(asks["input"]) > 2:
        return seen
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "found"} for call in calls]
    items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
    return seen + await ask_openai(client, model, {**asks, "input": [*asks["input"], *items, *results]})


def openai_at(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="secret-key", max_retries=0, timeout=20)


GPT = "model: gpt-5.4"
RESPONSE_DOORS = (
    Door("llm-openai", ResponsesServer, GPT, "/v1"),
    Door("llm-azure-openai", ResponsesServer, GPT),
    Door("llm-azure-foundry", ResponsesServer, GPT),
)


# ---------------------------------------------------------------- the tests


async def seen_at(url: str, model: str, steps: Sequence[Step], script: deque[Any], vendor: Any, api: str) -> Json:
    """What the client of an API sees of each step."""
    ask, at = (ask_anthropic, anthropic_at) if api == "messages" else (ask_openai, openai_at)
    seen = {}
    async with at(url) as client:
        for step in steps:
            script.extend(step.script)
            leaves = step.name in ("let go", "not waited for")
            patient: Any = client.with_options(timeout=1 if step.name == "let go" else 0.4) if leaves else client
            seen[step.name] = without_marks(await outcome(ask(patient, model, step.asks)))  # type: ignore[operator]
            assert (step.name, vendor.refusals, script) == (step.name, [], deque())
            if leaves:
                assert await asyncio.to_thread(vendor.requests[-1].abandoned.wait, 0.1)
    return seen


async def directly(server: Callable[..., ScriptedServer[Any]], steps: Sequence[Step], api: str) -> Json:
    script: deque[Any] = deque()
    with server(lambda _: script.popleft()) as vendor:
        return await seen_at(
            vendor.url, "claude-sonnet-4-6" if api == "messages" else "gpt-5.4", steps, script, vendor, api
        )


async def through(door: Door, steps: Sequence[Step], api: str) -> Json:
    script: deque[Any] = deque()
    with door.server(lambda _: script.popleft()) as vendor:
        async with proxy(door.yaml(vendor.url)) as served:
            return await seen_at(served.url, f"models/{door.settings.split('model: ')[1]}", steps, script, vendor, api)


@pytest.fixture(scope="module")
def of_anthropic() -> Json:
    return asyncio.run(directly(AnthropicServer, MESSAGES, "messages"))


@pytest.fixture(scope="module")
def of_openai() -> Json:
    return asyncio.run(directly(ResponsesServer, RESPONSES, "responses"))


def test_the_scripts_see_answers_of_all_kinds(of_anthropic: Json, of_openai: Json):
    for seen in (of_anthropic, of_openai):
        assert sum(isinstance(one, list) and isinstance(one[0], str) for one in seen.values()) >= len(FAILURES) + 1
        assert (seen["let go"], seen["not waited for"]) == ("let go", "nobody waited")


@pytest.mark.parametrize("door", MESSAGE_DOORS, ids=lambda door: door.name)
async def test_the_client_of_anthropic_sees_no_difference(door: Door, of_anthropic: Json):
    assert await through(door, MESSAGES, "messages") == of_anthropic


@pytest.mark.parametrize("door", RESPONSE_DOORS, ids=lambda door: door.name)
async def test_the_client_of_responses_sees_no_difference(door: Door, of_openai: Json):
    assert await through(door, RESPONSES, "responses") == of_openai


@pytest.mark.parametrize("door", MESSAGE_DOORS, ids=lambda door: door.name)
async def test_a_connection_that_breaks_is_an_error_of_the_api(door: Door):
    seen = await through(door, [_spoilt("broken", reset(4))], "messages")

    assert seen["broken"][0] == "APIStatusError"
    assert "broke off" in seen["broken"][2]["error"]["message"]
