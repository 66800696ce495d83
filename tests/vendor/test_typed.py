"""vendor/typed.py: a value is held against published types in every corner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Required, TypedDict

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParams

from vendor.typed import mismatches


class Inner(TypedDict, total=False):
    kind: Required[Literal["a", "b"]]
    size: float | None


class Outer(TypedDict, total=False):
    name: Required[str]
    inners: Iterable[Inner]
    loose: dict[str, int]
    free: object


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({"name": "x", "inners": [{"kind": "a", "size": 1}, {"kind": "b", "size": None}], "free": [{}]}, []),
        ({"name": "x", "loose": {"a": 1}}, []),
        ([], [": expected a mapping, found []"]),
        ({}, [": lacks `name`"]),
        ({"name": 7}, [".name: expected str, found 7"]),
        ({"name": "x", "more": 1}, [".more: unknown"]),
        ({"name": "x", "known": 1}, []),
        ({"name": "x", "inners": [{"kind": "c"}]}, [".inners[0].kind: 'c' is none of ('a', 'b')"]),
        ({"name": "x", "inners": [{"kind": "a", "deep": 1}]}, [".inners[0].deep: unknown"]),
        ({"name": "x", "inners": [{"kind": "a", "size": True}]}, [".inners[0].size: expected float, found True"]),
        ({"name": "x", "inners": {}}, [".inners: expected a list, found {}"]),
        ({"name": "x", "loose": {"a": "1"}}, [".loose.a: expected int, found '1'"]),
        ({"name": "x", "loose": []}, [".loose: expected a mapping, found []"]),
    ],
)  # fmt: skip
def test_every_corner_is_looked_at(value: Any, faults: list[str]):
    assert mismatches(value, Outer, beyond={"known"}) == faults


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({}, False),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, False),
        ({"brand_new": 1}, True),
        ({"messages": [{"role": "user", "content": "x", "mood": "calm"}]}, True),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, True),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {}}]}]}, True),
        ({"tools": [{"type": "function", "function": {"description": "no name"}}]}, True),
        ({"reasoning_effort": "endless"}, True),
    ],
    ids=["plain", "parts", "unknown key", "of a message", "of a part", "of a call", "of a tool", "unknown word"],
)
def test_the_types_of_openai_bite(more: Any, fault: bool):
    request = {"model": "m", "messages": [{"role": "user", "content": "x"}], **more}

    assert bool(mismatches(request, CompletionCreateParams)) == fault
