"""octo_cli/streaming.py: what agents say while they say it."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octo.llm.chat import Delta, Retry, TextDelta, ThinkingDelta
from octo.observe import AgentStarted, Event, ModelDelta, ToolCalled, TurnEnded, TurnStarted
from octo_cli.session import Session
from octo_cli.streaming import Stream


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def piece(address: str, said: str | Delta) -> ModelDelta:
    return ModelDelta(address, "e", 1, TextDelta(said) if isinstance(said, str) else said)


def turn(address: str, *said: str | Delta) -> list[Event]:
    pieces = (piece(address, one) for one in said)
    return [TurnStarted(address, "e", 1), *pieces, TurnEnded(address, "e", 1, seconds=0.1)]


def shown(*events: Event, stream: io.StringIO | None = None, environ: dict[str, str] | None = None) -> str:
    err = stream or io.StringIO()
    session = Session({"NO_COLOR": "1"} if environ is None else environ, out=io.StringIO(), err=err)
    session.mask = lambda text: text.replace("secret", "***")
    watching = Stream(session)
    for event in events:
        watching.notify(event)
    watching.close()
    return err.getvalue()


CALL = ToolCalled("f.a", "e", 1, "look", "c", '{"q":\n "\x1b[31m"}')


def test_each_answer_ends_with_its_line() -> None:
    assert shown(*turn("f.a", "Let ", "me look."), *turn("f.a", "Do", "ne.\n"), *turn("f.a", ThinkingDelta("hm"))) == (
        "Let me look.\nDone.\n"
    )


def test_no_control_character_and_no_secret_is_shown() -> None:
    assert shown(*turn("f.a", "a\x1b[31mb\x07", " secret\tc")) == "a\\u001b[31mb\\u0007 ***\tc\n"


def test_another_speaker_is_introduced() -> None:
    assert shown(*turn("f.a", "one"), *turn("f.a[t].b", "two"), *turn("f.a", "three")) == (
        "one\n── f.a[t].b\ntwo\n── f.a\nthree\n"
    )


def test_who_speaks_first_is_introduced_unless_it_is_the_one_who_began() -> None:
    began = [AgentStarted("f.a", "e", "m", 8), TurnStarted("f.a", "e", 1)]

    assert shown(*began, AgentStarted("f.a[t].b", "e", "m", 8), *turn("f.a[t].b", "two"), *turn("f.a", "three")) == (
        "── f.a[t].b\ntwo\n── f.a\nthree\n"
    )
    assert shown(*began, *turn("f.a", "one")) == "one\n"


def test_an_answer_that_begins_anew_is_marked() -> None:
    assert shown(*turn("f.a", "The ca", Retry(1, "the \x1b line broke"), "The cat")) == (
        "The ca\n[the answer broke off and begins anew: the \\u001b line broke]\nThe cat\n"
    )


def test_what_broke_off_before_anything_was_said_is_no_news() -> None:
    assert shown(*turn("f.a", Retry(1, "busy"), "Yes")) == "Yes\n"


def test_a_terminal_shows_the_calls_of_tools_too() -> None:
    assert shown(*turn("f.a", "I look"), CALL, stream=Terminal()) == 'I look\n→ look({"q": "\\u001b[31m"})\n'
    assert shown(*turn("f.a", "I look"), CALL) == "I look\n"


def test_asides_are_faint_where_colour_is_welcome() -> None:
    assert shown(CALL, stream=Terminal(), environ={"TERM": "xterm"}) == ('\x1b[2m→ look({"q": "\\u001b[31m"})\x1b[0m\n')


def test_what_others_write_begins_on_a_line_of_its_own() -> None:
    err = Terminal()
    session = Session({"NO_COLOR": "1"}, out=err, err=err)
    watching = Stream(session)
    watching.notify(TurnStarted("f.a", "e", 1))
    watching.notify(piece("f.a", "half "))
    session.tell("info: a line")
    session.out.write("a result\n")
    watching.notify(piece("f.a", "done"))
    watching.close()

    assert err.getvalue() == "half \ninfo: a line\na result\ndone\n"
    assert (session.out, session.err) == (err, err)


async def test_those_who_speak_at_once_are_heard_one_after_another() -> None:
    """The contexts of tasks tell answers apart, also those of one agent that works twice."""
    err = io.StringIO()
    session = Session({"NO_COLOR": "1"}, out=io.StringIO(), err=err)
    watching = Stream(session)

    async def speak(address: str, *words: str, end: bool = True) -> None:
        watching.notify(TurnStarted(address, "e", 1))
        for word in words:
            watching.notify(piece(address, word))
            await asyncio.sleep(0)
        if end:
            watching.notify(TurnEnded(address, "e", 1, seconds=0.1))

    await asyncio.gather(
        speak("f.a", "a1 ", "a2 ", "a3 ", "a4"),
        speak("f.b", "b1 ", "b2"),
        speak("f.b", "c1 ", "c2 ", "c3 ", "c4 ", "c5 ", "c6"),
        speak("f.d", "d1", end=False),
    )

    assert err.getvalue() == "a1 a2 a3 a4\n── f.b\nb1 b2\n── f.b\nc1 c2 c3 c4 c5 c6\n── f.d\nd1"
    watching.close()
    assert err.getvalue().endswith("── f.d\nd1\n")


# ---------------------------------------------------------------- the option

CONFIG = """
connectors:
  - name: model
    type: llm-scripted
    settings:
      turns:
        - { text: Let me look., calls: [{ name: look }] }
        - { text: All is well. }
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: model
        prompt: Look.
        tools: [{ name: look, description: x, process: [{ type: log, settings: { message: '"looking"' } }] }]
