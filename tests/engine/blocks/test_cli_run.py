"""octo/blocks/cli_run.py, octo/process.py: programs of the local machine, what they print, and how they end."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import stat
import subprocess
import sys
import time

import pytest

from octo.errors import BlockError, ConfigError
from octo.observe import LogLine
from octo.testing.harness import config, runtime

SH = os.path.normpath(shutil.which("sh") or "/bin/sh")
ENVIRON = {"PATH": os.environ["PATH"]}


SHELL = """
  flows:
    - name: main
      process:
        - type: cli-run
          name: script
          program: '"sh"'
          args: '["-c", body]'
          %s
      error: [ { type: set-payload, value: '[vars.error.message, body]' } ]
"""


async def run(text, body=None):
    async with runtime(text, environ=ENVIRON) as octo:
        return await octo.invoke("main", body)


async def shell(script, settings=""):
    """Run a shell script; a failure raises."""
    return await run((SHELL % settings).partition("      error:")[0], script)


async def test_the_body_becomes_what_the_program_printed():
    message = await shell("echo one; echo two >&2; printf three")

    assert message.body == {"exitCode": 0.0, "stdout": "one\nthree\n", "stderr": "two\n", "lines": 3.0}


async def test_arguments_reach_the_program_as_they_are():
    text = """
      flows:
        - name: main
          process: [ { type: cli-run, program: '"printf"', args: '["<%s>"] + body' } ]
    """
    words = ["a b", ";ls", "|", "$(id)", "*", "'\"", "\\", "é日😀", "", "-n", "> /tmp/x", "`id`", "&&", "\n"]

    message = await run(text, words)

    assert message.body["stdout"] == "".join(f"<{word}>" for word in words) + "\n"


async def test_the_program_gets_the_listed_variables_and_no_other():
    text = """
      env: [ { name: CITY, default: Oslo } ]
      flows:
        - name: main
          process: [ { type: cli-run, program: '"/usr/bin/env"', env: [LANG_X, CITY, UNSET] } ]
    """
    async with runtime(text, environ={"LANG_X": "é", "PATH": "/bin", "SECRET": "1"}) as octo:
        message = await octo.invoke("main")

    assert sorted(message.body["stdout"].splitlines()) == ["CITY=Oslo", "LANG_X=é"]


async def test_standard_input_is_written_and_closed():
    text = "flows: [ { name: main, process: [ { type: cli-run, program: '\"cat\"', stdin: body } ] } ]"

    assert (await run(text, {"n": 1.0})).body["stdout"] == '{"n":1}\n'


async def test_without_standard_input_the_program_sees_its_end():
    text = "flows: [ { name: main, process: [ { type: cli-run, program: '\"cat\"', timeout: 5s } ] } ]"

    assert (await run(text)).body == {"exitCode": 0.0, "stdout": "", "stderr": "", "lines": 0.0}


async def test_a_program_may_end_before_it_has_read_its_input():
    text = "flows: [ { name: main, process: [ { type: cli-run, program: '\"true\"', stdin: body } ] } ]"

    assert (await run(text, "x" * 1_000_000)).body["exitCode"] == 0.0


async def test_the_program_runs_in_the_working_directory(tmp_path):
    (tmp_path / "inner").mkdir()

    message = await shell("pwd", f"workDir: {tmp_path}/inner")

    assert message.body["stdout"] == f"{tmp_path / 'inner'}\n"


# ---------------------------------------------------------------- how it ends


async def test_an_exit_code_fails_the_block_and_an_error_chain_sees_the_body():
    message = await run(SHELL % "", "echo half; echo broken >&2; exit 3")

    assert message.body == [
        f'block "script": cli-run script: "{SH}" exited 3',
        {"exitCode": 3.0, "stdout": "half\n", "stderr": "broken\n", "lines": 2.0},
    ]


async def test_the_hint_of_a_failure_is_what_the_program_said_last():
    with pytest.raises(BlockError) as caught:
        await shell("echo first >&2; echo broken >&2; exit 3")

    assert caught.value.hint == "the last it wrote on standard error: broken"


async def test_an_exit_code_can_be_gone_on_with():
    assert (await shell("exit 3", "onExit: continue")).body["exitCode"] == 3.0


async def test_a_program_that_kills_itself_has_the_code_minus_one():
    assert (await shell("kill -9 $$", "onExit: continue")).body["exitCode"] == -1.0


async def test_a_program_that_ignores_signals_is_killed_at_its_time_limit_with_its_children():
    script = 'trap "" TERM INT HUP; echo begun; sleep 60 & sleep 60; sleep 60'
    started = time.monotonic()

    with pytest.raises(BlockError) as caught:
        await shell(script, "timeout: 300ms")

    assert str(caught.value) == f'block "script": cli-run script: "{SH}" exited -1'
    assert caught.value.hint == "it was killed after 300ms; raise `timeout` if it needs more"
    assert time.monotonic() - started < 4


async def test_what_was_printed_before_the_time_limit_is_kept():
    message = await shell("echo begun; sleep 60", "timeout: 300ms\n          onExit: continue")

    assert message.body == {"exitCode": -1.0, "stdout": "begun\n", "stderr": "", "lines": 1.0}


async def test_a_cancelled_flow_leaves_no_process_behind(tmp_path):
    mark = tmp_path / "pids"
    script = f'trap "" TERM; sleep 60 & echo $$ $! > {mark}.new; mv {mark}.new {mark}; wait; sleep 60'

    async with runtime(SHELL % "", environ=ENVIRON) as octo:
        work = asyncio.create_task(octo.invoke("main", script))
        await until(mark.exists)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    for pid in map(int, mark.read_text(encoding="utf-8").split()):
        await until(lambda pid=pid: not is_running(pid))


async def until(true):
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110  (another process decides)
            await asyncio.sleep(0.02)


def is_running(pid):
    """Whether there is such a process; one that has ended and that nobody has asked about does not count."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, encoding="utf-8", check=False)
    return shown.stdout.strip() not in ("", "Z")


