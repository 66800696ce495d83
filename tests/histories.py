"""Any conversation: random, cut anywhere, interrupted at any step, taken over from another provider."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    File,
    Part,
    Reasoning,
    Search,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    user,
)
from octo.values import Json

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8

TEXTS = st.sampled_from(["", " ", "\n", "x", "x \n", "\ud83d"])
IDS = st.sampled_from(["", "a", "b", "a b", "ü", "toolu_" + "x" * 60])
NAMES = st.sampled_from(["t", "lookup", " ", "functions.t", "n" * 70])
ARGUMENTS = st.sampled_from(["", "{}", "[]", '{"a": 1}', '{"a":', "null", '{"a": NaN}'])
FILES = st.sampled_from(
    [
        File("image/jpeg", PNG),
        File("application/pdf", b"%PDF-1", "a.pdf"),
        File("application/pdf", b"%PDF-1", " "),
    ]
)
FOREIGN: Sequence[Json] = (
    None,
    "what an older version stored",
    {"wire": "gemini", "signature": "x"},
    {"wire": "anthropic", "signature": "x"},
    {"wire": "chat_completions", "dialect": "deepseek"},
    {"wire": "responses", "dialect": "elsewhere", "item": {"type": "reasoning", "id": "rs_1"}, "phase": "commentary"},
)
"""Replay data of others."""
TOOLS = (
    ToolDefinition("lookup", "Find it", {"type": "object", "properties": {"n": {"type": "number"}}}),
    ToolDefinition("t", "", {}),
)


def turns_of(role: str, parts: st.SearchStrategy[Part]) -> st.SearchStrategy[ChatMessage]:
    return st.lists(parts, max_size=3).map(lambda found: ChatMessage(role, tuple(found)))  # type: ignore[arg-type]  # one of three


def histories(own: Sequence[Json]) -> st.SearchStrategy[list[ChatMessage]]:
    """Conversations in which replay data of one wire stands beside that of others, wherever it may or may not."""
    replays = st.sampled_from([*FOREIGN, *own])
    said = st.one_of(
        st.builds(Text, TEXTS, replays),
        st.builds(ToolCall, IDS, NAMES, ARGUMENTS, replays),
        st.builds(Reasoning, TEXTS, replays),
        st.builds(Search, TEXTS, replays),
        FILES,
    )
    return st.lists(
        st.one_of(
            turns_of("user", st.one_of(st.builds(Text, TEXTS), FILES)),
            turns_of("assistant", said),
            turns_of("tool", st.builds(ToolResult, IDS, NAMES, TEXTS, st.booleans())),
        ),
        max_size=7,
    )


def requests(own: Sequence[Json]) -> st.SearchStrategy[ChatRequest]:
    """Requests of any conversation that ends with a user turn, with any settings."""
    return st.builds(
        ChatRequest,
        messages=histories(own).map(lambda turns: (*turns, user("go on"))),
        system=TEXTS,
        tools=st.sampled_from([(), TOOLS[:1], TOOLS]),
        tool_choice=st.sampled_from(["auto", "any", "none"]),
        max_tokens=st.sampled_from([None, 0, 99]),
        temperature=st.sampled_from([None, 0.0, 0.5]),
        reasoning_effort=st.sampled_from([None, "none", "low"]),
        web_search=st.booleans(),
        output_schema=st.sampled_from([None, {"type": "object", "properties": {"a": {"type": "string"}}}]),
        cache=st.booleans(),
        cache_key=st.sampled_from(["service/flow.block", "service/" + "flow" * 30]),
    )
