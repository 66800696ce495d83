"""octo/llm/framing.py: bytes to server-sent events."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.llm.framing import Damaged, EventFraming, TooLong, WholeEvents

EVENTS = ['{"type":"ping"}', '{"text":"naïve — 日本 😀"}', '{"a":\n"two data lines"}', "[DONE]"]


def events(*chunks: bytes) -> list[str]:
    framing = EventFraming()
    found = [event for chunk in chunks for event in framing.feed(chunk)]
    return [*found, *framing.finish()]


@st.composite
def encoded_streams(draw: st.DrawFn) -> bytes:
    """The same events, written in one of the many ways that are allowed."""
    end = st.sampled_from(["\n", "\r\n", "\r"])
    lines: list[str] = []
    for event in EVENTS:
        if draw(st.booleans()):
            lines.append(": keep-alive")
        if draw(st.booleans()):
            lines.append("event: anything")
        lines += [f"data:{draw(st.sampled_from(['', ' ']))}{part}" for part in event.split("\n")]
        lines.append("")
    if draw(st.booleans()):
        lines.pop()  # no blank line after the last event
    text = ""
    for line in lines:
        line += draw(end)
        if text.endswith("\r") and line == "\n":
            line = "\r\n"  # else the two would be one line end
        text += line
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


@given(stream=encoded_streams(), cuts=st.lists(st.integers(0, 400), max_size=30))
@settings(max_examples=150, deadline=None)
def test_the_events_do_not_depend_on_line_ends_comments_or_cuts(stream: bytes, cuts: list[int]):
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(places)]

    assert events(*chunks) == EVENTS


def test_a_line_end_may_have_nothing_between_its_halves():
    assert events(b"data: a\r", b"", b"\ndata: b\r", b"", b"\n\r\n") == ["a\nb"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_single_bytes_give_the_same_events(end: str):
    stream = "".join(f"data: {part}{end}" + end for part in ("é", "{}")).encode()

    assert events(*(stream[at : at + 1] for at in range(len(stream)))) == ["é", "{}"]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b": only a comment\n\n", []),
        (b"event: ping\n\n", []),
        (b"data\n\n", []),
        (b"data:\n\n", []),
        (b"data:  two spaces\n\n", [" two spaces"]),
        (b"data: a\ndata\ndata: b\n\n", ["a\n\nb"]),
        (b"id: 7\nretry: 10\ndata: x\n\n", ["x"]),
        (b"DATA: x\n\n", []),
        (b"\xef\xbb\xbfdata: x\n\n", ["x"]),
        (b"data: \xff\n\n", ["�"]),
    ],
    ids=[
        "nothing",
        "blank lines",
        "comment",
        "event without data",
        "data without colon",
        "empty data",
        "one space is removed",
        "lines join with LF",
        "other fields",
        "names are exact",
        "byte order mark",
        "not UTF-8",
    ],
)
def test_what_counts_as_an_event(stream: bytes, expected: list[str]):
    assert events(stream) == expected


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (b'data: {"a":1}', ['{"a":1}']),
        (b'data: {"a":1}\n', ['{"a":1}']),
        (b"data: [DONE]", ["[DONE]"]),
        (b'data: {"a":', []),
        (b"data: hello", []),
    ],
    ids=["whole JSON", "whole JSON and its line end", "end mark", "cut JSON", "not JSON"],
)
def test_an_unfinished_event_counts_only_if_it_is_whole_in_itself(rest: bytes, expected: list[str]):
    assert events(b"data: 1\n\n" + rest) == ["1", *expected]


def test_an_event_that_is_too_long_is_refused_before_it_ends():
    framing = EventFraming(limit=2**20)
    framing.feed(b"data: " + b"x" * (2**20 - 6))

    with pytest.raises(TooLong, match="an event of the answer is longer than 1 MiB"):
        framing.feed(b"x")


def test_many_events_may_be_longer_together_than_one_may_be():
    framing = EventFraming(limit=100)
    event = b"data: " + json.dumps("x" * 60).encode() + b"\n\n"

    assert len(framing.feed(event * 50)) == 50


@pytest.mark.parametrize(
    ("chunks", "told"),
    [
        ([b"data: 1\n\ndata: 2", b"\n\n"], b"data: 1\n\ndata: 2\n\n"),
        ([b"data: 1\r", b"\n\r\n", b": x"], b"data: 1\r\n\r\n"),
        ([b"data: 1\n\ndata: [DONE]"], b"data: 1\n\ndata: [DONE]\n\n"),
        ([b'data: {"a": 1}\n'], b'data: {"a": 1}\n\n\n'),
        ([b": alive\n"], b""),
    ],
    ids=["whole", "line ends", "without its end", "without its blank line", "a comment"],
)
def test_events_are_told_whole(chunks: list[bytes], told: bytes):
    events = WholeEvents()

    assert b"".join([*map(events.feed, chunks), events.finish()]) == told


def test_a_stream_that_ends_in_the_middle_of_an_event_is_damaged():
    events = WholeEvents()
    events.feed(b'data: 1\n\ndata: {"a": ')

    with pytest.raises(Damaged, match="in the middle of an event"):
        events.finish()
