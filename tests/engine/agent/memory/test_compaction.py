"""octo/agent/memory/compaction.py, octo/agent/memory/session.py: conversations made shorter, by whole exchanges."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.agent.memory.compaction import Bounds, Context
from octo.agent.memory.repair import settled
from octo.agent.memory.session import Recalled, Transcript
from octo.llm.chat import ChatMessage, Reasoning, Text, ToolCall, ToolResult, Usage, user

TEN = "abcd" * 10
"""A text of ten tokens."""


def said(text: str) -> ChatMessage:
    return ChatMessage("assistant", (Text(text),))


def asked(id: str, thinking: str = "") -> ChatMessage:
    parts = (Reasoning(thinking, {"signature": thinking}),) if thinking else ()
    return ChatMessage("assistant", (*parts, ToolCall(id, "t", TEN)))


def given_(id: str) -> ChatMessage:
    return ChatMessage("tool", (ToolResult(id, "t", TEN),))


@dataclass
class Watching:
    told: list = field(default_factory=list)

    async def compaction_started(self, *what):
        self.told.append(("started", *what))

    async def compaction_ended(self, *what):
        self.told.append(("ended", *what))

    async def thread_named(self, *what):
        raise AssertionError


@dataclass
class Summaries:
    """Gives one summary, and keeps what it was of."""

    text: str = "in short"
    of: list = field(default_factory=list)

    async def __call__(self, turns):
        self.of.append(list(turns))
        return self.text


class Room:
    """A context with so many tokens, and what it told."""

    def __init__(self, tokens, strategy="prune", summary="in short"):
        self.warnings = []
        self.watching = Watching()
        self.summaries = Summaries(summary)
        self.context = Context(
            Bounds(tokens, strategy), summarize=self.summaries, warn=self.warnings.append, watcher=self.watching
        )

    async def after(self, transcript):
        """The turns after room was made, when a provider had counted what the estimate says."""
        self.context.measured(transcript.sent(), Usage(prompt_tokens=self.context.meter.predict(estimate(transcript))))
        await self.context.make_room(transcript)
        return transcript.turns


def estimate(transcript):
    from octo.agent.memory import meter

    return meter.estimate(transcript.sent())


OLD = [user(f"one {TEN}"), said(TEN), user(f"two {TEN}"), said(TEN), user(f"three {TEN}"), said(TEN)]


# ---------------------------------------------------------------- before it is stored


async def test_what_fits_is_stored_as_it_is():
    room = Room(1000)

    assert await room.context.shortened(OLD, only_prune=False) == OLD


@pytest.mark.parametrize(("tokens", "kept"), [(63, 6), (62, 4), (42, 4), (41, 2), (21, 2)])
async def test_pruning_drops_whole_exchanges_from_the_oldest(tokens, kept):
    room = Room(tokens)

    assert await room.context.shortened(OLD, only_prune=False) == OLD[-kept:]
    assert room.warnings == []


async def test_the_last_exchange_stays_although_it_is_over_the_budget():
    room = Room(1)

    assert await room.context.shortened(OLD, only_prune=False) == OLD[-2:]
    assert room.warnings == ["the last exchange alone is over `contextMaxTokens`; it is kept all the same"]


async def test_a_summary_takes_the_place_of_all_but_what_fits_half_of_the_budget():
    room = Room(60, "summarize")
    turns = await room.context.shortened(OLD, only_prune=False)

    assert turns == [user("Summary of the earlier conversation:\nin short"), *OLD[4:]]
    assert room.summaries.of == [OLD[:4]]


@pytest.mark.parametrize("summary", ["", " \n"])
async def test_without_a_summary_the_oldest_are_dropped(summary):
    room = Room(60, "summarize", summary)

    assert await room.context.shortened(OLD, only_prune=False) == OLD[2:]


async def test_a_halt_never_asks_for_a_summary():
    room = Room(60, "summarize")

    assert await room.context.shortened(OLD, only_prune=True) == OLD[2:]
    assert room.summaries.of == []


# ---------------------------------------------------------------- between model calls


def working(*rounds: str, old=()) -> Transcript:
    """A run in which a tool was called so many times."""
    transcript = Transcript(Recalled(old), user(f"go {TEN}"))
    for id in rounds:
        transcript.append(asked(id, f"thought {id}"))
        transcript.append(given_(id))
    return transcript


async def test_nothing_is_done_before_a_provider_has_counted():
    room = Room(1)
    transcript = working("a", old=OLD)
    await room.context.make_room(transcript)

    assert len(transcript.turns) == 9
    assert room.watching.told == []


async def test_older_exchanges_go_before_tool_turns_of_this_run():
    room = Room(115)
    transcript = working("a", "b", old=OLD)
    turns = transcript.turns
    assert await room.after(transcript) == [turns[0], *turns[4:]]
    assert room.watching.told == [("started", "prune", 131, 115), ("ended", "prune", 131, 100, 115, 3)]


async def test_the_first_turn_the_question_and_the_latest_results_stay():
    room = Room(65)
    transcript = working("a", "b", "c", old=OLD)
    turns = transcript.turns

    assert await room.after(transcript) == [turns[0], turns[6], *turns[-2:]]
    assert transcript.start == 1
    assert transcript.new == turns[6:]


async def test_where_nothing_can_go_nothing_changes_and_it_is_told():
    room = Room(10)
    transcript = working("a")
    turns = list(transcript.turns)

    assert await room.after(transcript) == turns
    assert room.warnings == ["the conversation is over `contextMaxTokens`, and nothing of it can be left out"]
    assert room.watching.told == [("started", "prune", 39, 10), ("ended", "prune", 39, 39, 10, 0)]


async def test_a_summary_of_a_run_that_goes_on_stands_behind_the_first_turn():
    room = Room(80, "summarize")
    transcript = working("a", "b", "c")
    turns = list(transcript.turns)
    transcript.append(said("hm"))
    transcript.append(user("?"))
    summary = user("Summary of the earlier conversation:\nin short")

    assert await room.after(transcript) == [turns[0], summary, *turns[5:], said("hm"), user("?")]
    assert room.summaries.of == [turns[1:5]]


async def test_a_summary_is_summed_up_again():
    room = Room(60, "summarize")
    transcript = working("a", "b")
    await room.after(transcript)
    for id in "cd":
        transcript.append(asked(id))
        transcript.append(given_(id))
    await room.after(transcript)
    summary = user("Summary of the earlier conversation:\nin short")

    assert transcript.turns == [transcript.new[0], summary, asked("d"), given_("d")]
    assert room.summaries.of[1][0] == summary


async def test_what_is_told_about_a_person_takes_room():
    preamble = user(TEN)
    transcript = Transcript(Recalled(OLD, preamble=preamble), user("go"))
    room = Room(70)
    turns = await room.after(transcript)

    assert transcript.sent() == (preamble, *turns)
    assert turns == [OLD[0], *OLD[2:], user("go")]


# ---------------------------------------------------------------- what always holds


def calls_have_results(turns):
    return not settled(turns)[1]


@st.composite
def transcripts(draw):
    sizes = st.sampled_from(["", TEN, TEN * 3])
    exchanges = draw(st.lists(st.tuples(sizes, st.integers(0, 2), sizes), max_size=4))
    old = []
    for nth, (question, rounds, answer) in enumerate(exchanges):
        old.append(user(f"q{nth}{question}"))
        for n in range(rounds):
            old += [asked(f"{nth}-{n}", "x"), given_(f"{nth}-{n}")]
        old.append(said(f"a{nth}{answer}"))
    return working(*map(str, range(draw(st.integers(0, 3)))), old=old)


@settings(max_examples=150, deadline=None)
@given(transcripts(), st.integers(1, 200), st.sampled_from(["prune", "summarize"]), st.sampled_from(["", "s"]))
async def test_no_call_ever_loses_its_result_and_no_turn_is_cut(transcript, tokens, strategy, summary):
    before = list(transcript.turns)
    latest = before[-2:] if before[-1].role == "tool" else before[-1:]
    room = Room(tokens, strategy, summary)
    after = list(await room.after(transcript))
    stored = await room.context.shortened(before, only_prune=False)

    for turns in (after, stored):
        assert calls_have_results(turns)
        assert turns[0].role == "user"
        assert all(turn in before or turn.text.startswith("Summary of") for turn in turns)
    assert after[0] == before[0]
    assert after[-len(latest) :] == latest
    assert transcript.new[0] in after
    assert transcript.turns[transcript.start] is transcript.new[0]
