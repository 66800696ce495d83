"""What can go wrong between a vendor and its client: functions from an answer to a worse answer.

They are the same for every wire, and apply in the order given. Those that count events come before those that
cut the bytes anew (`rechunk`, `gzipped`), after which a piece is no event any more.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import Literal, TypeAlias

from vendor.server import Answer

Fault: TypeAlias = Callable[[Answer], Answer]


# ---------------------------------------------------------------- events of a stream


def insert(at: int, event: bytes) -> Fault:
    """Put bytes before event number `at`, counted from 0."""
    return lambda answer: replace(answer, pieces=(*answer.pieces[:at], event, *answer.pieces[at:]))


def unknown_event(at: int = 1) -> Fault:
    """An event of a type that no client knows yet."""
    return insert(at, b'event: brand_new\ndata: {"type":"brand_new","index":0,"delta":{"type":"newer"}}\n\n')


def comment(at: int = 0, text: str = "keep-alive") -> Fault:
    """A comment line, as proxies send it to keep a connection open."""
    return insert(at, f": {text}\n\n".encode())


def duplicate(at: int) -> Fault:
    """Send event number `at` twice."""
    return lambda answer: insert(at, answer.pieces[at])(answer)


def line_ends(end: Literal["\r\n", "\r", "\n"]) -> Fault:
    """Other line ends than `\\n`; data of an event never contains one."""
    return lambda answer: replace(answer, pieces=tuple(piece.replace(b"\n", end.encode()) for piece in answer.pieces))


def crlf() -> Fault:
    return line_ends("\r\n")


# ---------------------------------------------------------------- the way it ends


def cut(after: int, ending: Literal["whole", "close", "reset", "hang"] = "whole") -> Fault:
    """Stop after that many pieces: with a well-formed end, a closed or reset connection, or silence."""
    return lambda answer: replace(answer, pieces=answer.pieces[:after], ending=ending)


def reset(after: int | None = None) -> Fault:
    """Reset the connection: before any byte of the answer, or after status, headers and `after` pieces."""
    if after is not None:
        return cut(after, "reset")
    return lambda answer: replace(answer, pieces=(), send_head=False, ending="reset")


def hang(after: int | None = None) -> Fault:
    """Go silent without closing: before any byte of the answer, or after `after` pieces."""
    if after is not None:
        return cut(after, "hang")
    return lambda answer: replace(answer, pieces=(), send_head=False, ending="hang")


def wrong_length(difference: int) -> Fault:
    """Claim a content length that is wrong by that much, and close."""

    def spoil(answer: Answer) -> Answer:
        length = len(answer.body) + difference
        return replace(answer, streamed=False, content_length=length, ending="close")

    return spoil


# ---------------------------------------------------------------- time and bytes


def delay(seconds: float) -> Fault:
    """Wait before the first byte."""
    return lambda answer: replace(answer, delay=seconds)


def drip(seconds: float) -> Fault:
    """Wait before each piece."""
    return lambda answer: replace(answer, pause=seconds)


def rechunk(*sizes: int) -> Fault:
    """Cut the body anew into network writes of these sizes, used in turn; `rechunk(1)` sends single bytes."""

    def recut(answer: Answer) -> Answer:
        body, pieces, start = answer.body, [], 0
        for size in cycle(sizes):
            if start >= len(body):
                break
            pieces.append(body[start : start + size])
            start += size
        return replace(answer, pieces=tuple(pieces))

    return recut


def gzipped() -> Fault:
    """Compress the body; what was one piece can still be read as soon as it arrives."""

    def squeeze(answer: Answer) -> Answer:
        packer = zlib.compressobj(wbits=31)
        pieces = [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in answer.pieces]
        headers = (*answer.headers, ("content-encoding", "gzip"))
        return replace(answer, headers=headers, pieces=(*pieces, packer.flush()))

    return squeeze


# ---------------------------------------------------------------- whole answers


def html(status: int = 502, text: str = "<html><body><h1>502 Bad Gateway</h1></body></html>") -> Answer:
    """A page from something between vendor and client; with status 200 a sign-in page, for example."""
    return Answer(status, (("content-type", "text/html; charset=utf-8"),), (text.encode(),))
