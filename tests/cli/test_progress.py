"""octo_cli/progress.py: what agents do, live and as records."""

from __future__ import annotations

import io
import re

import pytest

from octo.errors import ProviderError
from octo.llm.chat import Usage
from octo.observe import (
    AgentEnded,
    AgentGaveUp,
    AgentStarted,
    Event,
    LogLine,
    TextsEmbedded,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from octo_cli.progress import FlowLog, Progress, Working
from octo_cli.session import Session

PLACE = ("desk.agent", "e1")
RUN: list[Event] = [
    AgentStarted(*PLACE, connector="m", max_iterations=5),
    TurnStarted(*PLACE, iteration=1),
    TurnEnded(
        *PLACE,
        iteration=1,
        seconds=0.25,
        model="small",
        stop_reason="tool_use",
        tool_calls=1,
        usage=Usage(prompt_tokens=1200, output_tokens=30),
    ),
    ToolCalled(*PLACE, iteration=1, tool="look", call_id="c1", arguments='{"q":\n "\x1b[31mred"}'),
    ToolReturned(*PLACE, iteration=1, tool="look", call_id="c1", text="x" * 100, is_error=True, seconds=1.5),
    TurnStarted(*PLACE, iteration=2),
    TurnEnded(
        *PLACE,
        iteration=2,
        seconds=0.5,
        model="small",
        stop_reason="end_turn",
        usage=Usage(prompt_tokens=1300, output_tokens=20),
    ),
    AgentEnded(*PLACE, turns=2, tool_calls=1, seconds=2.3, usage=None),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, events: list[Event], *, verbose: bool) -> str:
    progress = Progress(Session({"NO_COLOR": "1"}, out=io.StringIO(), err=stream, verbose=verbose))
    for event in events:
        progress.notify(event)
    progress.close()
    return stream.getvalue()


def test_a_pipe_stays_quiet() -> None:
    assert told(io.StringIO(), RUN, verbose=False) == ""


def test_each_turn_is_a_record_when_asked_for() -> None:
    assert re.sub(r"time=\S+ ", "", told(io.StringIO(), RUN, verbose=True)) == (
        'level=INFO msg="model turn" at=desk.agent turn=1 model=small stop=tool_use toolCalls=1 '
        "tokensRead=1200 tokensWritten=30 seconds=0.25\n"
        'level=INFO msg="tool called" at=desk.agent turn=1 tool=look arguments="{\\"q\\": \\"\\u001b[31mred\\"}"\n'
        f'level=INFO msg="tool failed" at=desk.agent turn=1 tool=look result={"x" * 79}… seconds=1.5\n'
        'level=INFO msg="model turn" at=desk.agent turn=2 model=small stop=end_turn toolCalls=0 '
        "tokensRead=1300 tokensWritten=20 seconds=0.5\n"
    )


def test_a_failed_turn_and_the_default_path_are_told() -> None:
    events: list[Event] = [
        TurnEnded(*PLACE, iteration=1, seconds=1.0, error=ProviderError("overloaded")),
        AgentGaveUp(*PLACE, iteration=1, reason="model failed"),
    ]

    assert re.sub(r"time=\S+ ", "", told(io.StringIO(), events, verbose=True)) == (
        'level=INFO msg="model turn failed" at=desk.agent turn=1 toolCalls=0 seconds=1 error="overloaded"\n'
        'level=INFO msg="agent gave up" at=desk.agent reason="model failed"\n'
    )


@pytest.mark.parametrize(
    ("events", "line"),
    [
        (RUN, "2 turns, 1 tool call (1 failed), 2,500 tokens read and 50 tokens written, 0.0 s"),
        (
            [RUN[0], TurnEnded(*PLACE, iteration=1, seconds=1.0, usage=Usage(prompt_tokens=1200, output_tokens=1))],
            "1 turn, 0 tool calls, 1,200 tokens read and 1 token written, 0.0 s",
        ),
        ([RUN[0], TurnEnded(*PLACE, iteration=1, seconds=1.0)], "1 turn, 0 tool calls, tokens unknown, 0.0 s"),
        (
            [
                *RUN[:3],
                TurnEnded(*PLACE, iteration=2, seconds=1.0),
                AgentGaveUp(*PLACE, iteration=2, reason="why"),
            ],
            "2 turns, 0 tool calls, at least 1,200 tokens read and 30 tokens written, 0.0 s, gave up: why",
        ),
    ],
    ids=["a run", "one token", "nobody counts", "one turn is not counted"],
)
def test_one_line_sums_up_on_a_terminal(events: list[Event], line: str) -> None:
    last = on_screen(told(Terminal(), events, verbose=False)).splitlines()[-1]

    assert re.sub(r"\d\.\d s", "0.0 s", last) == line


def on_screen(text: str) -> str:
    """What is shown, without what moves the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)


def test_a_tool_call_that_fails_is_told_on_a_terminal() -> None:
    failed = ToolReturned(
        *PLACE, iteration=1, tool="lo\x1bok", call_id="c1", text='unknown tool\n"lo\x07ok"', is_error=True, seconds=0.0
    )
    events = [RUN[0], failed, RUN[-1]]
    line = 'tool `lo\\u001bok` failed: unknown tool "lo\\u0007ok"\n'

    assert line in on_screen(told(Terminal(), events, verbose=False))
    assert told(io.StringIO(), events, verbose=False) == ""
    assert line not in on_screen(told(Terminal(), events, verbose=True))


def test_the_line_of_an_agent_at_work_ends_with_what_may_be_cut_off() -> None:
    agent = Working("desk.agent", since=10.0, turn=2, tokens=1230)
    began = Working("desk.agent", since=10.0)

    assert began.line(10.04) == "desk.agent  turn 1  0.0 s  thinking"
    assert agent.line(10.5) == "desk.agent  turn 2  0.5 s  1,230 tokens  thinking"
    agent.tools = {"c1": "look({})", "c2": "find({})"}
    assert agent.line(75.0) == "desk.agent  turn 2  1 min 5 s  1,230 tokens  look({}), find({})"


def test_a_run_without_agents_shows_nothing_on_a_terminal() -> None:
    assert told(Terminal(), [], verbose=False) == ""


def test_a_block_that_asks_a_model_once_is_summed_up_on_a_terminal() -> None:
    events: list[Event] = [
        TurnStarted("sort.router", "e1", iteration=1),
        TurnEnded(
            "sort.router", "e1", iteration=1, seconds=0.1, usage=Usage(prompt_tokens=9, output_tokens=1, cost_usd=0.5)
        ),
        TextsEmbedded(
            "sort.vec",
            "e1",
            seconds=0.1,
            connector="m",
            model="e",
            texts=2,
            dimensions=8,
            usage=Usage(prompt_tokens=11),
        ),
    ]

    shown = told(Terminal(), events, verbose=False).splitlines()[-1]

    assert re.sub(r"[\d.]+ s$", "0.0 s", shown).endswith(
        "1 turn, 0 tool calls, 20 tokens read and 1 token written, at least $0.5000, 0.0 s"
    )


def test_an_embedding_is_a_record_when_asked_for() -> None:
    place = ("find.vec", "e1")
    events: list[Event] = [
        TextsEmbedded(
            *place, seconds=0.25, connector="m", model="e-1", texts=2, dimensions=8, usage=Usage(prompt_tokens=11)
        ),
        TextsEmbedded(
            *place, seconds=1, connector="m", model="e-1", texts=1, dimensions=0, error=ProviderError("overloaded")
        ),
    ]

    assert re.sub(r"time=\S+ ", "", told(io.StringIO(), events, verbose=True)) == (
        'level=INFO msg="texts embedded" at=find.vec model=e-1 texts=2 tokensRead=11 seconds=0.25\n'
        'level=INFO msg="embedding failed" at=find.vec model=e-1 texts=1 seconds=1 error="overloaded"\n'
    )


def test_what_a_flow_logs_is_written_to_the_process_log() -> None:
    stream = io.StringIO()
    FlowLog(Session({}, err=stream)).notify(LogLine("", "", "warn", "look", {"n": 1.0}))

    assert re.sub(r"time=\S+ ", "", stream.getvalue()) == 'level=WARN msg="look" n=1\n'
