"""vendor/server.py, vendor/scripted.py, vendor/faults.py, vendor/anthropic.py: answers, streams, and their faults."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest

from vendor import (
    Answer,
    AnthropicServer,
    Request,
    call,
    error,
    error_event,
    faults,
    overloaded,
    pings,
    rate_limited,
    reply,
)

Json = Any

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
ASK = {"model": "claude", "max_tokens": 99, "messages": [{"role": "user", "content": "hello"}]}
STREAM = {**ASK, "stream": True}


def post(server: AnthropicServer, body: Json = ASK, **more: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/messages", headers=HEADERS, json=body, **more)


def events(text: str) -> list[Json]:
    """The data of a stream's events, for any kind of line ends."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def kinds(text: str) -> list[str]:
    return [event["type"] for event in events(text)]


SHORT = ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"]
SHORT.append("message_stop")


# ---------------------------------------------------------------- answers


def test_a_reply_is_a_message() -> None:
    with AnthropicServer([reply("hi", calls=[call("find", {"id": 7}, id="c1")], model="claude-9")]) as server:
        answer = post(server)

    assert answer.json() == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-9",
        "content": [
            {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "c1", "name": "find", "input": {"id": 7}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 5,
        },
    }


def test_a_streamed_reply_is_a_series_of_events() -> None:
    made = reply(
        "hi there", thinking="hm", calls=[call("find", '{"a', id="c1")], fragment=4, usage={"output_tokens": 7}
    )
    with AnthropicServer([made]) as server:
        answer = post(server, STREAM)

    signature = events(answer.text)[3]["delta"]["signature"]
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    tool = {"type": "tool_use", "id": "c1", "name": "find", "input": {}}
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert events(answer.text)[1:] == [
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": signature}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "hi t"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "here"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": tool},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a'}},
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]


def test_a_script_may_be_a_function_of_the_request() -> None:
    def echo(request: Request) -> Any:
        return reply(request.json["messages"][0]["content"].upper())

    with AnthropicServer(echo) as server:
        assert post(server).json()["content"] == [{"type": "text", "text": "HELLO"}]
        assert server.requests[0].headers["x-api-key"] == "k"


def test_a_refused_request_uses_up_no_reply() -> None:
    with AnthropicServer([reply("hi")]) as server:
        assert post(server, {**ASK, "seed": 1}).status_code == 400
        assert post(server).json()["content"] == [{"type": "text", "text": "hi"}]
        assert server.refusals == ["seed: Extra inputs are not permitted"]


def test_a_request_beyond_the_script_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="one more request came than the script has replies"):  # noqa: SIM117
        with AnthropicServer([]) as server:
            assert post(server).status_code == 500


def test_a_connection_is_kept_alive() -> None:
    with AnthropicServer(lambda _: reply("hi")) as server, httpx.Client(headers=HEADERS) as client:
        for body in (ASK, STREAM, ASK):
            client.post(f"{server.url}/v1/messages", json=body)
        client.post(f"{server.url}/v1/messages", content=iter([json.dumps(ASK).encode()]))
        post(server)

    assert [request.connection for request in server.requests] == [1, 1, 1, 1, 2]


def test_a_process_can_call_the_server() -> None:
    source = "import sys, httpx; print(httpx.get(sys.argv[1]).status_code)"
    with AnthropicServer([]) as server:
        command = [sys.executable, "-c", source, server.url]
        run = subprocess.run(command, check=True, capture_output=True, text=True)

    assert run.stdout.strip() == "404"


# ---------------------------------------------------------------- failed answers


@pytest.mark.parametrize(
    ("answer", "headers"),
    [
        (rate_limited(seconds=2), {"retry-after": "2"}),
        (rate_limited(milliseconds=5), {"retry-after-ms": "5"}),
        (
            rate_limited(date="Wed, 21 Oct 2099 07:28:00 GMT"),
            {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"},
        ),
        (rate_limited(seconds=61), {"retry-after": "61"}),
        (rate_limited(), {}),
    ],
    ids=["seconds", "milliseconds", "date", "more than a minute", "none"],
)
def test_a_rate_limit_asks_for_a_wait(answer: Answer, headers: dict[str, str]) -> None:
    with AnthropicServer([answer]) as server:
        got = post(server)

    assert (got.status_code, got.json()["error"]["type"]) == (429, "rate_limit_error")
    assert {name: value for name, value in got.headers.items() if name.startswith("retry")} == headers


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        (overloaded(), 529, "overloaded_error"),
        (error(500), 500, "api_error"),
        (error(503), 503, "api_error"),
        (error(402), 402, "billing_error"),
        (error(400, "prompt is too long"), 400, "invalid_request_error"),
        (error(500, kind="timeout_error", x_should_retry="false"), 500, "timeout_error"),
    ],
    ids=["overloaded", "500", "503", "402", "400", "with a kind"],
)
def test_an_error_names_its_kind(answer: Answer, status: int, kind: str) -> None:
    with AnthropicServer([answer]) as server:
        got = post(server)

    assert (got.status_code, got.json()["error"]["type"]) == (status, kind)


