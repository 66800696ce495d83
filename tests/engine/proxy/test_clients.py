"""octo/proxy/relay.py, octo/llm/completions.py: the stock client of OpenAI cannot tell the proxy from the vendor."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from proxied import UPSTREAMS, Proxy, Upstream, proxy
from serving import until
from vendor.faults import cut, hang, reset
from vendor.scripted import ScriptedServer
from vendor.server import Answer

_TRIES = 3
"""The quickest of them tells how long it takes: the machine may be busy with something else."""
HELLO: Any = [{"role": "user", "content": "hello"}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "finds things",
            "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        },
    }
    for name in ("find", "look")
]


class City(BaseModel):
    name: str
    size: int


@asynccontextmanager
async def served(upstream: Upstream, script: Any) -> AsyncIterator[tuple[AsyncOpenAI, ScriptedServer[Any], Proxy]]:
    with upstream.server(script) as vendor:
        async with (
            proxy(upstream.yaml(vendor.url)) as served,
            AsyncOpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client,
        ):
            yield client, vendor, served
        assert vendor.refusals == []


wires = pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.name)
translated = pytest.mark.parametrize("upstream", UPSTREAMS[1:], ids=lambda upstream: upstream.name)


@wires
async def test_text_with_what_it_cost(upstream: Upstream):
    async with served(upstream, [upstream.reply("good morning")]) as (client, _, served_):
        answer = await client.chat.completions.create(model="", messages=HELLO)

    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason, answer.object) == ("good morning", "stop", "chat.completion")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    (line,) = served_.log
    assert (line.connector, line.status, line.output_tokens) == ("models", 200, answer.usage.completion_tokens)


@wires
async def test_streamed_text_comes_in_fragments_and_ends_with_its_usage(upstream: Upstream):
    async with served(upstream, [upstream.reply("good morning to you")]) as (client, _, served_):
        stream = await client.chat.completions.create(
            model="", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]

    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "good morning to you"
    assert len([text for text in texts if text]) > 1
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == served_.log[0].output_tokens


@wires
async def test_a_session_with_parallel_tools(upstream: Upstream):
    calls = [upstream.call("find", {"id": 7}), upstream.call("look", {"id": 8})]
    async with served(upstream, [upstream.reply(calls=calls), upstream.reply("done")]) as (client, _, _):
        first = await client.chat.completions.create(model="", messages=HELLO, tools=TOOLS)
        (choice,) = first.choices
        asked = choice.message.tool_calls or []
        results: Any = [{"role": "tool", "tool_call_id": call.id, "content": "found"} for call in asked]
        messages = [*HELLO, choice.message, *results]
        last = await client.chat.completions.create(model="", messages=messages, tools=TOOLS)

    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert [(call.function.name, json.loads(call.function.arguments)) for call in asked if call.type == "function"] == [
        ("find", {"id": 7}),
        ("look", {"id": 8}),
    ]
    assert last.choices[0].message.content == "done"


@wires
async def test_streamed_tools_are_put_together_by_the_client(upstream: Upstream):
    calls = [upstream.call("find", {"id": 7}), upstream.call("look", {"id": 8})]
    async with served(upstream, [upstream.reply("let me see", calls=calls), upstream.reply("done")]) as (client, _, _):
        async with client.chat.completions.stream(model="", messages=HELLO, tools=TOOLS) as stream:
            first = await stream.get_final_completion()
        (choice,) = first.choices
        asked = choice.message.tool_calls or []
        echoed = choice.message.model_dump(exclude_none=True, exclude={"parsed"})
        for call in echoed["tool_calls"]:
            call.pop("index", None)
            call["function"].pop("parsed_arguments", None)
        results: Any = [{"role": "tool", "tool_call_id": call.id, "content": "found"} for call in asked]
        last = await client.chat.completions.create(model="", messages=[*HELLO, echoed, *results], tools=TOOLS)

    assert choice.message.content == "let me see"
    assert choice.finish_reason == "tool_calls"
    assert [(call.function.name, json.loads(call.function.arguments)) for call in asked] == [
        ("find", {"id": 7}),
        ("look", {"id": 8}),
    ]
    assert last.choices[0].message.content == "done"


@wires
@pytest.mark.parametrize("choice", ["none", "auto", "required", "find"])
async def test_every_choice_of_tools_is_taken(upstream: Upstream, choice: str):
    named: Any = {"type": "function", "function": {"name": choice}} if choice == "find" else choice
    reply = (
        upstream.reply("ok") if choice in {"none", "auto"} else upstream.reply(calls=[upstream.call("find", {"id": 1})])
    )
    async with served(upstream, [reply]) as (client, _, _):
        answer = await client.chat.completions.create(
            model="", messages=HELLO, tools=TOOLS, tool_choice=named, parallel_tool_calls=False
        )

    assert answer.choices[0].finish_reason == ("stop" if choice in {"none", "auto"} else "tool_calls")


@wires
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_an_answer_of_a_certain_form(upstream: Upstream, streamed: bool):
    text = '{"name":"Bonn","size":3}'
    by_tool = upstream.name in {"anthropic", "bedrock"}
    reply = (
        upstream.reply(calls=[upstream.call("structured_output", json.loads(text))])
        if by_tool
        else upstream.reply(text)
    )
    async with served(upstream, [reply]) as (client, _, _):
        if streamed:
            async with client.chat.completions.stream(model="", messages=HELLO, response_format=City) as stream:
                answer = await stream.get_final_completion()
        else:
            answer = await client.chat.completions.parse(model="", messages=HELLO, response_format=City)

    assert answer.choices[0].message.parsed == City(name="Bonn", size=3)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.tool_calls in (None, [])


@pytest.mark.parametrize("streamed", [False, True])
async def test_of_an_answer_that_is_given_twice_the_first_counts(streamed: bool):
    (anthropic,) = (upstream for upstream in UPSTREAMS if upstream.name == "anthropic")
    twice = [anthropic.call("structured_output", {"name": name, "size": 3}) for name in ("Bonn", "Cologne")]
    async with served(anthropic, [anthropic.reply("", calls=twice)]) as (client, _, _):
        if streamed:
            async with client.chat.completions.stream(model="", messages=HELLO, response_format=City) as stream:
                answer = await stream.get_final_completion()
        else:
            answer = await client.chat.completions.parse(model="", messages=HELLO, response_format=City)

    assert answer.choices[0].message.parsed == City(name="Bonn", size=3)


@wires
async def test_reasoning_stands_beside_the_text(upstream: Upstream):
    async with served(upstream, [upstream.thinks("42", "six times seven")]) as (client, _, _):
        answer = await client.chat.completions.create(model="", messages=HELLO)

    said: Any = answer.choices[0].message
    assert (said.content, said.reasoning_content) == ("42", "six times seven")


@translated
async def test_settings_travel_in_the_words_of_the_vendor_and_what_cannot_is_named(upstream: Upstream):
    async with served(upstream, [upstream.reply("ok")]) as (client, vendor, _):
        raw = await client.chat.completions.with_raw_response.create(
            model="", messages=HELLO, max_completion_tokens=77, top_p=0.5, stop=["END"], seed=1, user="ann"
        )

    (request,) = vendor.requests
    assert raw.headers["x-octo-ignored"] == "seed"
    body = request.json
    settings = body.get("generationConfig") or body.get("inferenceConfig") or body
    found = {name: value for name, value in settings.items() if value in (77, 0.5, ["END"])}
    assert (
        found
        == {
            "anthropic": {"max_tokens": 77, "top_p": 0.5, "stop_sequences": ["END"]},
            "gemini": {"maxOutputTokens": 77, "topP": 0.5, "stopSequences": ["END"]},
            "bedrock": {"maxTokens": 77, "topP": 0.5, "stopSequences": ["END"]},
        }[upstream.name]
    )


@wires
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
    ],
)
async def test_a_refusal_of_the_vendor_is_the_same_error(
    upstream: Upstream, status: int, kind: type[openai.APIStatusError]
):
    async with served(upstream, [upstream.error(status, "no such thing")]) as (client, _, _):
        with pytest.raises(kind) as caught:
            await client.chat.completions.create(model="", messages=HELLO)

    assert "no such thing" in caught.value.message
    assert "secret-key" not in caught.value.message


@wires
async def test_a_call_is_tried_again_before_its_first_byte(upstream: Upstream):
    script = [upstream.error(503, "busy", retry_after_ms="1"), upstream.reply("there")]
    async with served(upstream, script) as (client, vendor, _):
        stream = await client.chat.completions.create(model="", messages=HELLO, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    assert (text, len(vendor.requests)) == ("there", 2)


@wires
async def test_the_wait_that_a_vendor_asks_for_is_told(upstream: Upstream):
    async with served(upstream, [upstream.error(429, "slow down", retry_after="99")]) as (client, _, _):
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(model="", messages=HELLO)

    assert caught.value.response.headers["retry-after"] == "99"


@wires
@pytest.mark.parametrize("fault", ["cut", "reset", "error event"])
async def test_a_stream_that_breaks_is_an_error_and_is_not_tried_again(upstream: Upstream, fault: str):
    spoil = {"cut": cut(4, "close"), "reset": reset(4), "error event": upstream.error_event(4)}[fault]
    reply = upstream.reply("a text that is long enough to break", faults=[spoil])
    async with served(upstream, [reply]) as (client, vendor, served_):
        stream = await client.chat.completions.create(model="", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass

    assert len(vendor.requests) == 1
    assert served_.log[0].status == 200


@wires
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_the_call_upstream_ends_at_once_when_the_client_goes(upstream: Upstream, streamed: bool):
    faults = [hang(4 if streamed else None)]
    replies = [upstream.reply("a text that is long enough to break", faults=faults) for _ in range(_TRIES)]
    async with served(upstream, replies) as (client, vendor, served_):
        seconds = [await _leave(client, vendor, streamed) for _ in range(_TRIES)]

    assert [line.broken for line in served_.log] == ["client gone"] * _TRIES
    assert min(seconds) < 0.1


async def _leave(client: AsyncOpenAI, vendor: ScriptedServer, streamed: bool) -> float:
    """Ask, and go in the middle of the answer; how long the call upstream goes on after that."""
    before = len(vendor.requests)
    begun = asyncio.Event()
    asking = asyncio.create_task(_read(client, streamed, begun))
    await until(lambda: begun.is_set() if streamed else len(vendor.requests) > before, 30)
    gone = time.perf_counter()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert await asyncio.to_thread(vendor.requests[before].abandoned.wait, 5)
    return time.perf_counter() - gone


async def _read(client: AsyncOpenAI, streamed: bool, begun: asyncio.Event) -> None:
    if not streamed:
        await client.chat.completions.create(model="", messages=HELLO)
        return
    async with await client.chat.completions.create(model="", messages=HELLO, stream=True) as stream:
        async for _ in stream:
            begun.set()


@wires
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(302, (("location", "https://elsewhere.example/"),)), 502),
        (Answer(200, (("content-type", "text/html"),), (b"<html>sign in</html>",)), 502),
        (Answer(418, (("content-type", "text/plain"),), (b"teapot",)), 418),
    ],
    ids=["redirect", "page", "bare text"],
)
async def test_what_is_no_answer_is_an_error_in_the_form_of_openai(upstream: Upstream, answer: Answer, status: int):
    async with served(upstream, [answer]) as (client, _, _):
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(model="", messages=HELLO)

    error: Any = caught.value.body
    assert caught.value.status_code == status
    assert (error["type"], error["message"] != "") == ("upstream_error", True)


@translated
async def test_several_answers_cannot_be_had(upstream: Upstream):
    async with served(upstream, []) as (client, _, _):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="", messages=HELLO, n=2)

    assert "`n` can only be 1" in caught.value.message


@wires
async def test_a_picture_and_instructions_travel(upstream: Upstream):
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{dot}"}}
    messages: Any = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "what is it?"}, picture]},
    ]
    async with served(upstream, [upstream.reply("a dot")]) as (client, vendor, _):
        answer = await client.chat.completions.create(model="", messages=messages)

    assert answer.choices[0].message.content == "a dot"
    assert dot.encode() in vendor.requests[0].body
    assert b"be brief" in vendor.requests[0].body
