"""octo/proxy/overseer.py, octo/proxy/access.py: how what is passed on ends, and what it cost, whatever the API."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from proxied import proxy
from vendor.server import Answer, Request, Server

Json = Any
SSE = (("content-type", "text/event-stream"),)
WORDS = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}]}
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
STARTED = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 10, "output_tokens": 1}}}
CREATED = {"type": "response.created", "response": {"status": "in_progress", "error": None}}
OVERLOADED = {"type": "overloaded_error", "message": "too much to do"}


class Once(Server):
    """Gives every request the same answer, after a while."""

    def __init__(self, given: Answer, wait: float = 0) -> None:
        super().__init__()
        self._given = replace(given, delay=wait)

    def answer(self, request: Request) -> Answer:
        return self._given


def events(*told: Json) -> Answer:
    body = b"".join(b"data: %s\n\n" % (one if isinstance(one, bytes) else json.dumps(one).encode()) for one in told)
    return Answer(200, SSE, (body,), streamed=True)


def config(kind: str, url: str, more: str = "") -> str:
    settings = f"baseURL: '{url}/v1', apiKey: secret-key, model: m"
    return f"connectors:\n  - name: models\n    type: {kind}\n    settings: {{ {settings} }}\n{more}"


async def posted(url: str, path: str, **fields: Json) -> httpx.Response:
    async with httpx.AsyncClient(timeout=20) as client:
        return await client.post(f"{url}/v1/{path}", json={"messages": [], "stream": True, **fields})


def last(text: str) -> Json:
    return json.loads(text.strip().rpartition("data: ")[2])


BROKE_OFF = "the answer broke off before its end"


@pytest.mark.parametrize(
    ("kind", "path", "told"),
    [
        ("llm-custom", "chat/completions", [WORDS]),
        ("llm-anthropic", "messages", [STARTED]),
        ("llm-openai", "responses", [CREATED]),
    ],
    ids=["chat", "messages", "responses"],
)
async def test_a_stream_that_ends_too_early_does_not_look_whole(kind: str, path: str, told: Iterable[Json]):
    with Once(events(*told)) as vendor:
        async with proxy(config(kind, vendor.url)) as served:
            answer = await posted(served.url, path)

    error = last(answer.text)["error"]
    assert error["message"].startswith(f'{kind} forward: connector "models": POST {vendor.url}/v1/{path}: status 200, ')
    assert BROKE_OFF in error["message"]
    assert [entry.failure for entry in served.log] == ["Truncated"]


@pytest.mark.parametrize(
    ("kind", "path", "told"),
    [
        ("llm-custom", "chat/completions", [WORDS, STOP]),
        ("llm-custom", "chat/completions", [WORDS, b"[DONE]"]),
        ("llm-anthropic", "messages", [STARTED, {"type": "message_stop"}]),
        ("llm-openai", "responses", [CREATED, {"type": "response.completed", "response": {"error": None}}]),
        ("llm-openai", "responses", [CREATED, {"type": "response.incomplete", "response": {}}]),
    ],
    ids=["finish reason", "done", "messages", "completed", "incomplete"],
)
async def test_a_stream_that_ends_as_its_api_ends_is_passed_on_as_it_is(kind: str, path: str, told: Iterable[Json]):
    given = events(*told)
    with Once(given) as vendor:
        async with proxy(config(kind, vendor.url)) as served:
            answer = await posted(served.url, path)

    assert answer.content == b"".join(given.pieces)
    assert [entry.failure for entry in served.log] == [""]


@pytest.mark.parametrize(
    ("kind", "path", "told", "failure"),
    [
        ("llm-custom", "chat/completions", [WORDS, {"error": {"code": 429, "message": "slow"}}], "RateLimited"),
        ("llm-anthropic", "messages", [STARTED, {"type": "error", "error": OVERLOADED}], "ProviderError"),
        (
            "llm-openai",
            "responses",
            [CREATED, {"type": "response.failed", "response": {"error": {"code": "server_error"}}}],
            "ProviderError",
        ),
    ],
    ids=["chat", "messages", "responses"],
)
async def test_an_error_of_the_provider_in_a_stream_is_no_success(
    kind: str, path: str, told: Iterable[Json], failure: str
):
    given = events(*told)
    with Once(given) as vendor:
        async with proxy(config(kind, vendor.url)) as served:
            answer = await posted(served.url, path)

    assert answer.content == b"".join(given.pieces)
    assert [(entry.failure, entry.record(1, 0).error) for entry in served.log] == [(failure, failure)]


@pytest.mark.parametrize(
    ("kind", "path", "told"),
    [
        ("llm-custom", "chat/completions", [{"error": {"message": "no such key: secret-key"}}]),
        ("llm-anthropic", "messages", [{"type": "error", "error": {"message": "no such key: secret-key"}}]),
        ("llm-openai", "responses", [{"type": "error", "message": "no such key: secret-key"}]),
    ],
    ids=["chat", "messages", "responses"],
)
async def test_an_error_in_a_stream_tells_no_secret(kind: str, path: str, told: Iterable[Json]):
    answer = events(*told)
    with Once(replace(answer, headers=(*answer.headers, ("x-request-id", "req-secret-key")))) as vendor:
        async with proxy(config(kind, vendor.url)) as served:
            got = await posted(served.url, path)

    assert got.text == events(*told).body.decode().replace("secret-key", "***")
    assert got.headers["x-request-id"] == "req-***"


async def test_what_a_model_says_is_passed_on_byte_for_byte():
    """Also where it is the key, which may be a word that servers on this machine do not look at."""
    said = {"choices": [{"index": 0, "delta": {"content": "a secret-key"}, "finish_reason": None}]}
    with Once(events(said, STOP, b"[DONE]")) as vendor:
        async with proxy(config("llm-custom", vendor.url)) as served:
            got = await posted(served.url, "chat/completions")

    assert got.content == events(said, STOP, b"[DONE]").body


async def test_a_client_that_waits_for_the_first_event_is_told_to_wait_on():
    with Once(events(WORDS, STOP), wait=0.5) as vendor:
        async with proxy(config("llm-custom", vendor.url), keep_alive=0.2) as served:
            answer = await posted(served.url, "chat/completions")

    assert answer.text.startswith(": keepalive\n\n")
    assert [entry.failure for entry in served.log] == [""]


@pytest.mark.parametrize("status", [200, 400])
async def test_what_is_no_stream_after_all_is_an_error_in_the_stream_that_was_begun(status: int):
    refusal = Answer(status, (("content-type", "application/json"),), (b'{"error": {"message": "no such thing"}}',))
    with Once(refusal, wait=0.5) as vendor:
        async with proxy(config("llm-custom", vendor.url), keep_alive=0.2) as served:
            answer = await posted(served.url, "chat/completions")

    assert "no such thing" in last(answer.text)["error"]["message"]
    assert (answer.status_code, [bool(entry.failure) for entry in served.log]) == (200, [True])


async def test_a_stream_of_another_content_type_is_one_for_clients_as_for_agents():
    told = events(WORDS, STOP)
    with Once(Answer(200, (("content-type", "text/plain"),), told.pieces, streamed=True)) as vendor:
        async with proxy(config("llm-custom", vendor.url)) as served:
            answer = await posted(served.url, "chat/completions")

    assert (answer.status_code, answer.content) == (200, b"".join(told.pieces))


PRICES = "aiPricing: { 'models:m': { input: 2, output: 10, cacheRead: 1 } }\n"


@pytest.mark.parametrize(
    ("kind", "path", "usage", "cost"),
    [
        ("llm-custom", "chat/completions", {"prompt_tokens": 1000, "completion_tokens": 100}, 0.003),
        (
            "llm-custom",
            "chat/completions",
            {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 500}},
            0.0025,
        ),
        (
            "llm-anthropic",
            "messages",
            {"input_tokens": 500, "output_tokens": 100, "cache_read_input_tokens": 500},
            0.0025,
        ),
        ("llm-openai", "responses", {"input_tokens": 1000, "output_tokens": 100}, 0.003),
        ("llm-custom", "chat/completions", {"prompt_tokens": -5, "completion_tokens": 1e30}, None),
        ("llm-custom", "chat/completions", {"prompt_tokens": True, "completion_tokens": 2**60}, None),
    ],
)
async def test_a_request_that_is_passed_on_costs_what_the_rates_say(
    kind: str, path: str, usage: Json, cost: float | None
):
    body = json.dumps({"model": "m", "usage": usage}).encode()
    with Once(Answer(200, (("content-type", "application/json"),), (body,))) as vendor:
        async with proxy(config(kind, vendor.url, PRICES)) as served:
            await posted(served.url, path, stream=False)

    (entry,) = served.log
    assert (entry.usage.cost_usd, entry.input_tokens) == (cost and pytest.approx(cost), 1000 if cost else None)
    assert (entry.record(1, 0).attrs.get("usage") or {}).get("costUSD") == entry.usage.cost_usd


async def test_a_list_that_hangs_keeps_the_others_for_a_moment_only_and_its_own_model_is_there():
    with Once(Answer(200, (), (b"{}",)), wait=6) as hangs:
        async with proxy(config("llm-custom", hangs.url)) as served, httpx.AsyncClient(timeout=5) as client:
            answer = await asyncio.wait_for(client.get(f"{served.url}/v1/models"), 5)

    assert [model["id"] for model in answer.json()["data"]] == ["m", "models/m"]
    assert answer.headers["x-octo-ignored"] == "models"


async def test_what_a_body_that_is_no_json_holds_is_told_with_whose_it_is():
    with Once(Answer(403, (("content-type", "text/html"),), (b"<title>blocked</title>",))) as vendor:
        async with proxy(config("llm-custom", vendor.url)) as served:
            answer = await posted(served.url, "chat/completions")

    message = answer.json()["error"]["message"]
    address = f"{vendor.url}/v1/chat/completions"
    assert message == f'llm-custom forward: connector "models": POST {address}: status 403: an HTML page: blocked'
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("model", "status", "message"),
    [
        ("onne/x", 404, "there is no connector `onne`: did you mean `one`?"),
        ("zzzzzz/x", 404, "there is no connector `zzzzzz`: there are `one`, `two`"),
        ("x", 400, "no connector is named: write `NAME/MODEL` as the model, with NAME one of `one`, `two`"),
    ],
)
async def test_a_connector_that_is_not_there_is_named(model: str, status: int, message: str):
    yaml = "connectors:" + "".join(
        f"\n  - {{ name: {name}, type: llm-scripted, settings: {{ rules: [{{ when: 'true', text: hi }}] }} }}"
        for name in ("one", "two")
    )
    async with proxy(yaml) as served:
        answer = await posted(served.url, "chat/completions", model=model)

    assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)


async def test_below_a_connector_its_name_may_stand_before_the_model():
    with Once(Answer(200, (("content-type", "application/json"),), (b"{}",))) as vendor:
        async with proxy(config("llm-custom", vendor.url)) as served, httpx.AsyncClient() as client:
            await client.post(f"{served.url}/c/models/v1/chat/completions", json={"model": "models/large"})

    assert json.loads(vendor.requests[0].body)["model"] == "large"
