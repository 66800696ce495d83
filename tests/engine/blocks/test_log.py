"""octo/blocks/log.py: lines for the process log."""

import pytest

from octo.errors import BlockError, ConfigError
from octo.observe import LogLine
from octo.testing.harness import config, runtime


class Lines:
    kinds = (LogLine,)

    def __init__(self):
        self.seen = []

    def notify(self, event):
        self.seen.append(event)


@pytest.mark.parametrize(
    ("settings", "level", "text"),
    [
        ("{}", "info", '{"body":{"n":30},"vars":{"a":1}}'),
        ("{ message: '\"n is \" + string(body.n)', level: warn }", "warn", "n is 30"),
        ("{ message: body }", "info", '{"n":30}'),
        ("{ full: true }", "info", "message"),
    ],
    ids=["default", "text", "json", "full"],
)
async def test_a_line_is_written_and_the_message_passes(settings, level, text):
    lines = Lines()
    flow = f"flows: [{{ name: main, process: [ {{ type: log, settings: {settings} }} ] }}]"

    async with runtime(flow, observers=[lines]) as octo:
        message = await octo.invoke("main", {"n": 30.0}, vars={"a": 1.0, "__trace": "hidden"})

    (line,) = lines.seen
    assert (line.level, line.text) == (level, text)
    assert line.fields["event_id"] == message.event_id
    assert message.body == {"n": 30.0}


async def test_full_adds_the_message_as_fields():
    lines = Lines()

    async with runtime("flows: [{ name: main, process: [ { type: log, full: true } ] }]", observers=[lines]) as octo:
        message = await octo.invoke("main", [1.0])

    assert lines.seen[0].fields == {
        "event_id": message.event_id,
        "correlation_id": "",
        "variables": {},
        "body": [1.0],
    }


async def test_a_failing_message_fails_the_block(run_flow):
    with pytest.raises(BlockError, match='block "log": log message: evaluate expression: no such key: n'):
        await run_flow("flows: [{ name: main, process: [ { type: log, message: body.n } ] }]")


def test_a_misspelt_level_is_refused_with_the_near_miss():
    with pytest.raises(ConfigError) as caught:
        config("flows: [{ name: main, process: [ { type: log, level: warning } ] }]")

    (problem,) = caught.value.problems
    assert problem.message == "expected `debug` or `info` or `warn` or `error`, found `warning`"
    assert problem.hint == "did you mean `warn`?"
