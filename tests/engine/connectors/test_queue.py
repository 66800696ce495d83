"""octo/connectors/queue.py, octo/blocks/queue_dispatch.py, octo/services/local.py: competing consumers."""

import asyncio

import pytest

from octo import Runtime
from octo.errors import BlockError, ConfigError
from octo.message import Dropped, Message
from octo.runlog.recorder import Recorder
from octo.runtime import random_id
from octo.services.local import ROOM, LocalQueues
from octo.testing.harness import config
from serving import Watcher, served, until

REPLY = """
  flows:
    - name: ask
      process:
        - type: queue-dispatch
          name: ask
          settings: {{ subject: '" work "', awaitReply: true, timeout: 2s }}
    - name: tell
      process:
        - {{ type: queue-dispatch, name: tell, settings: {{ subject: '"work"' }} }}
    - name: work
      source: {{ type: queue, settings: {{ subject: work, {more} }} }}
      process:
        - {{ type: set-variable, settings: {{ name: worker, value: '"w"' }} }}
        - {{ type: set-payload, name: answer, settings: {{ value: 'body * 2' }} }}
"""


async def test_the_reply_replaces_the_body_and_adds_its_variables():
    async with served(REPLY.format(more="")) as octo:
        message = await octo.runtime.invoke("ask", 4.0, vars={"mine": 1.0})

    assert (message.body, message.vars) == (8.0, {"mine": 1.0, "worker": "w"})


async def test_a_reply_keeps_its_raw_content():
    async def answer(message, run):
        message.set_raw("text/csv", "a,b")

    async with served(REPLY.format(more=""), actions={"answer": answer}) as octo:
        message = await octo.runtime.invoke("ask", 4.0)

    assert (message.raw, message.body) == (True, {"contentType": "text/csv", "rawData": "a,b"})


async def test_a_message_that_nobody_waits_for_goes_on_at_once():
    watcher = Watcher()
    async with served(REPLY.format(more=""), observers=[watcher]) as octo:
        message = await octo.runtime.invoke("tell", 4.0)
        await until(lambda: len(watcher.ended) == 2)

    assert (message.body, message.vars) == (4.0, {})
    assert watcher.ended == [("tell", "completed", 4.0), ("work", "completed", 8.0)]
    assert watcher.messages[0].event_id != watcher.messages[1].event_id


async def test_the_sender_fails_with_the_error_of_the_flow():
    async with served(REPLY.format(more="")) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.runtime.invoke("ask", "text")

    assert str(caught.value) == (
        'block "ask": queue-dispatch "work": block "answer": set-payload value: evaluate expression: '
        "no such overload: string * int"
    )


async def test_a_flow_that_drops_the_message_replies_with_what_it_got():
    async def answer(message, run):
        message.body = "changed"
        raise Dropped

    async with served(REPLY.format(more=""), actions={"answer": answer}) as octo:
        message = await octo.runtime.invoke("ask", 4.0)

    assert (message.body, message.vars) == (4.0, {})


async def test_without_a_reply_in_time_the_block_fails():
    async def answer(message, run):
        await asyncio.sleep(0.2)

    text = REPLY.format(more="").replace("timeout: 2s", "timeout: 20ms")
    async with served(text, actions={"answer": answer}) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.runtime.invoke("ask", 4.0)

    assert str(caught.value) == 'block "ask": queue-dispatch "work": no reply within 20ms'


async def test_a_flow_that_takes_too_long_goes_on_but_its_listener_and_its_sender_do_not_wait():
    gate = asyncio.Event()

    async def answer(message, run):
        if message.body == 1.0:
            await gate.wait()

    watcher = Watcher()
    text = REPLY.format(more="timeout: 20ms, listeners: 1")
    async with served(text, actions={"answer": answer}, observers=[watcher]) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.runtime.invoke("ask", 1.0)
        second = await octo.runtime.invoke("ask", 2.0)
        gate.set()
        await until(lambda: ("work", "completed", 1.0) in watcher.ended)

    assert str(caught.value) == 'block "ask": queue-dispatch "work": the flow did not finish within 20ms'
    assert second.body == 2.0


async def test_each_message_goes_to_one_of_all_that_listen():
    text = """
      flows:
        - name: send
          process: [ { type: queue-dispatch, settings: { subject: '"work"' } } ]
        - { name: one, source: { type: queue, settings: { subject: work, listeners: 1 } } }
        - { name: two, source: { type: queue, settings: { subject: work, listeners: 1 } } }
    """
    watcher = Watcher()
    async with served(text, observers=[watcher]) as octo:
        for number in range(40):
            await octo.runtime.invoke("send", float(number))
        await until(lambda: len(watcher.ended) == 80)

    taken = [(flow, body) for flow, _, body in watcher.ended if flow != "send"]
    assert sorted(body for _, body in taken) == [float(number) for number in range(40)]
    assert {flow for flow, _ in taken} == {"one", "two"}