async def test_a_background_process_that_holds_the_output_is_waited_for_but_not_long():
    started = time.monotonic()

    message = await shell("echo done; sleep 20 & exit 0")

    assert message.body["stdout"] == "done\n"
    assert 4 < time.monotonic() - started < 9


# ---------------------------------------------------------------- output


@pytest.mark.parametrize(
    ("script", "cap", "out", "err", "lines"),
    [
        ("printf '12345\\n12345\\n12345\\n'", 12, "12345\n12345\n", "", 3.0),
        ("printf '12345\\n12345\\n'", 11, "12345\n", "", 2.0),
        ("printf '12345\\n1\\n'", 5, "", "", 2.0),
        ("printf 'a\\n'", 0, "", "", 1.0),
        ("printf 'a\\r\\nb\\r\\n'", 99, "a\nb\n", "", 2.0),
        ("printf '\\n\\n'", 99, "\n\n", "", 2.0),
        ("printf '\\360\\237\\230'", 99, "\ufffd\n", "", 1.0),
    ],
    ids=["just fits", "one too many", "no gap is filled", "nothing", "crlf", "empty lines", "half a character"],
)
async def test_whole_lines_are_kept_up_to_the_cap(script, cap, out, err, lines):
    text = """
      flows:
        - name: main
          process: [ { type: cli-run, program: '"sh"', args: '["-c", body]', maxOutputBytes: %d } ]
    """
    message = await run(text % cap, script)

    assert message.body == {"exitCode": 0.0, "stdout": out, "stderr": err, "lines": lines}


async def test_a_hundred_megabytes_pass_in_flat_memory():
    script = (
        'i=0; while [ $i -lt 10 ]; do head -c 10000000 /dev/zero | tr "\\\\0" a | fold -w 99; echo; i=$((i+1)); done'
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    message = await shell(script, "timeout: 60s")

    assert message.body["lines"] >= 1_000_000
    assert 1_000_000 < len(message.body["stdout"]) <= 1024 * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 40_000_000


async def test_an_endless_line_ends_the_capture_of_its_stream_only():
    script = 'echo first; head -c 3000000 /dev/zero | tr "\\\\0" a; echo; echo later; echo other >&2'

    message = await shell(script)

    assert message.body == {
        "exitCode": 0.0,
        "stdout": "first\n[a line is longer than 1 MiB, so the rest of stdout is left out]\n",
        "stderr": "other\n",
        "lines": 4.0,
    }


# ---------------------------------------------------------------- which program


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("", "cli-run script: the program is empty text"),
        ("no-such-program-here", 'cli-run script: program "no-such-program-here" is not found on `PATH`'),
        ("/no/such", 'cli-run script: program "/no/such" is not found'),
        ("bin/sh", 'cli-run script: program "bin/sh" is a relative path'),
        ("/etc", 'cli-run script: program "/etc" is a directory'),
        ("/etc/passwd", 'cli-run script: program "/etc/passwd" may not be executed'),
    ],
    ids=["empty", "unknown", "unknown path", "relative", "a directory", "no program"],
)
async def test_a_program_that_is_not_there_fails_the_block(program, message):
    text = "flows: [ { name: main, process: [ { type: cli-run, name: script, program: body } ] } ]"

    with pytest.raises(BlockError) as caught:
        await run(text, program)

    assert str(caught.value) == f'block "script": {message}'


