"""octo/llm/transport.py, octo/llm/model.py: every fault on every wire ends in time, with the truth and a right bill."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

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
from octo.llm.chat import ChatRequest, ChatResponse, Delta, Retry, Spent, TextDelta, ToolReady, Usage, user
from octo.llm.providers import PROVIDERS
from octo.llm.transport import Transport
from octo.values import Json
from vendor import bedrock, faults
from vendor.doubles import DOUBLES, KEY, Double, Said
from vendor.faults import Fault
from vendor.server import Answer, Request

TRIES = 4
"""One call and its retries."""
ASKED = ChatRequest((user("how is it?"),))
SAID = Said("It is — 7 😀, and more of it.", thinking="let me see", calls=(("lookup", {"n": 1}),))

ON_EACH_WIRE = pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)


@dataclass
class Heard:
    """What became of a call."""

    answer: ChatResponse | None
    error: ProviderError | None
    deltas: list[Delta]
    waits: list[float]
    requests: int
    seconds: float

    @property
    def shown(self) -> list[Delta]:
        """What a listener still shows who forgets what a retry calls off."""
        kept: list[Delta] = []
        for delta in self.deltas:
            kept = [] if isinstance(delta, Retry) else [*kept, delta]
        return kept


async def call(double: Double, script: Any, *, stream: bool = True, limit: int = 20) -> Heard:
    """Make a call to a server with a script; a list is answered in turn, and its last reply again and again."""
    deltas: list[Delta] = []
    waits: list[float] = []

    async def listen(delta: Delta) -> None:
        deltas.append(delta)

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    def reply(_: Request) -> Any:
        return script[min(len(server.requests), len(script)) - 1]

    answer, error = None, None
    with double.serve(reply) as server:
        environ = {"OCTO_AI_TIMEOUT_SECONDS": str(limit)}
        async with Transport(environ, sleep=wait, random=lambda: 1.0) as transport:
            model = double.asked(server.url, transport, **double.settings)
            began = time.monotonic()
            try:
                answer = await model.complete(ASKED, session={}, on_delta=listen if stream else None)
            except ProviderError as failure:
                error = failure
            seconds = time.monotonic() - began
        assert server.refusals == []
    return Heard(answer, error, deltas, waits, len(server.requests), seconds)


def spoilt(double: Double, *spoil: Fault) -> Any:
    return replace(saying(double), faults=spoil)


def saying(double: Double) -> Any:
    said = double.say(SAID)
    return replace(said, usage_in="each") if double.name == "Chat Completions" else said


async def pieces(double: Double) -> tuple[bytes, ...]:
    """The events of the answer without a fault."""
    kept: list[Answer] = []

    def keep(answer: Answer) -> Answer:
        kept.append(answer)
        return answer

    await call(double, [spoilt(double, keep)])
    return kept[0].pieces


# ---------------------------------------------------------------- the bill, told without any decoder

_READ = ("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens")
_WRITTEN = ("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens")


def told(events: Sequence[bytes]) -> Usage | None:
    """The tokens that some events of a stream tell."""
    counts: dict[str, int] = {}
    for event in events:
        start = event.find(b'{"')
        if start >= 0:
            data, _ = json.JSONDecoder().raw_decode(event[start:].decode("utf-8", errors="replace"))
            counts |= _counts(data)
    read, written = (next((counts[name] for name in names if name in counts), None) for names in (_READ, _WRITTEN))
    return None if read is None and written is None else Usage(prompt_tokens=read, output_tokens=written)


def _counts(data: Json) -> dict[str, int]:
    if not isinstance(data, dict):
        return {}
    found: dict[str, int] = {}
    for key, value in data.items():
        if key in ("usage", "usageMetadata") and isinstance(value, dict):
            found |= {name: count for name, count in value.items() if isinstance(count, int)}
        else:
            found |= _counts(value)
    return found


def total(spent: Sequence[Spent]) -> Usage | None:
    found = [Usage(prompt_tokens=one.usage.prompt_tokens, output_tokens=one.usage.output_tokens) for one in spent]
    return reduce(add, found) if found else None


def times(usage: Usage | None, count: int) -> Usage | None:
    return reduce(add, [usage] * count) if usage is not None else None


# ---------------------------------------------------------------- an answer that breaks off


def is_whole(heard: Heard) -> bool:
    return heard.answer is not None and heard.answer.text == SAID.text and len(heard.answer.calls) == 1


@pytest.mark.parametrize("ending", ["whole", "close", "reset"])
@ON_EACH_WIRE
async def test_a_stream_that_ends_too_early_is_an_error_or_is_made_good(double: Double, ending: Any):
    """At each event: for good, and once. What was told of tokens is paid, and no part of an answer is taken for it."""
    events = await pieces(double)
    for place in range(0, len(events), 1 if ending == "whole" else 5):
        broken = spoilt(double, faults.cut(place, ending))
        lost = told(events[:place])
        once = await call(double, [broken, saying(double)])

        assert is_whole(once)
        assert sum(isinstance(delta, ToolReady) for delta in once.shown) == 1
        assert "".join(delta.text for delta in once.shown if isinstance(delta, TextDelta)) == SAID.text
        assert once.answer is not None
        if once.requests == 1:  # only what the answer costs was still to come
            assert place > len(events) // 2
            continue
        assert (once.requests, total(once.answer.lost)) == (2, lost)
        always = await call(double, [broken])
        assert type(always.error) is Truncated
        assert "status 200, but the answer broke off before its end" in always.error.message
        assert (always.requests, total(always.error.spent)) == (TRIES, times(lost, TRIES))


@ON_EACH_WIRE
async def test_an_error_in_a_stream_is_told_in_the_words_of_the_provider(double: Double):
    events = await pieces(double)
    for place in range(len(events) - 1):
        broken = spoilt(double, double.stream_error(place, message="Come back later"))
        lost = told(events[:place])
        once = await call(double, [broken, saying(double)])

        assert is_whole(once)
        assert once.answer is not None
        if once.requests == 1:  # it came after the end
            assert place > len(events) // 2
            continue
        assert (once.requests, total(once.answer.lost)) == (2, lost)
        always = await call(double, [broken])
        assert always.error is not None
        assert "in the answer: Come back later" in always.error.message
        assert (always.requests, total(always.error.spent)) == (TRIES, times(lost, TRIES))


@ON_EACH_WIRE
async def test_an_answer_at_the_first_try_loses_nothing(double: Double):
    heard = await call(double, [saying(double)])

    assert heard.answer is not None
    assert (is_whole(heard), heard.answer.lost, heard.waits) == (True, (), [])
    assert heard.answer.usage is not None
    assert (heard.answer.usage.prompt_tokens, heard.answer.usage.output_tokens) == (10, 5)


# ---------------------------------------------------------------- no answer at all


@dataclass(frozen=True)
class Case:
    """A fault, and what has to become of it."""

    reply: Callable[[Double], Any]
    kind: type[ProviderError]
    words: str
    """What the error tells, beside where it happened."""
    status: int | None = None
    waits: tuple[float, ...] = ()
    stream: bool = True


BACKING_OFF = (1.0, 2.0, 4.0)


def failing(status: int, message: str = "Come back later", **headers: str) -> Callable[[Double], Any]:
    return lambda double: double.error(status, message, **headers)


def broken(*spoil: Fault) -> Callable[[Double], Any]:
    return lambda double: spoilt(double, *spoil)


def alone(answer: Answer) -> Answer:
    """The connection is not used again, on which more came than was said."""
    return replace(answer, headers=(*answer.headers, ("connection", "close")))


def plain(answer: Answer) -> Callable[[Double], Any]:
    return lambda _: answer


JSON = (("content-type", "application/json"),)
STREAM = (("content-type", "text/event-stream"),)
HERE = (("location", "https://elsewhere.example/x"),)

CASES = {
    "429 without a wait": Case(failing(429), RateLimited, "status 429: Come back later", 429, BACKING_OFF),
    "429 with seconds": Case(failing(429, retry_after="7"), RateLimited, "Come back later", 429, (7.0,) * 3),
    "429 with milliseconds": Case(
        failing(429, retry_after_ms="1500", retry_after="7"), RateLimited, "Come back later", 429, (1.5,) * 3
    ),
    "429 with a date": Case(
        failing(429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"), RateLimited, "Come back later", 429, BACKING_OFF
    ),
    "429 with too long a wait": Case(
        failing(429, retry_after="3600"), RateLimited, "the provider asks to wait 3600 s, octo waits at most 60 s", 429
    ),
    "429 that is final": Case(failing(429, x_should_retry="false"), RateLimited, "Come back later", 429),
    "500": Case(failing(500), ProviderError, "status 500: Come back later", 500, BACKING_OFF),
    "503": Case(failing(503), ProviderError, "status 503: Come back later", 503, BACKING_OFF),
    "529": Case(failing(529), ProviderError, "status 529: Come back later", 529, BACKING_OFF),
    "400": Case(failing(400, "No such thing"), BadRequest, "status 400: No such thing", 400),
    "401": Case(failing(401, "Who are you?"), AuthenticationFailed, "status 401: Who are you?", 401),
    "403": Case(failing(403, "Not you"), AuthenticationFailed, "status 403: Not you", 403),
    "404": Case(failing(404, "No model of that name"), BadRequest, "status 404: No model of that name", 404),
    "a page with an error": Case(
        plain(faults.html(502)), ProviderError, "status 502: an HTML page: 502 Bad Gateway", 502, BACKING_OFF
    ),
    "a page in the place of an answer": Case(
        plain(faults.html(200, "<html><title>Sign in</title></html>")), NotAnAnswer, "an HTML page: Sign in", 200
    ),
    "an error without a body": Case(plain(Answer(500)), ProviderError, "status 500", 500, BACKING_OFF),
    "half an error": Case(
        plain(Answer(500, JSON, (b'{"error":{"message":"It bro',))), ProviderError, "status 500", 500, BACKING_OFF
    ),
    "a redirect": Case(
        plain(Answer(307, HERE)),
        NotAnAnswer,
        "status 307: redirects are not followed, this one leads to https://elsewhere.example/x",
        307,
    ),
    "nothing at all": Case(plain(Answer(200, JSON, (b"",))), NotAnAnswer, "an empty body", 200, stream=False),
    "a stream of nothing": Case(
        plain(Answer(200, STREAM, (), streamed=True)), Truncated, "broke off", 200, BACKING_OFF
    ),
    "JSON of another kind": Case(plain(Answer(200, JSON, (b"[1, 2]",))), NotAnAnswer, "`[1,2]`", 200, stream=False),
    "text": Case(plain(Answer(200, JSON, (b"hello there",))), NotAnAnswer, "hello there", 200, stream=False),
    "a reset before the answer": Case(broken(faults.reset()), Unreachable, "", None, BACKING_OFF),
    "a length that is too long": Case(
        broken(faults.wrong_length(10)), Truncated, "the answer broke off before its end", 200, BACKING_OFF, False
    ),
    "a length that is too short": Case(
        broken(faults.wrong_length(-10), alone),
        Truncated,
        "the answer broke off before its end",
        200,
        BACKING_OFF,
        False,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@ON_EACH_WIRE
async def test_a_fault_ends_in_an_error_that_tells_it(double: Double, case: Case):
    heard = await call(double, [case.reply(double)], stream=case.stream)

    error = heard.error
    assert error is not None
    assert (type(error), error.status, error.spent) == (case.kind, case.status, ())
    way = "stream" if case.stream else "complete"
    assert error.message.startswith(f'{PROVIDERS[double.provider].connector} {way}: connector "m": ')
    assert case.words in error.message
    assert KEY not in f"{error.message} {error.hint}"
    assert tuple(heard.waits) == case.waits
    assert heard.seconds < 5


PASSING = {name: case for name, case in CASES.items() if case.waits or case.kind in (Truncated, Unreachable)}


@pytest.mark.parametrize("case", PASSING.values(), ids=PASSING)
@ON_EACH_WIRE
async def test_a_fault_that_passes_is_made_good(double: Double, case: Case):
    heard = await call(double, [case.reply(double), saying(double)], stream=case.stream)

    assert heard.answer is not None
    assert (is_whole(heard), heard.answer.lost, heard.requests) == (True, (), 2)


# ---------------------------------------------------------------- time


@ON_EACH_WIRE
async def test_what_takes_too_long_ends_with_the_time_of_the_call(double: Double):
    """Silence before the answer, in the middle of it, and a drip that never stops; what was told by then is paid."""
    events = await pieces(double)
    middle = len(events) // 2
    slow = (faults.hang(), faults.hang(middle), faults.drip(0.4))
    all_heard = await asyncio.gather(*(call(double, [spoilt(double, one)], limit=1) for one in slow))

    for heard in all_heard:
        assert type(heard.error) is OutOfTime
        assert "no answer within 1 s" in heard.error.message
        assert heard.requests == 1
        assert 0.9 < heard.seconds < 5
    silent, halfway, _ = (heard.error for heard in all_heard)
    assert silent is not None
    assert halfway is not None
    assert (silent.spent, total(halfway.spent)) == ((), told(events[:middle]))


# ---------------------------------------------------------------- what is no fault


@ON_EACH_WIRE
async def test_what_only_looks_like_a_fault_is_none(double: Double):
    """Events come twice, unknown ones between them, in single bytes, compressed."""
    is_bedrock = double.name == "Bedrock Converse"
    unknown = bedrock.unknown_frame(1) if is_bedrock else faults.unknown_event(1)
    twice = faults.duplicate(0)
    harmless = [[unknown], [faults.rechunk(1)], [faults.gzipped()], [faults.delay(0.05)]]
    harmless += [] if is_bedrock else [[faults.crlf(), faults.rechunk(3)], [faults.comment(1)]]
    harmless += [] if double.name in ("Gemini", "Chat Completions") else [[twice]]
    for spoil in harmless:
        heard = await call(double, [spoilt(double, *spoil)])

        assert (is_whole(heard), heard.requests) == (True, 1)
