"""octo/agent/memory/codec.py, octo/agent/memory/repair.py: any conversation, through the store, to every vendor.

A history of any kind is kept as a thread by one run, read by the next, and sent on each of the five wires to a double
that refuses what its vendor refuses. The full count runs with OCTO_SOAK=1.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from histories import TOOLS, histories
from octo.agent.memory.codec import Writer
from octo.agent.memory.compaction import Bounds, Context
from octo.agent.memory.repair import repaired, settled
from octo.agent.memory.session import Recalled, Transcript
from octo.agent.memory.threads import as_payload, payload
from octo.llm.chat import ChatMessage, ChatRequest, Reasoning, Text, ToolCall, ToolResult, user
from octo.services.standalone import StoredEntries
from octo.store.store import Store
from vendor.doubles import DOUBLES, Double, Offline, Said

EXAMPLES = 5000 if os.environ.get("OCTO_SOAK") == "1" else 40
WIRES = {
    "Anthropic Messages": "anthropic",
    "Bedrock Converse": "bedrock",
    "Chat Completions": "chat_completions",
    "Gemini": "gemini",
    "Responses": "responses",
}


class Nobody:
    """Is told, and does not care."""

    async def compaction_started(self, strategy, before, most):
        pass

    async def compaction_ended(self, strategy, before, after, most, dropped):
        pass

    async def thread_named(self, title, thread):
        pass


async def no_summary(turns):
    return "They talked."


def context(tokens: int, strategy: str) -> Context:
    return Context(Bounds(tokens, strategy), summarize=no_summary, warn=lambda text: None, watcher=Nobody())


async def through_the_store(turns, tokens, strategy):
    """The turns as the next run gets them."""
    with Store() as store:
        entries = StoredEntries(store, lambda: 0, str)
        room = context(tokens, strategy)
        kept = await room.shortened(turns, only_prune=False)
        await entries.put("user", "agent-memory/t", as_payload(kept, room, Writer(files=True)))
        entry = await entries.get("user", "agent-memory/t")
    found, _ = payload(entry.value)
    return repaired(found, lambda text: None)


def without_forgeries(turns, wire):
    """The turns without opaque data that pretends to be of that wire: a vendor refuses what it has not signed."""

    def kept(part):
        forged = isinstance(getattr(part, "replay", None), dict) and part.replay.get("wire") == wire
        return replace(part, replay=None) if forged else part

    return [ChatMessage(turn.role, tuple(map(kept, turn.parts))) for turn in turns]


async def ask(double: Double, turns) -> ChatMessage:
    """The next turn of a model. Fails when its vendor refuses the request."""
    server = double.serve(lambda _: double.say(Said("ok")))
    request = ChatRequest(tuple(turns), system="be brief", tools=TOOLS, cache=True, cache_key="k")
    model = double.asked("http://double", Offline(server), **double.settings)
    return (await model.complete(request, session={})).message


@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns=histories([]), tokens=st.integers(1, 60), strategy=st.sampled_from(["prune", "summarize"]))
async def test_any_history_that_was_stored_is_taken_by_every_vendor(double, turns, tokens, strategy):
    turns = without_forgeries(turns, WIRES[double.name])
    whole, _ = settled(turns)
    recalled = await through_the_store(whole, tokens, strategy)
    broken = await through_the_store(turns, 10**9, "prune")

    for history in (recalled, broken):
        assert (await ask(double, [*history, user("go on")])).text == "ok"


def four_turns() -> list[ChatMessage]:
    """Four exchanges, each with a call and its result."""
    turns = []
    for n in range(4):
        turns += [
            user(f"question {n}"),
            ChatMessage("assistant", (Reasoning("hm"), ToolCall(f"c{n}", "t", '{"n": 1}'))),
            ChatMessage("tool", (ToolResult(f"c{n}", "t", f"result {n}"),)),
            ChatMessage("assistant", (Text(f"answer {n}"),)),
        ]
    return turns


@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
@pytest.mark.parametrize("tokens", range(1, 45, 4))
async def test_no_window_ever_parts_a_result_from_its_call(double, tokens):
    recalled = await through_the_store(four_turns(), tokens, "prune")

    assert recalled == four_turns()[-len(recalled) :]
    assert len(recalled) % 4 == 0
    assert recalled[0].role == "user"
    assert (await ask(double, [*recalled, user("go on")])).text == "ok"


@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
@pytest.mark.parametrize("strategy", ["prune", "summarize"])
async def test_thoughts_of_the_open_turn_stay_as_they_are_at_every_budget(double, strategy):
    """Three tool rounds with what the vendor itself says, made shorter before each further call."""
    said: list[Said] = []
    server = double.serve(lambda _: double.say(said[-1]))
    model = double.asked("http://double", Offline(server), **double.settings)
    for tokens in range(20, 160, 7):
        transcript = Transcript(Recalled(four_turns()), user("go"))
        room = context(tokens, strategy)
        for n in range(4):
            said.append(Said("I look.", (("t", {"n": n}),), thinking=f"thought {n} ") if n < 3 else Said("done"))
            await room.make_room(transcript)
            request = ChatRequest(transcript.sent(), tools=TOOLS)
            answer = await model.complete(request, session={})
            room.measured(request.messages, answer.usage)
            transcript.append(answer.message)
            if answer.calls:
                results = (ToolResult(one.id, one.name, f"result {n}") for one in answer.calls)
                transcript.append(ChatMessage("tool", tuple(results)))
            kept = [turn for turn in transcript.turns if turn.role == "assistant"]
            assert all(any(turn is new for new in transcript.new) or turn in four_turns() for turn in kept)
        assert transcript.turns[-1].text == "done"