async def test_a_program_outside_the_list_is_not_started(tmp_path):
    block = "type: cli-run, program: 'body[0]', args: 'body[1]', allow: [echo]"
    text = f"flows: [ {{ name: main, process: [ {{ {block} }} ] }} ]"

    assert (await run(text, ["echo", ["hi"]])).body["stdout"] == "hi\n"
    with pytest.raises(BlockError, match=r'"/\S*touch" is not allowed'):
        await run(text, ["touch", [str(tmp_path / "made")]])
    assert not (tmp_path / "made").exists()


async def test_links_are_not_followed(tmp_path):
    (tmp_path / "link").symlink_to(SH)
    text = (
        "flows: [ { name: main, process: [ { type: cli-run, program: body, allow: [%s], allowInterpreters: true } ] } ]"
    )

    with pytest.raises(BlockError, match='link" is not allowed'):
        await run(text % SH, str(tmp_path / "link"))
    assert (await run(text % SH, f"/bin/..{SH}")).body["exitCode"] == 0.0


async def test_what_is_no_program_cannot_be_started(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(b"\x00\x01")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    text = "flows: [ { name: main, process: [ { type: cli-run, name: script, program: body } ] } ]"

    with pytest.raises(BlockError) as caught:
        await run(text, str(file))

    assert str(caught.value) == f'block "script": cli-run script: cannot start "{file}": exec format error'


async def test_a_missing_working_directory_is_named():
    with pytest.raises(BlockError, match=r'cannot start "\S+sh": there is no directory `/no/such`'):
        await shell("true", "workDir: /no/such")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("'\"-l\"'", "cli-run script: args must evaluate to an array, got text"),
        ("'[\"-l\", 1]'", "cli-run script: args must be a list of text, entry 1 is a number"),
        ("'[\"a\\u0000b\"]'", f'cli-run script: cannot start "{SH}": embedded null byte'),
    ],
    ids=["text", "a number", "null byte"],
)
async def test_arguments_that_are_none_fail_the_block(args, message):
    text = (
        f"flows: [ {{ name: main, process: [ {{ type: cli-run, name: script, program: '\"sh\"', args: {args} }} ] }} ]"
    )

    with pytest.raises(BlockError) as caught:
        await run(text)

    assert str(caught.value) == f'block "script": {message}'


def findings(settings):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [ {{ name: main, process: [ {{ type: cli-run, {settings} }} ] }} ]", environ=ENVIRON)
    return [(problem.message, problem.hint) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ("args: '[]'", "cli-run requires `program`", "add `program:`"),
        (
            "program: '\"no-such-program\"'",
            'cli-run: program "no-such-program" is not found on `PATH`',
            "is it installed, and may it be executed?",
        ),
        (
            "program: body, allow: [no-such-program]",
            'cli-run: program "no-such-program" is not found on `PATH`',
            "is it installed, and may it be executed?",
        ),
        (
            "program: body, allow: [sh]",
            "cli-run: `sh` is an interpreter, through which every program can be run",
            "remove it, or set `allowInterpreters: true`",
        ),
        (
            f"program: body, allow: [{sys.executable}]",
            f"cli-run: `{sys.executable}` is an interpreter, through which every program can be run",
            "remove it, or set `allowInterpreters: true`",
        ),
        ("program: '\"ls\"', allow: [echo]", None, "`allow` lists the programs that may be run"),
        ("program: body, allow: []", "`allow` needs at least one entry", None),
        (
            "program: '\"ls\"', emit: [stdout]",
            "cli-run: `emit` requires `events`",
            "add `events: {process: [...]}`",
        ),
        (
            "program: '\"ls\"', events: {}, emit: [stdut]",
            "expected `stdout` or `stderr` or `exit`, found `stdut`",
            "did you mean `stdout`?",
        ),
        ("program: '\"ls\"', timeout: '0'", "cli-run: `timeout` must be positive, found `0`", None),
        ("program: '\"ls\"', maxOutputBytes: -1", "cli-run: `maxOutputBytes` is negative: -1", None),
    ],
    ids=[
        "no program",
        "unknown program",
        "unknown entry",
        "interpreter",
        "interpreter with a version",
        "not allowed",
        "nothing allowed",
        "emit without events",
        "unknown event",
        "no time",
        "negative cap",
    ],
)
def test_a_block_that_cannot_work_is_refused_when_it_is_loaded(settings, message, hint):
    (found,) = findings(settings)

    assert found == (message or f'cli-run: "{os.path.normpath(shutil.which("ls"))}" is not allowed', hint)