async def test_messages_wait_until_somebody_listens():
    text = REPLY.format(more="")
    services = None
    async with Runtime(config(text), serving=True) as runtime:
        services = runtime.services
        await runtime.invoke("tell", 4.0)
    watcher = Watcher()

    async with served(text, observers=[watcher], services=services):
        await until(lambda: watcher.ended)

    assert watcher.ended == [("work", "completed", 8.0)]


async def test_a_full_queue_refuses_more():
    text = "flows: [{name: send, process: [{type: queue-dispatch, name: s, settings: {subject: '\"x\"'}}]}]"
    async with Runtime(config(text)) as runtime:
        for _ in range(ROOM):
            await runtime.invoke("send")
        with pytest.raises(BlockError) as caught:
            await runtime.invoke("send")

    assert str(caught.value) == 'block "s": queue-dispatch "x": subject buffer full'
    assert caught.value.hint == "1024 messages wait, and no flow takes them fast enough"


async def test_a_request_that_nobody_took_does_not_wait_for_ever_in_the_queue():
    queues = LocalQueues()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await queues.request("work", Message(1.0, event_id=random_id()))
    await queues.send("work", Message(2.0, event_id=random_id()))

    async with queues.subscribed("work") as subscription:
        assert (await subscription.take()).message.body == 2.0


async def test_sender_and_taker_share_nothing():
    queues = LocalQueues()
    sent = Message({"list": [1.0]}, event_id=random_id())
    await queues.send("work", sent)

    async with queues.subscribed("work") as subscription:
        taken = (await subscription.take()).message
        taken.body["list"].append(2.0)

    assert sent.body == {"list": [1.0]}


async def test_a_subject_that_is_blank_fails_the_block():
    text = "flows: [{name: send, process: [{type: queue-dispatch, name: s, settings: {subject: '\" \"'}}]}]"
    async with Runtime(config(text)) as runtime:
        with pytest.raises(BlockError, match='block "s": queue-dispatch subject is empty'):
            await runtime.invoke("send")


async def test_the_end_waits_for_replies_that_are_under_way():
    started = asyncio.Event()

    async def answer(message, run):
        started.set()
        await asyncio.sleep(0.02)
        message.body = "done"

    async with served(REPLY.format(more=""), actions={"answer": answer}) as octo:
        asking = asyncio.create_task(octo.runtime.invoke("ask", 4.0))
        await started.wait()
        await octo.stop()
        assert (await asking).body == "done"


async def test_after_the_end_of_the_last_listener_senders_are_told_at_once():
    async with served(REPLY.format(more="")) as octo:
        await octo.stop()
        with pytest.raises(BlockError, match='block "ask": queue-dispatch "work": stopped'):
            await octo.runtime.invoke("ask", 4.0)


async def test_one_trace_joins_what_one_message_caused():
    records = []
    text = REPLY.format(more="") + "        - { type: queue-dispatch, settings: { subject: '\"more\"' } }\n"
    text += "    - { name: more, source: { type: queue, settings: { subject: more } } }\n"
    async with served(text, observers=[Recorder([records.append]), watcher := Watcher()]) as octo:
        await octo.runtime.invoke("ask", 4.0)
        await until(lambda: len(watcher.ended) == 3)

    flows = {record.flow for record in records}
    assert flows == {"ask", "work", "more"}
    assert len({record.trace_id for record in records}) == 1
    assert len({record.event_id for record in records}) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{}", "source of type `queue` requires `subject`"),
        ("{subject: ' '}", "`subject`: expected a name, found blank text"),
        ("{subject: x, listeners: 0}", "`listeners` must be greater than 0"),
        ("{subject: x, timeout: 0}", "`timeout` must be greater than 0"),
        ("{subject: x, timeout: 5}", "expected a duration, found a number"),
        ("{subject: x, listener: 5}", 'unknown field "listener" in source `queue`'),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [{{name: a, source: {{type: queue, settings: {settings}}}}}]")

    assert [problem.message for problem in caught.value.problems] == [message]


def test_a_reply_needs_some_time():
    with pytest.raises(ConfigError) as caught:
        config(
            "flows: [{name: a, process: [{type: queue-dispatch, settings: {subject: '\"x\"', awaitReply: true, "
            "timeout: 0s}}]}]"
        )

    assert [problem.message for problem in caught.value.problems] == ["`timeout` must be greater than 0"]
