"""octo/connectors/logger.py, octo/logline.py: logs of their own, as text and as JSON."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from octo.errors import BlockError, ConfigError, ConnectorError
from octo.observe import LogLine
from octo.runtime import Runtime
from octo.testing.harness import config

AT = 1_700_000_000_123_000_000


def loaded(logger="", log="message: body", **options):
    return config(
        f"""
        env: [ {{ name: API_KEY, default: not-set }} ]
        connectors: [ {{ name: audit, type: logger, settings: {{ {logger} }} }} ]
        flows: [ {{ name: main, process: [ {{ type: log, logger: audit, {log} }} ] }} ]
        """,
        **options,
    )


async def lines(logger="", log="message: body", body=None, **options):
    """The lines that a `log` block writes to standard output and standard error."""
    out, err = [], []
    outputs = {"stdout": out.append, "stderr": err.append}
    async with Runtime(loaded(logger, log, **options), outputs=outputs, clock=lambda: AT, new_id=lambda: "e1") as octo:
        message = await octo.invoke("main", body)
    assert message.body == body
    return out, err


@pytest.mark.parametrize(
    ("logger", "log", "line"),
    [
        ("", "message: body.text", 'time=2023-11-14T22:13:20.123Z level=INFO msg="two words" event_id=e1'),
        (
            "format: json",
            "message: body.text, level: warn",
            '{"time":"2023-11-14T22:13:20.123Z","level":"WARN","msg":"two words","event_id":"e1"}',
        ),
        (
            "addSource: true",
            "level: error",
            "time=2023-11-14T22:13:20.123Z level=ERROR "
            'msg="{\\"body\\":{\\"n\\":30,\\"text\\":\\"two words\\"},\\"vars\\":{}}" event_id=e1 source={file}:4:35',
        ),
        (
            "format: json, addSource: true",
            "full: true",
            '{"time":"2023-11-14T22:13:20.123Z","level":"INFO","msg":"message","event_id":"e1","correlation_id":"",'
            '"variables":{},"body":{"n":30,"text":"two words"},"source":"{file}:4:35"}',
        ),
    ],
    ids=["text", "json", "source", "full"],
)
async def test_a_line_goes_to_standard_output_unless_told_otherwise(logger, log, line):
    (out,), err = await lines(logger, log, {"text": "two words", "n": 30.0})

    file = out.partition("source")[2].lstrip('=":').partition(":4")[0]
    assert (out, err) == (line.replace("{file}", file), [])


async def test_a_log_on_standard_error():
    out, (err,) = await lines("output: stderr", body="hi")

    assert (out, err) == ([], 'time=2023-11-14T22:13:20.123Z level=INFO msg="hi" event_id=e1')


@pytest.mark.parametrize(
    ("threshold", "level", "written"),
    [("debug", "debug", 1), ("info", "debug", 0), ("warn", "info", 0), ("warn", "error", 1), ("error", "error", 1)],
)
async def test_lines_below_the_level_are_left_out(threshold, level, written):
    out, _ = await lines(f"level: {threshold}", f"message: body, level: {level}", environ={"LOG_LEVEL": "error"})

    assert len(out) == written


async def test_a_failing_message_fails_the_block_even_when_its_line_would_be_left_out():
    with pytest.raises(BlockError, match="log message: evaluate expression: no such key: x"):
        await lines("level: error", "message: body.x")


@pytest.mark.parametrize("format", ["text", "json"])
async def test_secrets_are_masked_and_control_characters_spelt_out(format):
    body = {"k": "my sk-12345678", "sk-12345678": "\x1b[31m\n"}

    (out,), _ = await lines(
        f"format: {format}", "full: true, message: body.k", body, environ={"API_KEY": "sk-12345678"}
    )

    assert "12345678" not in out
    assert out.count("***") == 3
    assert "\x1b" not in out
    assert "\n" not in out


async def test_a_file_is_appended_to_and_private(tmp_path):
    file = tmp_path / "audit.log"
    for body in ("one", "two"):
        assert await lines(f"output: {file}, format: json", body=body) == ([], [])

    assert [line.partition('"msg":')[2] for line in file.read_text(encoding="utf-8").splitlines()] == [
        '"one","event_id":"e1"}',
        '"two","event_id":"e1"}',
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_file_that_cannot_be_opened_stops_the_start(tmp_path):
    with pytest.raises(ConnectorError) as caught:
        await lines(f"output: {tmp_path}/none/audit.log")

    assert str(caught.value) == (
        f'connector "audit" (logger): cannot open the log file {tmp_path}/none/audit.log: no such file or directory'
    )


async def test_a_stream_that_the_runtime_was_not_given_stops_the_start():
    with pytest.raises(ConnectorError) as caught:
        async with Runtime(loaded()):
            pass

    assert str(caught.value) == 'connector "audit" (logger): this runtime has no stdout'
    assert caught.value.hint == 'hand it over: `Runtime(config, outputs={"stdout": print})`'


async def test_a_line_that_cannot_be_written_fails_the_block():
    def full(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(BlockError) as caught:
        async with Runtime(loaded(), outputs={"stdout": full}) as octo:
            await octo.invoke("main")

    assert str(caught.value) == 'block "log": logger "audit": cannot write stdout: no space left on device'


async def test_a_line_for_a_logger_is_none_of_the_process_log():
    class Seen(list):
        kinds = (LogLine,)
        notify = list.append

    seen = Seen()
    async with Runtime(loaded(), outputs={"stdout": lambda line: None}, observers=[seen]) as octo:
        await octo.invoke("main", "hi")

    assert seen == []


@pytest.mark.parametrize(
    ("logger", "message", "hint"),
    [
        ("format: yaml", "expected `text` or `json`, found `yaml`", None),
        ("level: warning", "expected `debug` or `info` or `warn` or `error`, found `warning`", "did you mean `warn`?"),
        ("output: ''", "`output`: expected a name, found blank text", None),
    ],
)
def test_settings_that_are_none_are_refused(logger, message, hint):
    with pytest.raises(ConfigError) as caught:
        loaded(logger)

    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [(message, hint)]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("audt", 'connector "audt" is not configured', "did you mean `audit`?"),
        ("model", 'connector "model" is a `llm-scripted`, which is no logger connector', None),
    ],
)
def test_a_log_block_names_a_logger(name, message, hint):
    with pytest.raises(ConfigError) as caught:
        config(
            f"""
            connectors:
              - {{ name: audit, type: logger }}
              - {{ name: model, type: llm-scripted, settings: {{ turns: [ {{ text: x }} ] }} }}
            flows: [ {{ name: main, process: [ {{ type: log, logger: {name} }} ] }} ]
            """
        )

    (problem,) = caught.value.problems
    assert problem.message == message
    assert hint is None or problem.hint == hint
