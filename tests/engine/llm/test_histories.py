"""octo/llm/conversation.py, octo/llm/wires: whatever a conversation went through, every vendor takes it.

A model of one wire says something, that of another goes on; calls lose their results, turns are interrupted, and the
history is cut anywhere. The full count runs with OCTO_SOAK=1.
"""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo.llm.chat import ChatMessage, ChatRequest, File, Text, ToolDefinition, ToolResult, user
from octo.llm.providers import PROVIDERS
from soaking import examples
from vendor.doubles import DOUBLES, Double, Offline, Said

EXAMPLES = examples(few=60, all=20_000)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
TOOLS = (
    ToolDefinition("lookup", "Find it", {"type": "object", "properties": {"n": {"type": "number"}}}),
    ToolDefinition("t", ""),
)

TEXTS = st.sampled_from(["", " ", "\n\t", "It is so.", "ends with space \n", "é 😀", '{"a": 1}'])
CALLS = st.tuples(
    st.sampled_from(["lookup", "t", "unknown", "look.up"]),
    st.sampled_from([{}, {"n": 1}, {"n": [1, {"é": None}]}, '{"n":', "[]"]),
)
SAID = st.builds(
    Said,
    text=TEXTS,
    calls=st.lists(CALLS, max_size=3).map(tuple),
    thinking=st.sampled_from(["", "", "hm", "let me see\n"]),
    cut_off=st.integers(0, 7).map(lambda one: one == 0),
    refuses=st.integers(0, 15).map(lambda one: one == 0),
    searched=st.sampled_from(["", "", "weather"]),
)
RESULTS = st.lists(st.sampled_from(["done", "", " ", '{"x": 1}', None]), min_size=3, max_size=3)
"""The texts of the results of up to three calls; None is one that was lost."""
INPUTS = st.sampled_from(
    [
        None,
        user("and now?"),
        user(" "),
        user("look", File("image/png", PNG, "a.png"), File("application/pdf", b"%PDF-1.4", "b:c.pdf")),
        user("", File("image/png", PNG)),
    ]
)
STEPS = st.lists(st.tuples(st.sampled_from(DOUBLES), SAID, RESULTS, INPUTS, st.booleans()), max_size=5)
CUTS = st.tuples(st.integers(0, 6), st.integers(0, 3))


async def ask(
    double: Double, server: object, turns: list[ChatMessage], *, stream: bool, search: bool = False
) -> ChatMessage:
    """The next turn of a model. Fails when its vendor refuses the request."""
    request = ChatRequest(tuple(turns), system="be brief", tools=TOOLS, cache=True, cache_key="k")
    request = replace(request, web_search=search and PROVIDERS[double.provider].searches)
    model = double.asked("http://double", Offline(server), **double.settings)
    answer = await model.complete(request, session={}, on_delta=ignore if stream else None)
    return answer.message


async def ignore(_: object) -> None:
    """A listener that does not care."""


async def play(target: Double, steps: list, cuts: tuple[int, int]) -> None:
    """Let the models of the steps talk; then the target goes on with what is left of the history."""
    said: list[Said] = []
    servers = {double.name: double.serve(lambda _, d=double: d.say(said[-1])) for double in DOUBLES}
    turns = [user("go")]
    for double, what, results, more, stream in steps:
        said.append(what)
        answer = await ask(double, servers[double.name], turns, stream=stream, search=bool(what.searched))
        turns.append(answer)
        calls = turns[-1].calls
        kept = tuple(
            ToolResult(call.id, call.name, text, is_error=not text.strip())
            for call, text in zip(calls, results, strict=False)
            if text is not None
        )
        if kept:
            turns.append(ChatMessage("tool", kept))
        if more is not None or not calls:
            turns.append(more or user("go on"))
    first, last = cuts
    left = turns[first : len(turns) - last] or [user("go")]
    said.append(Said("fine"))
    if not any(turn.role == "user" for turn in left):
        left = [*left, user("go on")]
    answer = await ask(target, servers[target.name], left, stream=bool(first % 2), search=bool(last % 2))

    assert Text("fine") in [Text(part.text) for part in answer.parts if isinstance(part, Text)]


@pytest.mark.parametrize("target", DOUBLES, ids=lambda double: double.name)
def test_every_vendor_takes_a_history_that_others_made(target: Double):
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(steps=STEPS, cuts=CUTS)
    def goes_on(steps: list, cuts: tuple[int, int]) -> None:
        asyncio.run(play(target, steps, cuts))

    goes_on()
