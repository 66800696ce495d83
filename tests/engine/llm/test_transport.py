"""octo/llm/transport.py: one model call over HTTP, against a server that misbehaves in every way."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from octo.errors import (
    AuthenticationFailed,
    BadRequest,
    NotAnAnswer,
    OutOfTime,
    ProviderError,
    RateLimited,
    Truncated,
    Unreachable,
)
from octo.llm.chat import ChatRequest, ChatResponse, Delta, OnDelta, Retry, TextDelta, user
from octo.llm.credentials import Credentials
from octo.llm.transport import Transport, total_seconds, warnings
from octo.llm.wire import Endpoint, HttpCall
from octo.llm.wires import anthropic
from vendor import faults
from vendor.anthropic import AnthropicServer, Reply, call, error, error_event, overloaded, pings, rate_limited, reply
from vendor.server import Answer

DONE = reply("done")


class Waits(list[float]):
    """Stands for the clock: remembers how long it was asked to wait, and does not."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def request(url: str, *, stream: bool = False) -> HttpCall:
    endpoint = Endpoint(Credentials("anthropic", url, "x-api-key", api_key="secret-key"), "claude-sonnet-4-6")
    return anthropic.encode(ChatRequest((user("hello"),)), endpoint, stream=stream)


async def send(
    call: HttpCall, waits: Waits | None = None, on_delta: OnDelta | None = None, *, seconds: int = 20
) -> ChatResponse:
    environ = {"OCTO_AI_TIMEOUT_SECONDS": str(seconds)}
    async with Transport(environ, sleep=Waits() if waits is None else waits, random=lambda: 1.0) as transport:
        return await transport.send(call, anthropic.decoder, on_delta)


async def streamed(script: Sequence[Reply | Answer], waits: Waits | None = None) -> tuple[list[Delta], ChatResponse]:
    deltas: list[Delta] = []

    async def listen(delta: Delta) -> None:
        deltas.append(delta)

    with AnthropicServer(script) as server:
        return deltas, await send(request(server.url, stream=True), waits, listen)


async def failure(script: Sequence[Reply | Answer], *, stream: bool = False) -> ProviderError:
    with AnthropicServer(script) as server, pytest.raises(ProviderError) as caught:
        await send(request(server.url, stream=stream))
    return caught.value


