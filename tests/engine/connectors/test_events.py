"""octo/connectors/events.py, octo/blocks/publish_event.py, octo/services/local.py: broadcast topics."""

import asyncio

import pytest

from octo import Runtime
from octo.errors import BlockError, ConfigError
from octo.message import Message
from octo.services.local import ROOM, LocalTopics
from octo.testing.harness import config
from serving import Watcher, served, until

EVENTS = """
  flows:
    - name: publish
      process:
        - {{ type: publish-event, name: p, settings: {{ subject: '" order." + body.kind', {more} }} }}
    - name: one
      source: {{ type: events, settings: {{ subject: order.new }} }}
    - name: two
      source: {{ type: events, settings: {{ subject: order.new }} }}
    - name: other
      source: {{ type: events, settings: {{ subject: order.old }} }}
"""
NEW = {"kind": "new"}


async def test_everybody_who_listens_gets_a_copy_of_the_message_which_itself_goes_on():
    watcher = Watcher()
    async with served(EVENTS.format(more=""), observers=[watcher]) as octo:
        message = await octo.runtime.invoke("publish", NEW, vars={"mine": 1.0})
        await until(lambda: len(watcher.ended) == 3)

    assert message.body == NEW
    assert sorted(watcher.ended) == [
        ("one", "completed", NEW),
        ("publish", "completed", NEW),
        ("two", "completed", NEW),
    ]
    assert [message.vars for message in watcher.messages] == [{"mine": 1.0}] * 3
    assert len({message.event_id for message in watcher.messages}) == 3
    assert len({message.trace_id for message in watcher.messages}) == 1


async def test_the_copies_may_have_a_body_of_their_own():
    watcher = Watcher()
    async with served(EVENTS.format(more="value: '{\"n\": 1}'"), observers=[watcher]) as octo:
        message = await octo.runtime.invoke("publish", NEW)
        await until(lambda: len(watcher.ended) == 3)

    assert message.body == NEW
    assert sorted(body["n"] for flow, _, body in watcher.ended if flow != "publish") == [1.0, 1.0]


async def test_what_nobody_listens_to_is_lost_and_nothing_has_failed():
    async with Runtime(config(EVENTS.format(more=""))) as runtime:
        assert (await runtime.invoke("publish", {"kind": "unknown"})).body == {"kind": "unknown"}


async def test_a_flow_that_fails_does_not_reach_the_publisher():
    text = EVENTS.format(more="") + "      process: [ { type: set-payload, name: s, settings: { value: body.x } } ]\n"
    watcher = Watcher()
    async with served(text, observers=[watcher]) as octo:
        message = await octo.runtime.invoke("publish", {"kind": "old"})
        await until(lambda: len(watcher.ended) == 2)

    assert message.body == {"kind": "old"}
    assert [text for level, text in watcher.lines if level == "error"] == [
        'block "s": set-payload value: evaluate expression: no such key: x'
    ]


async def test_a_subject_that_is_blank_fails_the_block():
    text = "flows: [{name: a, process: [{type: publish-event, name: p, settings: {subject: '\"\"'}}]}]"
    async with Runtime(config(text)) as runtime:
        with pytest.raises(BlockError, match='block "p": publish-event subject is empty'):
            await runtime.invoke("a")


async def test_who_cannot_keep_up_loses_messages_and_nobody_else_does():
    topics = LocalTopics()
    async with topics.subscribed("x") as slow, topics.subscribed("x") as quick:
        for number in range(ROOM + 3):
            await topics.publish("x", Message(float(number), event_id="1" * 32))
            assert (await quick.take())[0].body == float(number)
        first, lost = await slow.take()
        await topics.publish("x", Message("next", event_id="1" * 32))
        _, later = await slow.take()

    assert (first.body, lost, later) == (0.0, 3, 0)


async def test_losses_are_logged():
    gate = asyncio.Event()

    async def act(message, run):
        await gate.wait()

    text = """
      flows:
        - name: publish
          process: [ { type: publish-event, settings: { subject: '"x"' } } ]
        - name: slow
          workers: 1
          buffer: 1
          source: { type: events, settings: { subject: x, listeners: 1 } }
          process: [ { type: log, name: act } ]
    """
    watcher = Watcher()
    async with served(text, actions={"act": act}, observers=[watcher]) as octo:
        for number in range(ROOM + 10):
            await octo.runtime.invoke("publish", float(number))
        await asyncio.sleep(0)
        gate.set()
        await until(lambda: any(level == "warn" for level, _ in watcher.lines))

    assert ("warn", "events were lost, for the flow cannot keep up") in watcher.lines


def test_subjects_of_the_platform_cannot_be_listened_to():
    with pytest.raises(ConfigError) as caught:
        config("flows: [{name: a, source: {type: events, settings: {subject: 'system:alerts'}}}]")

    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == (
        "events: a subject that starts with `system:` cannot be a source",
        "subjects of the platform can be published to, but not listened to",
    )
