"""An HTTP answer is fed to a decoder, as events or as one body. What is neither is told in words for people."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from octo.errors import NotAnAnswer, Truncated
from octo.llm import faults
from octo.llm.chat import Delta, OnDelta
from octo.llm.framing import DONE, EVENT_LIMIT, Damaged, EventFraming, Framing, TooLong
from octo.llm.wire import BROKE_OFF, Decoder, Unreadable, shown
from octo.values import Json

if TYPE_CHECKING:
    import httpx

UNREADABLE_IN_A_ROW: Final = 5
"""So many events that make no sense end a call."""

_ERROR_BODY: Final = 256 * 1024
_ERROR_BODY_SECONDS: Final = 5.0
_LAST_BYTES_SECONDS: Final = 0.2
_USAGE_SECONDS: Final = 3.0
"""How long to wait, after the end mark of an answer, for each event that may still come, as for what it cost."""
_HEAD: Final = 2000
"""How much of a stream is kept, to tell what it is when it holds no event."""

_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


async def read(
    response: httpx.Response,
    decoder: Decoder[object],
    on_delta: OnDelta | None,
    *,
    stream: bool,
    framing: Callable[[], Framing] = EventFraming,
    note: Callable[[str], None],
) -> None:
    """Feed an answer to its decoder. How it is read follows its content type, then what was asked for.

    `note` is told of what is wrong without ending the call. Raises ProviderError for an answer that is none.
    """
    content_type = response.headers.get("content-type", "").lower()
    async with aclosing(response.aiter_bytes()) as chunks:  # type: ignore[type-var]  # it is a generator
        if not response.is_success:
            raise faults.from_answer(response.status_code, response.headers, await start_of(chunks))
        if is_stream(response, asked=stream):
            frames = EventFraming() if "event-stream" in content_type else framing()
            await _read_events(chunks, frames, response, decoder, on_delta, note)
        else:
            for delta in _decoded(await whole(chunks), response, decoder, note):
                await tell(on_delta, delta)


def is_stream(response: httpx.Response, *, asked: bool) -> bool:
    """Whether an answer is a stream: by its content type, else because one was `asked` for."""
    content_type = response.headers.get("content-type", "").lower()
    return "event-stream" in content_type or (asked and not re.search("json|html", content_type))


async def tell(on_delta: OnDelta | None, delta: Delta) -> None:
    if on_delta is not None:
        await on_delta(delta)


# ---------------------------------------------------------------- events


async def _read_events(
    chunks: AsyncIterator[bytes],
    framing: Framing,
    response: httpx.Response,
    decoder: Decoder[object],
    on_delta: OnDelta | None,
    note: Callable[[str], None],
) -> None:
    """Feed events until the decoder has all that it needs, or no more come."""
    unreadable, head = 0, bytearray()
    async for data in _until_ended(_events(chunks, framing, head), decoder):
        try:
            deltas = decoder.feed(_event(data))
        except (ValueError, RecursionError) as error:
            unreadable += 1
            fault = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            note(f"an event of the answer is skipped: {fault}")
            if unreadable == UNREADABLE_IN_A_ROW:
                raise _unusable(response, f"{unreadable} unreadable events in a row, the last: {fault}") from error
            continue
        unreadable = 0
        for delta in deltas:
            await tell(on_delta, delta)
        if decoder.complete:
            await _read_rest(chunks)
            return
    if _is_no_stream(bytes(head), framing, response):
        found = faults.found(bytes(head), response.headers)
        raise _unusable(response, f"expected a stream of events, found {found}")


async def _until_ended(events: AsyncIterator[str], decoder: Decoder[object]) -> AsyncIterator[str]:
    """Events until no more come. After the end mark of the answer each is waited for a moment only."""
    while True:
        limit = asyncio.timeout(_USAGE_SECONDS if decoder.ended else None)
        try:
            async with limit:
                data = await anext(events, None)
        except TimeoutError:
            if not limit.expired():
                raise
            return
        if data is None:
            return
        yield data


def _event(data: str) -> Json:
    if data == DONE:
        return DONE
    try:
        return json.loads(data)
    except ValueError as error:
        raise Unreadable(f"expected JSON, found {faults.found(data.encode(), {})}") from error


async def _events(chunks: AsyncIterator[bytes], framing: Framing, head: bytearray) -> AsyncIterator[str]:
    """The data of each event; the beginning of the stream is kept in `head`."""
    try:
        async for chunk in chunks:
            head += chunk[: _HEAD - len(head)]
            for data in framing.feed(chunk):
                yield data
        for data in framing.finish():
            yield data
    except Damaged:
        if framing.is_stream(bytes(head)):
            raise


def _is_no_stream(head: bytes, framing: Framing, response: httpx.Response) -> bool:
    """Whether a stream that is over was none, rather than one that was cut off."""
    if head.strip():
        return not framing.is_stream(head)
    return response.status_code == 204 or response.headers.get("content-length") == "0"


async def _read_rest(chunks: AsyncIterator[bytes]) -> None:
    """Read to the end of an answer that is whole, for a moment: only then its connection serves the next call."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BYTES_SECONDS):
            async for _ in chunks:
                pass


