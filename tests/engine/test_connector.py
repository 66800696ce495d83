"""octo/connector.py, octo/config/check.py: which connector a source belongs to, and what of it runs."""

import pytest

from octo import Runtime
from octo.errors import BlockError, ConfigError
from octo.testing.harness import config
from serving import Watcher, served, until


def flows(source, connectors="[]"):
    return f"connectors: {connectors}\nflows: [{{name: a, source: {source}}}]"


def problem(text):
    with pytest.raises(ConfigError) as caught:
        config(text)
    (found,) = caught.value.problems
    return found.message, found.hint, (found.location.line, found.location.column)


SCHEDULE = "settings: {schedule: '@daily'}"
ONE = "[{name: clock, type: cron}]"
TWO = "[{name: clock, type: cron}, {name: watch, type: cron}]"


@pytest.mark.parametrize(
    ("source", "connectors", "instance"),
    [
        (f"{{connector: watch, type: cron, {SCHEDULE}}}", TWO, "watch"),
        (f"{{type: cron, {SCHEDULE}}}", ONE, "clock"),
        (f"{{connector: cron, type: cron, {SCHEDULE}}}", ONE, "clock"),
        (f"{{type: cron, {SCHEDULE}}}", "[]", "cron"),
    ],
    ids=["by name", "the only one of its type", "by the name of the type", "none is declared"],
)
def test_the_connector_of_a_source_is_found(source, connectors, instance):
    loaded = config(flows(source, connectors))

    assert loaded.flows[0].source.instance == instance
    assert (loaded.flows[0].source.implied is None) == (connectors != "[]")
    assert loaded.warnings == ()


def test_two_connectors_of_the_type_are_one_too_many():
    assert problem(flows(f"{{type: cron, {SCHEDULE}}}", TWO)) == (
        "there are 2 connectors of type `cron`",
        "add `connector:` `clock` or `watch`",
        (2, 27),
    )


def test_a_source_without_a_connector_type_is_refused_with_the_near_miss():
    assert problem(flows("{type: corn}")) == (
        'source connector "corn" is not configured',
        "did you mean `cron`?",
        (2, 34),
    )
    assert problem(flows("{connector: clok, type: corn}", ONE)) == (
        'source connector "clok" is not configured',
        "did you mean `clock`?",
        (2, 39),
    )


def test_a_connector_that_does_not_give_the_source_is_refused():
    assert problem(flows("{connector: clock, type: queue, settings: {subject: x}}", ONE)) == (
        'connector "clock" (cron) has no source "queue"',
        "known names: `cron`",
        (2, 52),
    )
    assert problem(flows("{type: logger}")) == (
        'connector "logger" (logger) has no source "logger"',
        "connectors of type `logger` are no source",
        (2, 34),
    )


def test_a_default_instance_does_not_take_the_name_of_another_connector():
    assert problem(flows(f"{{type: cron, {SCHEDULE}}}", "[{name: cron, type: queue}]")) == (
        "connector `cron` is of type `queue`",
        "declare a connector of type `cron` under another name",
        (2, 34),
    )


def test_a_connector_name_that_nobody_has_is_a_warning_where_the_type_decides():
    (warning,) = config(flows(f"{{connector: watch, type: cron, {SCHEDULE}}}", ONE)).warnings

    assert (warning.message, warning.hint) == (
        'source connector "watch" is not configured, `clock` is used',
        "write `connector: clock`",
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("cron", ("expected a source, found text", "a source is `{connector, type, settings}`")),
        ("{connector: cron}", ("source requires a type", "for example `type: cron`")),
        ("{tpye: cron}", ('unknown field "tpye"', "did you mean `type`?")),
        ("{type: cron, settings: [1]}", ("expected a mapping under `settings`, found a list", None)),
        (
            "{type: cron, schedule: '@daily'}",
            ('unknown field "schedule" of a source', "`schedule` belongs under `settings:`"),
        ),
        ("{type: cron, setings: {}}", ('unknown field "setings" of a source', "did you mean `settings`?")),
        ("{type: cron}", ("source of type `cron` requires `schedule`", "add `schedule:`")),
        (
            "{type: cron, settings: {shedule: '@daily'}}",
            ('unknown field "shedule" in source `cron`', "did you mean `schedule`?"),
        ),
        (
            "{type: cron, settings: {schedule: '@daily', type: cron}}",
            ('unknown field "type" in source `cron`', "`type` belongs one level up, beside `settings:`"),
        ),
    ],
)
def test_a_faulty_source_is_told_what_it_lacks(source, expected):
    assert problem(flows(source))[:2] == expected


def test_a_flow_needs_a_name_or_a_source():
    loaded = config(f"flows: [{{source: {{type: cron, {SCHEDULE}}}}}]")

    assert [flow.title for flow in loaded.flows] == ["flows[0]"]
    assert problem("flows: [{process: []}]")[:2] == ("a flow without a source requires a name", "add `name:`")


SOURCED = """
  connectors:
    - { name: line, type: queue }
    - { name: log, type: logger, settings: { output: stderr } }
  flows:
    - name: main
      process: [ { type: flow-ref, name: call, settings: { flow: work } } ]
    - name: one-way
      process: [ { type: flow-ref, name: call, settings: { flow: work, oneWay: true } } ]
    - name: work
      source: { connector: line, type: queue, settings: { subject: work } }
      process: [ { type: set-payload, settings: { value: '"worked"' } } ]
"""


async def test_without_serving_every_flow_is_called_by_name_and_what_sources_need_stays_closed():
    watcher = Watcher()
    async with Runtime(config(SOURCED), observers=[watcher], outputs={"stderr": len}) as runtime:
        called = await runtime.invoke("main")
        direct = await runtime.invoke("work")

        with pytest.raises(Exception, match='connector "line" is not open'):
            runtime.live("line", object)

    assert (called.body, direct.body) == ("worked", "worked")
    assert watcher.lines == [("info", 'connector "line" is not started, for flows have it as source')]


async def test_while_serving_a_flow_with_a_source_is_not_called_by_others():
    async with served(SOURCED, outputs={"stderr": len}) as octo:
        for flow in ("main", "one-way"):
            with pytest.raises(BlockError) as caught:
                await octo.runtime.invoke(flow)
            assert str(caught.value) == 'block "call": flow "work" is not registered'


def test_validate_warns_of_such_a_call():
    messages = [(warning.message, warning.hint) for warning in config(SOURCED).warnings]

    assert messages == 2 * [
        (
            "`octo run` does not let flow `work` be called, for it has a source",
            "move its blocks into a flow without a source, and call that one from both",
        )
    ]


async def test_implied_connectors_are_shared():
    text = """
      flows:
        - { name: a, source: { type: queue, settings: { subject: a } } }
        - { name: b, source: { type: queue, settings: { subject: b } } }
        - name: send
          process: [ { type: queue-dispatch, settings: { subject: body } } ]
    """
    watcher = Watcher()
    async with served(text, observers=[watcher]) as octo:
        await octo.runtime.invoke("send", "a")
        await octo.runtime.invoke("send", "b")
        await until(lambda: len(watcher.ended) == 4)
        assert octo.runtime.live("queue", object) is octo.runtime

    assert sorted(flow for flow, *_ in watcher.ended) == ["a", "b", "send", "send"]