def texts(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


# ---------------------------------------------------------------- answers


RICH = reply("It is — 7 😀", thinking="let me see", calls=[call("lookup", {"n": 1, "é": ["x"]}, "toolu_1")])


async def test_a_streamed_answer_equals_one_that_was_not():
    with AnthropicServer([RICH]) as server:
        whole = await send(request(server.url))
    deltas, response = await streamed([RICH])

    assert response == whole
    assert response.text == texts(deltas) == "It is — 7 😀"
    assert response.usage is not None and response.usage.prompt_tokens == 10


WIRE_FAULTS = {
    "single bytes": [faults.rechunk(1)],
    "odd cuts": [faults.rechunk(1, 7, 64, 3)],
    "CRLF": [faults.crlf(), faults.rechunk(5)],
    "CR": [faults.line_ends("\r"), faults.rechunk(1)],
    "comments": [faults.comment(0), faults.comment(3)],
    "pings": [pings()],
    "unknown event": [faults.unknown_event()],
    "compressed": [faults.gzipped(), faults.rechunk(11)],
    "a connection that is not closed": [faults.cut(99, "hang")],
    "a connection that breaks after the end": [faults.cut(99, "reset")],
}


@pytest.mark.parametrize("spoil", WIRE_FAULTS.values(), ids=WIRE_FAULTS.keys())
async def test_what_does_not_matter_on_the_way(spoil: list[faults.Fault]):
    waits = Waits()
    _, expected = await streamed([RICH])
    deltas, response = await streamed([replace(RICH, faults=tuple(spoil))], waits)

    assert (replace(response, message=expected.message), waits) == (expected, [])
    assert response.text == texts(deltas) == expected.text


async def test_a_server_that_does_not_stream_although_it_was_asked_to():
    body = b'{"type":"message","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}'
    deltas, response = await streamed([Answer(200, (("content-type", "application/json"),), (body,))])

    assert (response.text, deltas) == ("hi", [TextDelta("hi", 0)])


async def test_a_server_that_streams_although_it_was_not_asked_to():
    event = b'data: {"type":"message","content":[{"type":"text","text":"hi"}]}\n\n'
    with AnthropicServer([Answer(200, (("content-type", "text/event-stream"),), (event,))]) as server:
        assert (await send(request(server.url))).text == "hi"


async def test_calls_share_connections():
    with AnthropicServer([DONE, DONE, DONE]) as server:
        async with Transport({}) as transport:
            for stream in (True, False, True):
                await transport.send(request(server.url, stream=stream), anthropic.decoder)

        assert [request.connection for request in server.requests] == [1, 1, 1]


async def test_calls_can_be_made_at_once():
    with AnthropicServer(lambda _: DONE) as server:
        async with Transport({}) as transport:
            calls = (transport.send(request(server.url), anthropic.decoder) for _ in range(120))
            answers = await asyncio.gather(*calls)

    assert {answer.text for answer in answers} == {"done"}


# ---------------------------------------------------------------- retries


@pytest.mark.parametrize(
    ("first", "waits"),
    [
        (overloaded(), [1.0]),
        (error(500), [1.0]),
        (error(408), [1.0]),
        (error(409), [1.0]),
        (rate_limited(), [1.0]),
        (rate_limited(seconds=7), [7.0]),
        (rate_limited(seconds=7, milliseconds=1500), [1.5]),
        (rate_limited(seconds=60), [60.0]),
        (rate_limited(seconds=0), [1.0]),
        (rate_limited(date="Wed, 21 Oct 2026 07:28:00 GMT"), [1.0]),
        (error(400, x_should_retry="true"), [1.0]),
        (replace(DONE, faults=(faults.reset(),)), [1.0]),
        (Answer(200, pieces=(), content_length=99, ending="reset"), [1.0]),
        (replace(DONE, faults=(faults.wrong_length(+5),)), [1.0]),
        (replace(DONE, faults=(faults.wrong_length(-5),)), [1.0]),
    ],
    ids=[
        "overloaded",
        "500",
        "408",
        "409",
        "429",
        "seconds",
        "milliseconds win",
        "a minute",
        "zero",
        "a date is ignored",
        "told to",
        "reset before the answer",
        "no body",
        "body shorter than announced",
        "body longer than announced",
    ],
)
async def test_what_is_tried_again_and_after_which_wait(first: Reply | Answer, waits: list[float]):
    waited = Waits()
    with AnthropicServer([first, DONE]) as server:
        response = await send(request(server.url), waited)

    assert (response.text, waited) == ("done", waits)


@pytest.mark.parametrize(
    "answer",
    [
        error(400),
        error(401),
        error(404),
        error(529, x_should_retry="false"),
        rate_limited(seconds=61),
        error(429, "pay", kind="insufficient_quota"),
        Answer(307, (("location", "http://127.0.0.1:9"),)),
        faults.html(200),
    ],
    ids=["400", "401", "404", "told not to", "too long a wait", "no quota", "redirect", "a page"],
)
async def test_what_is_not_tried_again(answer: Answer):
    with AnthropicServer([answer]) as server, pytest.raises(ProviderError):
        await send(request(server.url))

    assert len(server.requests) == 1


async def test_after_three_retries_the_last_answer_is_the_error(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    waits = Waits()
    script = [error(529, f"try {number}") for number in range(1, 5)]
    with AnthropicServer(script) as server, pytest.raises(ProviderError, match="^status 529: try 4$"):  # noqa: RUF043
        await send(request(server.url), waits)

    assert waits == [1.0, 2.0, 4.0]
    assert caplog.messages == [
        "a model call is tried again in 1.0 s: status 529: try 1",
        "a model call is tried again in 2.0 s: status 529: try 2",
        "a model call is tried again in 4.0 s: status 529: try 3",
    ]


async def test_waits_are_shortened_at_random():
    waits = Waits()
    with AnthropicServer([overloaded(), rate_limited(seconds=3), DONE]) as server:
        async with Transport({}, sleep=waits, random=lambda: 0.0) as transport:
            await transport.send(request(server.url), anthropic.decoder)

    assert waits == [0.5, 3.0]


BROKEN = {
    "error event": error_event(4),
    "end without end mark": faults.cut(5),
    "closed": faults.cut(5, "close"),
    "reset": faults.cut(5, "reset"),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN.keys())
async def test_a_stream_that_breaks_is_tried_again_and_the_listener_told(fault: faults.Fault):
    waits = Waits()
    deltas, response = await streamed([reply("a good answer", faults=[fault]), reply("better")], waits)
    at = next(number for number, delta in enumerate(deltas) if isinstance(delta, Retry))

    assert isinstance(deltas[at], Retry) and deltas[at].attempt == 1
    assert texts(deltas[:at]) and "a good answer".startswith(texts(deltas[:at]))
    assert (response.text, texts(deltas[at:]), waits) == ("better", "better", [1.0])


@pytest.mark.parametrize("after", range(9))
async def test_a_stream_cut_between_any_two_events_is_never_an_answer(after: int):
    cut = reply("half", calls=[call("t", {"a": 1})], faults=[faults.cut(after)])
    waits = Waits()
    deltas, response = await streamed([cut, DONE], waits)

    assert (response.text, response.calls, waits) == ("done", (), [1.0])
    assert sum(isinstance(delta, Retry) for delta in deltas) == 1


async def test_a_stream_that_is_always_cut_is_an_error_that_says_so():
    with AnthropicServer([replace(DONE, faults=(faults.cut(3),))] * 4) as server, pytest.raises(Truncated) as caught:
        await send(request(server.url, stream=True))

    assert str(caught.value) == (f"POST {server.url}/v1/messages: status 200, but the answer broke off before its end")
    assert caught.value.status == 200


async def test_a_connection_that_always_breaks_in_the_middle_is_an_error_that_says_so():
    with (
        AnthropicServer([replace(DONE, faults=(faults.cut(3, "close"),))] * 4) as server,
        pytest.raises(Truncated) as caught,
    ):
        await send(request(server.url, stream=True))

    assert str(caught.value) == (
        f"POST {server.url}/v1/messages: status 200, but the answer broke off before its end: "
        "the server closed the connection"
    )


async def test_an_error_event_that_will_not_go_away_is_not_tried_again():
    fault = error_event(2, "invalid_request_error", "no such thing")

    assert str(await failure([reply("x", faults=[fault])], stream=True)) == "status 400 in the answer: no such thing"


# ---------------------------------------------------------------- errors


async def test_a_refused_connection_names_method_and_address_but_no_secret():
    with AnthropicServer([]) as server:
        url = server.url
    waits = Waits()
    with pytest.raises(Unreachable) as caught:
        await send(request(f"{url.replace('//', '//user:pass@')}?token=secret"), waits)

    assert str(caught.value) == f"POST {url}/v1/messages: connection refused"
    assert waits == [1.0, 2.0, 4.0]


async def test_a_host_that_does_not_exist():
    with pytest.raises(ProviderError, match=r"^POST http://octo\.invalid/v1/messages: host not found$"):
        await send(request("http://octo.invalid"))


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (error(401, "invalid x-api-key"), AuthenticationFailed, "status 401: invalid x-api-key"),
        (error(400, "bad " * 25_000), BadRequest, f"status 400: {'bad ' * 500}…"),
        (error(404, "model: claude-x"), BadRequest, "status 404: model: claude-x"),
        (
            Answer(502, (("content-type", "text/html"), ("x-should-retry", "false")), (b"<h1>Bad Gateway</h1>",)),
            ProviderError,
            "status 502: an HTML page: Bad Gateway",
        ),
    ],
    ids=["refusal", "long refusal", "unknown model", "page of a gateway"],
)
async def test_what_an_answer_that_is_none_says(answer: Answer, kind: type[ProviderError], text: str):
    caught = await failure([answer])

    assert (type(caught), str(caught)) == (kind, text)