# ---------------------------------------------------------------- bodies


def _decoded(
    body: bytes, response: httpx.Response, decoder: Decoder[object], note: Callable[[str], None]
) -> Sequence[Delta]:
    """Feed the decoder an answer that was not streamed."""
    text = body.decode("utf-8-sig", errors="replace")
    try:
        message = json.loads(text)
        deltas = decoder.feed(message)
    except Unreadable as error:
        raise _unusable(response, str(error)) from error
    except RecursionError as error:
        raise _unusable(response, "it is nested too deeply") from error
    except ValueError as error:
        if _is_beginning(text, response):
            raise Truncated(BROKE_OFF, retryable=True) from error
        raise _unusable(response, f"expected JSON, found {faults.found(body, response.headers)}") from error
    try:
        decoder.finish()
    except Truncated as error:
        raise _unusable(response, f"expected a whole message, found {shown(message)}") from error
    if "\ufffd" in text and not _is_utf8(body):
        note("the answer holds bytes that are not UTF-8, which are read as `\ufffd`")
    return deltas


def is_cut_off(body: bytes, response: httpx.Response) -> bool:
    """Whether a body is the beginning of a JSON object."""
    return not body.rstrip().endswith((b"}", b"]")) and _is_beginning(body.decode(errors="replace"), response)


def _is_beginning(text: str, response: httpx.Response) -> bool:
    """Whether a body that is not JSON is the beginning of some: a text or a bracket is still open at its end."""
    start = text.lstrip()[:1]
    if not start:
        return not {"content-length", "transfer-encoding"} & response.headers.keys() and response.status_code != 204
    rest = _STRING.sub("", text)
    opened, closed = (sum(map(rest.count, brackets)) for brackets in ("{[", "}]"))
    return start == "{" and ('"' in rest or opened > closed)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


async def whole(chunks: AsyncIterator[bytes]) -> bytes:
    """A body that is not streamed. Raises TooLong."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > EVENT_LIMIT:
            raise TooLong("the answer is longer than 32 MiB")
    return bytes(body)


async def start_of(chunks: AsyncIterator[bytes]) -> bytes:
    """As much of the body of an error as is worth waiting for."""
    body = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(_ERROR_BODY_SECONDS):
            async for chunk in chunks:
                body += chunk
                if len(body) >= _ERROR_BODY:
                    break
    return bytes(body[:_ERROR_BODY])


def _unusable(response: httpx.Response, fault: str) -> NotAnAnswer:
    status = response.status_code
    return NotAnAnswer(f"status {status} without a usable answer: {fault}", status=status)