"""
SLOW = """
  - name: slow
    process:
      - type: ai-agent
        name: ag
        connector: model
        prompt: Look.
        tools: [{ name: look, description: x, process: [] }]
        stream: true
        emit: [text]
        events: { process: [{ type: test-wait, for: 30s }] }
"""


@pytest.fixture
def invoke(octo: Any, tmp_path: Path) -> Callable[..., Any]:
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")

    def call(*args: str, **more: Any) -> Any:
        return octo("invoke", "--config", "app.yaml", "--flow", "f", *args, **more)

    return call


def test_the_result_stays_what_it_is(invoke: Any) -> None:
    outcome = invoke("--stream")

    assert outcome.stderr.startswith('Let me look.\nlevel=INFO msg="looking"')
    assert outcome.stderr.endswith("\nAll is well.\n")
    assert json.loads(outcome.stdout)["body"] == "All is well."
    assert outcome.status == 0


def test_a_terminal_gets_the_sum_at_the_end(invoke: Any) -> None:
    outcome = invoke("--stream", terminal="err")

    lines = outcome.stderr.splitlines()
    assert [lines[0], lines[1], lines[2][:14], lines[3]] == [
        "Let me look.",
        "→ look({})",
        "info: looking ",
        "All is well.",
    ]
    assert lines[4].startswith("2 turns, 1 tool call, ")


def test_without_it_nothing_is_streamed(invoke: Any) -> None:
    assert "Let me look." not in invoke("--verbose").stderr


def test_many_calls_have_no_stream(invoke: Any) -> None:
    assert invoke("--stream", "--each", "-").stderr == (
        'level=ERROR msg="cli stopped with error" error="`--stream` is about one call, `--each` makes many"\n'
    )


def test_the_pieces_are_among_the_records(invoke: Any) -> None:
    outcome = invoke("--stream", "--events", "-")

    records = [json.loads(line) for line in outcome.stdout.splitlines()[:-1]]
    pieces = [record["attrs"]["text"] for record in records if record["kind"] == "agent.text"]
    assert pieces == ["Let me l", "ook.", "All is w", "ell."]


def test_a_log_holds_whole_answers_only(invoke: Any, tmp_path: Path) -> None:
    invoke("--stream", "--log", "run.jsonl")

    kinds = [json.loads(line)["kind"] for line in (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()]
    assert "llm.turn" in kinds
    assert "agent.text" not in kinds


def test_an_interrupt_in_the_middle_of_an_answer_ends_in_good_order(plugin: Path, invoke: Any, tmp_path: Path) -> None:
    with (tmp_path / "app.yaml").open("a", encoding="utf-8") as file:
        file.write(SLOW)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(plugin)}
    command = [sys.executable, "-m", "octo_cli", "invoke", "--config", "app.yaml", "--flow", "slow", "--stream"]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environ, **pipes) as process:
        assert process.stdout.readline() == b"waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)

    assert (out, process.returncode) == (b"left\n", 130)
    assert err.startswith(b"Let me l\ntime=")
    assert err.endswith(b' level=ERROR msg="cli stopped with error" error="interrupted"\n')
