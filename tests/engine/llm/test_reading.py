"""octo/llm/reading.py: an answer fed to a decoder, and what is said of one that is none."""

import logging
from collections.abc import Sequence

import pytest

from octo.errors import NotAnAnswer, ProviderError, Truncated
from octo.llm.chat import ChatRequest, ChatResponse, Delta, user
from octo.llm.credentials import Credentials
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint
from octo.llm.wires import anthropic
from vendor.anthropic import AnthropicServer
from vendor.server import Answer

JSON = ("content-type", "application/json")
EVENTS = ("content-type", "text/event-stream")
TEXT = ("content-type", "text/plain")
HI = '{"type":"message","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}'


class Waits(list[float]):
    """Stands for the clock: remembers how long it was asked to wait, and does not."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def ask(script: Sequence[Answer], waits: Waits, *, stream: bool = False) -> ChatResponse:
    async def ignore(_: Delta) -> None:
        """A listener that does not care."""

    with AnthropicServer(script) as server:
        endpoint = Endpoint(Credentials("anthropic", server.url, "x-api-key", api_key="secret-key"), "m")
        call = anthropic.encode(ChatRequest((user("hello"),)), endpoint, stream=stream)
        async with Transport({}, mask=endpoint.credentials.mask, sleep=waits) as transport:
            try:
                return await transport.send(call, anthropic.decoder, ignore if stream else None)
            except ProviderError as error:
                error.message = error.message.replace(server.url, "URL")
                raise


def answer(body: str | bytes, *headers: tuple[str, str], status: int = 200, length: int | None = None) -> Answer:
    data = body.encode() if isinstance(body, str) else body
    return Answer(status, headers, (data,), content_length=length)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (answer("{}", JSON), "expected a message with a `type`, found `{}`"),
        (answer("[1]", JSON), "expected a message with a `type`, found `[1]`"),
        (answer('{"choices":[]}', JSON), 'expected a message with a `type`, found `{"choices":[]}`'),
        (answer('{"type":"ping"}', JSON), 'expected a whole message, found `{"type":"ping"}`'),
        (
            answer('{"type":"message","content":"hi"}', JSON),
            'expected `content` to be a list of blocks, found `"hi"`',
        ),
        (
            answer('{"type":"message","content":null}', JSON),
            "expected `content` to be a list of blocks, found `null`",
        ),
        (answer('{"type":"message"}', JSON), "expected `content` to be a list of blocks, found `null`"),
        (
            answer('{"type":"message","content":["hi"]}', JSON),
            'expected a block with a `type` in `content`, found `"hi"`',
        ),
        (answer("", JSON), "expected JSON, found an empty body"),
        (answer("", JSON, status=204), "expected JSON, found an empty body"),
        (answer('{"type": oops}', JSON), 'expected JSON, found `{"type": oops}`'),
        (answer(f'{{"type":{"[" * 100_000}{"]" * 100_000}}}', JSON), "it is nested too deeply"),
        (answer("hello \x1b[31mthere", TEXT), "expected JSON, found `hello [31mthere`"),
        (answer(b"\0\1\2", TEXT), "expected JSON, found 3 bytes that are no text"),
        (
            answer("<html><head><title>Sign in</title>", ("content-type", "text/html")),
            "expected JSON, found an HTML page: Sign in",
        ),
        (answer("??", JSON, ("content-encoding", "br")), "expected JSON, found a body in the encoding `br`"),
        (
            answer(f'{{"secret-key":"secret-key {"x" * 66} secret-key"}}', JSON),
            f'expected a message with a `type`, found `{{"***":"*** {"x" * 66} ***…`',
        ),
    ],
    ids=[
        "empty object",
        "list",
        "another API",
        "a lone event",
        "text as content",
        "null as content",
        "no content",
        "text as block",
        "nothing",
        "no content by its status",
        "broken JSON",
        "deep JSON",
        "text",
        "bytes",
        "page",
        "another encoding",
        "secret, cut off in the middle",
    ],
)
async def test_a_whole_answer_that_is_none_says_what_was_found_and_is_not_asked_for_again(given: Answer, text: str):
    waits = Waits()
    with pytest.raises(NotAnAnswer) as caught:
        await ask([given], waits)

    assert caught.value.message == f"POST URL/v1/messages: status {given.status} without a usable answer: {text}"
    assert (caught.value.status, waits) == (given.status, [])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (answer("{}", JSON), "expected a message with a `type`, found `{}`"),
        (answer("", TEXT), "expected a stream of events, found an empty body"),
        (answer("", EVENTS, status=204), "expected a stream of events, found an empty body"),
        (answer("hello", TEXT), "expected a stream of events, found `hello`"),
        (answer("<html><body>Hi</body>"), "expected a stream of events, found an HTML page: Hi"),
        (answer(HI), f"expected a stream of events, found `{HI}`"),
        (
            answer('data: nonsense\n\ndata: [1]\n\ndata: 3\n\ndata: ""\n\ndata: {}\n\n', EVENTS),
            "5 unreadable events in a row, the last: expected a message with a `type`, found `{}`",
        ),
        (
            answer("data: nonsense\n\n" * 5, EVENTS),
            "5 unreadable events in a row, the last: expected JSON, found `nonsense`",
        ),
        (
            answer(f"data: {'[' * 100_000}{']' * 100_000}\n\n" * 5, EVENTS),
            "5 unreadable events in a row, the last: it is nested too deeply",
        ),
    ],
    ids=[
        "JSON",
        "nothing",
        "no content by its status",
        "text",
        "page without a type",
        "message without a type",
        "events of no known shape",
        "events that are not JSON",
        "deep events",
    ],
)
async def test_a_stream_that_is_none_says_what_was_found_and_is_not_asked_for_again(given: Answer, text: str):
    waits = Waits()
    with pytest.raises(NotAnAnswer) as caught:
        await ask([given], waits, stream=True)

    assert caught.value.message == f"POST URL/v1/messages: status {given.status} without a usable answer: {text}"
    assert waits == []


@pytest.mark.parametrize("end", range(1, len(HI), 7))
async def test_a_body_that_was_cut_off_is_asked_for_again(end: int):
    waits = Waits()
    cut = answer(HI[:end], JSON)

    assert (await ask([cut, answer(HI, JSON)], waits)).text == "hi"
    assert len(waits) == 1


@pytest.mark.parametrize(
    "given",
    [
        answer('{"type":"message","content":[{"type":"text","text":"caf\u00e9'.encode()[:-1], JSON),
        answer('{"type":"message","content":[{"type":"text","text":"a \\', JSON),
        answer('{"type":"message","content":[{"type":"text","text":"a {[ \\" }}"', JSON),
    ],
    ids=["in a character", "in an escape", "after brackets in a text"],
)
async def test_wherever_a_body_is_cut_off_it_is_seen(given: Answer):
    waits = Waits()
    with pytest.raises(Truncated) as caught:
        await ask([given] * 4, waits)

    assert caught.value.message == "POST URL/v1/messages: status 200, but the answer broke off before its end"
    assert len(waits) == 3


async def test_bytes_that_are_not_utf_8_are_replaced_and_told(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    spoilt = HI.encode().replace(b"hi", b"caf\xe9")
    response = await ask([answer(spoilt, JSON)], Waits())
    event = b"data: " + spoilt + b"\n\n"

    assert response.text == "caf\ufffd"
    assert caplog.messages == ["the answer holds bytes that are not UTF-8, which are read as `\ufffd`"]
    assert await ask([answer(event, EVENTS)], Waits(), stream=True) == response


async def test_unreadable_events_are_skipped_and_told(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    lines = ["nonsense secret-key", "[1]", "{}", '"x"', '{"type":"ping"}', '{"type":"content_block_delta"}', HI]
    response = await ask([answer("".join(f"data: {line}\n\n" for line in lines), EVENTS)], Waits(), stream=True)

    assert response.text == "hi"
    assert caplog.messages == [
        "an event of the answer is skipped: expected JSON, found `nonsense ***`",
        "an event of the answer is skipped: expected a message with a `type`, found `[1]`",
        "an event of the answer is skipped: expected a message with a `type`, found `{}`",
        'an event of the answer is skipped: expected a message with a `type`, found `"x"`',
        'an event of the answer is skipped: expected an event with its content, found `{"type":"content_block_delta"}`',
    ]