def test_a_program_that_messages_choose_without_a_list_is_a_warning():
    loaded = config("flows: [ { name: main, process: [ { type: cli-run, program: body.tool } ] } ]", environ=ENVIRON)

    assert [(warning.message, warning.hint) for warning in loaded.warnings] == [
        (
            "cli-run: the message decides which program is run, and any is allowed",
            "list the programs under `allow`",
        )
    ]


# ---------------------------------------------------------------- the observer

OBSERVED = """
  flows:
    - name: main
      process:
        - { type: set-variable, settings: { name: who, value: '"me"' } }
        - type: cli-run
          name: script
          program: '"sh"'
          args: '["-c", body]'
          onExit: continue
          %s
          events:
            process:
              - { type: log, message: '{"event": body, "who": vars.who}' }
              %s
"""


class Lines:
    kinds = (LogLine,)

    def __init__(self):
        self.seen = []

    def notify(self, event):
        self.seen.append(event.text)


async def observe(script, emit="", more=""):
    lines = Lines()
    async with runtime(OBSERVED % (emit, more), environ=ENVIRON, observers=[lines]) as octo:
        message = await octo.invoke("main", script)
    return message, lines.seen


async def test_the_observer_is_told_of_each_line_and_of_the_end():
    message, seen = await observe("echo a; sleep 0.2; echo b >&2; exit 4")

    assert seen == [
        '{"event":{"index":0,"text":"a","type":"stdout"},"who":"me"}',
        '{"event":{"index":1,"text":"b","type":"stderr"},"who":"me"}',
        '{"event":{"exitCode":4,"lines":2,"type":"exit"},"who":"me"}',
    ]
    assert message.body == {"exitCode": 4.0, "stdout": "a\n", "stderr": "b\n", "lines": 2.0}


@pytest.mark.parametrize(
    ("emit", "told"),
    [("emit: [stderr]", ["stderr"]), ("emit: [exit, stdout]", ["stdout", "exit"]), ("emit: []", [])],
    ids=["stderr", "stdout and exit", "none"],
)
async def test_only_the_wanted_events_are_told(emit, told):
    _, seen = await observe("echo a; echo b >&2", emit)

    assert [word for line in seen for word in ("stdout", "stderr", "exit") if f'"type":"{word}"' in line] == told


async def test_a_silent_program_is_told_to_have_ended():
    _, seen = await observe("true")

    assert seen == ['{"event":{"exitCode":0,"lines":0,"type":"exit"},"who":"me"}']


async def test_what_the_observer_does_changes_nothing_and_its_failure_is_logged():
    fails = "- { type: set-variable, settings: { name: who, value: body.missing } }"

    message, seen = await observe("echo a", "emit: [stdout]", fails)

    assert message.vars == {"who": "me"}
    assert message.body["stdout"] == "a\n"
    assert seen[1] == (
        'cli-run script: events: block "set-variable": set-variable "who" value: evaluate expression: '
        "no such key: missing"
    )


async def test_a_stop_of_the_observer_kills_the_program_and_completes_the_flow():
    stops = "- { type: validate, rules: [ { expr: 'body.text != \"b\"', message: enough } ] }"
    started = time.monotonic()

    message, seen = await observe("trap '' TERM; echo a; sleep 0.1; echo b; sleep 60; echo c", "", stops)

    assert time.monotonic() - started < 5
    assert message.stopped
    assert message.body == {"exitCode": -1.0, "stdout": "a\nb\n", "stderr": "", "lines": 2.0}
    assert len(seen) == 2


async def test_a_slow_observer_holds_the_program_back_and_loses_nothing():
    script = "yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -n 8000"

    message, seen = await observe(script)

    assert message.body["lines"] == 8000.0
    assert len(seen) == 8001