def test_a_page_is_no_json() -> None:
    with AnthropicServer([faults.html(502)]) as server:
        got = post(server)

    assert (got.status_code, got.headers["content-type"]) == (502, "text/html; charset=utf-8")


# ---------------------------------------------------------------- faults of a stream


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (faults.cut(2), SHORT[:2]),
        (faults.duplicate(2), [*SHORT[:3], *SHORT[2:]]),
        (faults.unknown_event(1), [SHORT[0], "brand_new", *SHORT[1:]]),
        (pings(3), [*SHORT[:2], "ping", *SHORT[2:5], "ping", *SHORT[5:]]),
        (error_event(), ["error"]),
        (error_event(3), [*SHORT[:3], "error"]),
        (faults.comment(2), SHORT),
        (faults.crlf(), SHORT),
        (faults.line_ends("\r"), SHORT),
        (faults.rechunk(1), SHORT),
        (faults.rechunk(7, 1, 300), SHORT),
        (faults.gzipped(), SHORT),
        (faults.drip(0.001), SHORT),
    ],
    ids=[
        "cut",
        "duplicate",
        "unknown",
        "pings",
        "error first",
        "error later",
        "comment",
        "CRLF",
        "CR",
        "single bytes",
        "odd sizes",
        "gzip",
        "drip",
    ],
)
def test_a_stream_can_be_odd(fault: faults.Fault, expected: list[str]) -> None:
    with AnthropicServer([reply("hi", faults=[fault])]) as server:
        assert kinds(post(server, STREAM).text) == expected


def test_line_ends_are_what_was_asked_for() -> None:
    with AnthropicServer([reply("hi", faults=[faults.crlf()])]) as server:
        body = post(server, STREAM).content

    assert body.count(b"\r\n\r\n") == 6
    assert b"\n" not in body.replace(b"\r\n", b"")


def test_faults_of_the_server_apply_to_every_answer() -> None:
    with AnthropicServer([overloaded(), reply("hi")], faults=[faults.rechunk(3)]) as server:
        assert post(server).status_code == 529
        assert kinds(post(server, STREAM).text) == SHORT


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (faults.reset(), httpx.ReadError),
        (faults.reset(2), httpx.ReadError),
        (faults.cut(2, "close"), httpx.RemoteProtocolError),
        (faults.wrong_length(9), httpx.RemoteProtocolError),
        (faults.hang(), httpx.ReadTimeout),
        (faults.hang(2), httpx.ReadTimeout),
        (faults.delay(5), httpx.ReadTimeout),
    ],
    ids=["reset", "reset later", "close", "length", "hang", "hang later", "delay"],
)
def test_a_connection_can_break(fault: faults.Fault, raised: type[Exception]) -> None:
    with AnthropicServer([reply("hi", faults=[fault])]) as server, pytest.raises(raised):
        post(server, STREAM, timeout=0.2)


def test_a_length_that_is_too_small_cuts_the_body() -> None:
    with AnthropicServer([reply("hi"), reply("hi", faults=[faults.wrong_length(-5)])]) as server:
        whole, short = post(server).content, post(server).content

    assert short == whole.replace(b"msg_1", b"msg_2")[:-5]


def test_a_drip_takes_its_time() -> None:
    with AnthropicServer([reply("hi", faults=[faults.drip(0.02)])]) as server:
        start = time.monotonic()
        post(server, STREAM)

    assert time.monotonic() - start >= 6 * 0.02


def test_the_server_notices_that_a_client_went_away() -> None:
    with AnthropicServer([reply("hi", faults=[faults.hang(2)])]) as server:
        with pytest.raises(httpx.ReadTimeout):
            post(server, STREAM, timeout=0.1)
        assert server.requests[0].abandoned.wait(2)
