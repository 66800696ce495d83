"""octo/agent/fragments.py: pieces of an answer, in which no character and no secret is cut in two."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octo import masking
from octo.agent.fragments import Fragments
from octo.llm.chat import Delta, Retry, TextDelta, ThinkingDelta, ToolCall, ToolInput, ToolReady
from octo.values import clean_text

SECRETS = masking.forms(["hunter22", "a b c d"])


def told(*deltas: Delta, secrets: Sequence[str] = ()) -> list[Delta]:
    fragments = Fragments(secrets)
    return [ready for delta in deltas for ready in fragments.ready(delta)] + list(fragments.rest())


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["ab", "c"], ["ab", "c"]),
        (["", "x", ""], ["x"]),
        (["a\ud83d", "\ude00b"], ["a", "😀b"]),
        (["a\ud83d"], ["a", "\ufffd"]),
        (["\ude00b"], ["\ufffdb"]),
        (["\ud83d", "x"], ["\ufffdx"]),
    ],
    ids=["as they are", "nothing is no piece", "halves joined", "half at the end", "half at the start", "half alone"],
)
def test_characters_are_whole(pieces: list[str], expected: list[str]) -> None:
    assert told(*map(TextDelta, pieces)) == [TextDelta(text) for text in expected]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["is hun", "ter22."], ["is ", "hunter22."]),
        (["hunt", "ing"], ["hunting"]),
        (["hunter22", "!"], ["hunter22", "!"]),
        (["a", " b", " c", " d", "e"], ["a b c d", "e"]),
        (["hunte"], ["hunte"]),
    ],
    ids=["cut in two", "only like one", "whole", "piece by piece", "begun at the end"],
)
def test_secrets_are_whole(pieces: list[str], expected: list[str]) -> None:
    assert told(*map(TextDelta, pieces), secrets=SECRETS) == [TextDelta(text) for text in expected if text]


def test_each_text_goes_on_by_itself() -> None:
    deltas = (
        ToolInput("hun", "c1", "t", 0),
        ToolInput("\ud83d", "c2", "t", 1),
        ToolInput("ter22", "c1", "t", 0),
        ToolInput("\ude00", "c2", "t", 1),
    )

    assert told(*deltas, secrets=SECRETS) == [ToolInput("hunter22", "c1", "t", 0), ToolInput("😀", "c2", "t", 1)]


def test_what_is_held_back_comes_before_what_is_of_another_kind() -> None:
    ready = ToolReady(ToolCall("c", "t", "{}"))

    assert told(ThinkingDelta("hm h"), TextDelta("so h"), ready, secrets=SECRETS) == [
        ThinkingDelta("hm "),
        ThinkingDelta("h"),
        TextDelta("so "),
        TextDelta("h"),
        ready,
    ]


def test_what_broke_off_is_forgotten() -> None:
    retry = Retry(1, "broke")

    assert told(TextDelta("so h"), retry, TextDelta("is it"), secrets=SECRETS) == [
        TextDelta("so "),
        retry,
        TextDelta("is it"),
    ]


@given(
    st.lists(st.sampled_from(["hunter22", "hun", "ter22", "a b", " c d", "x", "\ud83d", "\ude00", "hunterhunter22"])),
    st.lists(st.integers(0, 40)),
)
def test_however_a_text_is_cut_it_is_told_whole_and_its_secrets_can_be_hidden(
    words: list[str], cuts: list[int]
) -> None:
    text = "".join(words)
    places = sorted({min(cut, len(text)) for cut in (0, *cuts, len(text))})
    pieces = [TextDelta(text[start:end]) for start, end in pairwise(places)]
    texts = [piece.text for piece in told(*pieces, secrets=SECRETS) if isinstance(piece, TextDelta)]

    assert "".join(texts) == clean_text(text)
    shown = "".join(masking.hidden(one, SECRETS) for one in texts)
    assert not any(secret in shown for secret in SECRETS)