async def test_the_body_of_an_error_is_read_only_so_far():
    endless = Answer(400, (("content-type", "text/plain"),), (b"no " * 90_000,) * 50, streamed=True)
    caught = await failure([endless])

    assert str(caught) == f"status 400: {('no ' * 67)[:200]}…"


async def test_an_answer_that_is_too_large_is_an_error():
    body = Answer(200, (("content-type", "application/json"),), (b" " * 2**20,) * 33, streamed=True)
    caught = await failure([body])

    assert str(caught).endswith("/v1/messages: status 200, but the answer is longer than 32 MiB")


async def test_an_event_that_is_too_large_is_an_error():
    event = Answer(200, (("content-type", "text/event-stream"),), (b"data: ", *(b"x" * 2**20,) * 33), streamed=True)
    caught = await failure([event], stream=True)

    assert str(caught).endswith("/v1/messages: status 200, but an event of the answer is longer than 32 MiB")


async def test_a_provider_that_asks_for_too_long_a_wait_is_quoted():
    caught = await failure([rate_limited(seconds=100, message="slow down")])

    assert str(caught) == "status 429: slow down; the provider asks to wait 100 s, octo waits at most 60 s"
    assert (type(caught), caught.retry_after) == (RateLimited, 100)


async def test_a_provider_that_repeats_the_key_does_not_give_it_away(caplog: pytest.LogCaptureFixture):
    def mask(text: str) -> str:
        return text.replace("secret-key", "***")

    with AnthropicServer([error(500, "bad secret-key"), error(401, "bad secret-key")]) as server:
        async with Transport({}, mask=mask, sleep=Waits()) as transport:
            with pytest.raises(AuthenticationFailed) as caught:
                await transport.send(request(server.url), anthropic.decoder)

    assert str(caught.value) == "status 401: bad ***"
    assert "secret-key" not in repr(caught.value) + caplog.text


# ---------------------------------------------------------------- what answers is not the API


class Raw:
    """A server that answers each request with the same bytes, and closes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.requests = 0

    async def __aenter__(self) -> "Raw":
        self.server = await asyncio.start_server(self.talk, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        self.requests += 1
        writer.write(self.answer)
        writer.close()


@pytest.mark.parametrize(
    ("answer", "text", "hint"),
    [
        (
            b"\x00\x01garbage not http\r\n\r\n",
            r"the answer is not HTTP: it begins with `\x00\x01garbage not http`",
            None,
        ),
        (
            b"\x15\x03\x01\x00\x02\x02\x50",
            "the answer is not HTTP: illegal request line",
            "if the server speaks TLS, its address begins with `https://`",
        ),
        (
            b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
            "the headers of the answer are longer than 100 KiB",
            None,
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
            "status 200 without a usable answer: the answer is said to be compressed, but it cannot be decompressed",
            None,
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            r"status 200 without a usable answer: the answer is not HTTP: a part of it begins with `zz\r\n`",
            None,
        ),
    ],
    ids=["garbage", "TLS", "huge header", "no gzip", "no chunks"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_what_speaks_no_http_is_told_and_not_tried_again(
    answer: bytes, text: str, hint: str | None, stream: bool
):
    async with Raw(answer) as server:
        with pytest.raises(NotAnAnswer) as caught:
            await send(request(server.url, stream=stream))

    assert str(caught.value) == f"POST {server.url}/v1/messages: {text}"
    assert (caught.value.hint, server.requests) == (hint, 1)


async def test_a_server_that_closes_without_a_word_is_tried_again():
    waits = Waits()
    async with Raw(b"") as server:
        with pytest.raises(Unreachable) as caught:
            await send(request(server.url), waits)

    assert str(caught.value) == f"POST {server.url}/v1/messages: the server closed the connection without an answer"
    assert waits == [1.0, 2.0, 4.0]


async def test_a_proxy_that_is_in_the_way_is_named():
    with AnthropicServer([]) as server:
        proxy = server.url
    environ = {"HTTP_PROXY": proxy.replace("//", "//user:pass@")}
    async with Transport(environ, sleep=Waits()) as transport:
        with pytest.raises(Unreachable) as caught:
            await transport.send(request("http://api.invalid"), anthropic.decoder)

    assert str(caught.value) == "POST http://api.invalid/v1/messages: connection refused"
    assert caught.value.hint == f"the call goes through the proxy `{proxy}`, which the environment names"


async def test_redirects_can_be_followed_to_find_a_fault(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    with AnthropicServer([error(401)]) as other:
        away = Answer(307, (("location", f"{other.url}/v1/messages?token=x"),))
        with AnthropicServer([Answer(307, (("location", "/v1/messages"),)), away]) as server:
            async with Transport({"OCTO_AI_FOLLOW_REDIRECTS": "1"}) as transport:
                with pytest.raises(AuthenticationFailed):
                    await transport.send(request(server.url), anthropic.decoder)

    assert [sent.headers.get("x-api-key") for sent in (*server.requests, *other.requests)] == ["secret-key"] * 2 + [
        None
    ]
    assert other.requests[0].body == server.requests[0].body
    assert caplog.messages == [
        f"a redirect to {server.url}/v1/messages is followed",
        f"a redirect to {other.url}/v1/messages is followed",
    ]


async def test_the_log_tells_the_connectors_apart(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    with AnthropicServer([error(500, "busy"), DONE]) as server:
        async with Transport({}, instance="claude", sleep=Waits(), random=lambda: 1.0) as transport:
            await transport.send(request(server.url), anthropic.decoder)

    assert caplog.messages == ['connector "claude": a model call is tried again in 1.0 s: status 500: busy']


# ---------------------------------------------------------------- time and listeners


@pytest.mark.parametrize("fault", [faults.hang(), faults.hang(0), faults.hang(4)], ids=["at once", "head", "stream"])
async def test_a_silent_server_ends_with_the_time_of_the_call(fault: faults.Fault):
    with AnthropicServer([replace(DONE, faults=(fault,))]) as server, pytest.raises(ProviderError) as caught:
        await send(request(server.url, stream=True), seconds=1)

    assert str(caught.value) == f"POST {server.url}/v1/messages: no answer within 1 s"
    assert (type(caught.value), len(server.requests)) == (OutOfTime, 1)


async def test_time_that_is_over_while_waiting_for_another_try_tells_why_there_was_one():
    with AnthropicServer([error(529, "busy")]) as server, pytest.raises(OutOfTime) as caught:
        async with Transport({"OCTO_AI_TIMEOUT_SECONDS": "1"}, sleep=lambda _: asyncio.sleep(60)) as transport:
            await transport.send(request(server.url), anthropic.decoder)

    assert str(caught.value) == (
        f"POST {server.url}/v1/messages: no answer within 1 s, and the try before failed: status 529: busy"
    )


async def test_a_server_that_drips_ends_with_the_time_of_the_call():
    slow = reply("x" * 400, fragment=1, faults=[faults.drip(0.02)])
    with AnthropicServer([slow]) as server, pytest.raises(ProviderError, match="no answer within 1 s"):
        await send(request(server.url, stream=True), seconds=1)


async def test_a_listener_may_take_its_time():
    async def listen(delta: Delta) -> None:
        await asyncio.sleep(0.4)

    with AnthropicServer([reply("one two three", fragment=4)]) as server:
        answer = await send(request(server.url, stream=True), on_delta=listen, seconds=1)

    assert answer.text == "one two three"


async def test_a_listener_does_not_make_a_silent_server_live_longer():
    async def listen(delta: Delta) -> None:
        await asyncio.sleep(0.1)

    silent = reply("one two three", fragment=4, faults=[faults.hang(5)])
    with AnthropicServer([silent]) as server, pytest.raises(OutOfTime, match="no answer within 1 s"):
        await asyncio.wait_for(send(request(server.url, stream=True), on_delta=listen, seconds=1), 5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 600), ("1", 1), ("86400", 86400), ("0", 600), ("86401", 600), ("soon", 600), ("nan", 600)],
)
def test_the_time_of_a_call(text: str, seconds: float):
    environ = {"OCTO_AI_TIMEOUT_SECONDS": text}
    refused = f"OCTO_AI_TIMEOUT_SECONDS is `{text}`, expected 1 to 86400; 600 s stay in force"

    assert total_seconds(environ) == seconds
    assert warnings(environ) == ([refused] if text and seconds == 600 else [])


class Stop(Exception):
    """What a listener raises that has heard enough."""


async def test_a_listener_that_raises_ends_the_call_and_the_connection():
    async def stop(_: Delta) -> None:
        raise Stop

    long = reply("x" * 10_000, fragment=4, faults=[faults.drip(0.001)])
    with AnthropicServer([long]) as server:
        with pytest.raises(Stop):
            await send(request(server.url, stream=True), on_delta=stop)
        (sent,) = server.requests

        assert await asyncio.to_thread(sent.abandoned.wait, 5)


async def test_a_cancelled_call_closes_its_connection():
    with AnthropicServer([replace(DONE, faults=(faults.hang(3),))]) as server:
        task = asyncio.create_task(send(request(server.url, stream=True)))
        while not server.requests:  # noqa: ASYNC110  (the server is in another thread)
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

        assert await asyncio.to_thread(server.requests[0].abandoned.wait, 5)


async def test_the_time_that_a_listener_spends_does_not_pass_for_the_providers_silence():
    """A timeout of the listener's own is its own."""

    async def impatient(_: Delta) -> None:
        raise TimeoutError("mine")

    with AnthropicServer([DONE]) as server, pytest.raises(TimeoutError, match="mine"):
        await send(request(server.url, stream=True), on_delta=impatient)


@pytest.mark.parametrize(
    ("key", "sent"),
    [("secret-key", (None, "secret-key")), ("", ("Basic dXNlcjpwYXNzd29yZA==", None))],
    ids=["with a key", "without one"],
)
async def test_user_and_password_of_an_address_are_sent_only_in_the_place_of_a_key(
    key: str, sent: tuple[str | None, ...]
):
    with AnthropicServer([DONE, DONE]) as server:
        url = server.url.replace("http://", "http://user:password@")
        endpoint = Endpoint(Credentials("anthropic", url, "x-api-key", api_key=key), "claude-sonnet-4-6")
        with suppress(ProviderError):
            await send(anthropic.encode(ChatRequest((user("hello"),)), endpoint, stream=False))
        headers = server.requests[0].headers

    assert (headers.get("authorization"), headers.get("x-api-key")) == sent
