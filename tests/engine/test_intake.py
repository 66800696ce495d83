"""octo/intake.py, octo/runtime.py: workers, the channel before them, and the order in which a program stops."""

import asyncio

import pytest

from octo import Connector, Runtime, Source
from octo.errors import ConnectorError, OctoError
from octo.message import Dropped, Message
from octo.observe import FlowStarted
from octo.testing.harness import config
from serving import Watcher, served, until

QUEUE = """
  flows:
    - name: work
      workers: {workers}
      buffer: {buffer}
      source: {{ type: queue, settings: {{ subject: work, listeners: 100 }} }}
      process: [ {{ type: log, name: act }} ]
    - name: send
      process: [ {{ type: queue-dispatch, settings: {{ subject: '"work"' }} }} ]
"""


async def test_messages_run_on_as_many_workers_as_the_flow_has():
    running, most = 0, 0

    async def act(message, run):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1

    watcher = Watcher()
    async with served(QUEUE.format(workers=3, buffer=0), actions={"act": act}, observers=[watcher]) as octo:
        for number in range(20):
            await octo.runtime.invoke("send", float(number))
        await until(lambda: len([flow for flow, *_ in watcher.ended if flow == "work"]) == 20)

    assert most == 3


async def test_workers_are_made_as_messages_come():
    gate = asyncio.Event()

    async def act(message, run):
        await gate.wait()

    watcher = Watcher()
    text = QUEUE.format(workers=1_000_000_000, buffer=0)
    async with served(text, actions={"act": act}, observers=[watcher]) as octo:
        before = len(asyncio.all_tasks())
        for number in range(3):
            await octo.runtime.invoke("send", float(number))
        await asyncio.sleep(0.02)
        # Each message has a worker, and whoever waits for what becomes of it.
        assert len(asyncio.all_tasks()) - before == 6
        gate.set()
        await until(lambda: len([flow for flow, *_ in watcher.ended if flow == "work"]) == 3)
        for _ in range(5):
            await octo.runtime.invoke("send")
            await asyncio.sleep(0.002)
        assert len(asyncio.all_tasks()) - before == 3


async def test_one_worker_takes_messages_in_their_order():
    async def act(message, run):
        await asyncio.sleep(0)

    watcher = Watcher()
    text = QUEUE.format(workers=1, buffer=0).replace("listeners: 100", "listeners: 1")
    async with served(text, actions={"act": act}, observers=[watcher]) as octo:
        for number in range(20):
            await octo.runtime.invoke("send", float(number))
        await until(lambda: len([flow for flow, *_ in watcher.ended if flow == "work"]) == 20)

    assert [body for flow, _, body in watcher.ended if flow == "work"] == [float(number) for number in range(20)]


async def test_whoever_delivers_waits_while_the_channel_is_full():
    gate = asyncio.Event()
    started = []

    async def act(message, run):
        started.append(message.body)
        await gate.wait()

    text = QUEUE.format(workers=1, buffer=2).replace("listeners: 100", "listeners: 10")
    watcher = Watcher()
    async with served(text, actions={"act": act}, observers=[watcher]) as octo:
        for number in range(30):
            await octo.runtime.invoke("send", float(number))
        await asyncio.sleep(0.02)
        waiting = octo.runtime.services.queues
        assert started == [0.0]
        # One is at work, two are in the channel, seven more are held by listeners: the rest was not taken.
        async with waiting.subscribed("work") as rest:
            assert (await rest.take()).message.body == 10.0
        gate.set()
        await until(lambda: len([flow for flow, *_ in watcher.ended if flow == "work"]) == 29)


async def test_a_message_that_fails_is_logged_and_the_worker_goes_on():
    async def act(message, run):
        match message.body:
            case 0.0:
                raise OctoError("no")
            case 1.0:
                raise KeyError("x")
            case 2.0:
                raise Dropped

    watcher = Watcher()
    async with served(QUEUE.format(workers=1, buffer=0), actions={"act": act}, observers=[watcher]) as octo:
        for number in range(4):
            await octo.runtime.invoke("send", float(number))
        await until(lambda: len([flow for flow, *_ in watcher.ended if flow == "work"]) == 4)

    assert [(outcome, body) for flow, outcome, body in watcher.ended if flow == "work"] == [
        ("failed", 0.0),
        ("failed", 1.0),
        ("dropped", 2.0),
        ("completed", 3.0),
    ]
    assert [text for level, text in watcher.lines if level == "error"] == [
        'block "act": no',
        "internal error: KeyError('x')",
    ]


async def test_what_was_accepted_is_finished_before_the_program_ends():
    watcher = Watcher(FlowStarted)

    async def act(message, run):
        await asyncio.sleep(0.01)

    async with served(QUEUE.format(workers=2, buffer=20), actions={"act": act}, observers=[watcher]) as octo:
        for number in range(10):
            await octo.runtime.invoke("send", float(number))
        await until(lambda: any(event.address == "work" for event in watcher.others))
        await octo.stop()
        finished = [outcome for flow, outcome, _ in watcher.ended if flow == "work"]

    assert finished == ["completed"] * 10


async def test_a_second_cancellation_gives_up_what_is_at_work():
    started = asyncio.Event()
    ended = []

    async def act(message, run):
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async with served(QUEUE.format(workers=2, buffer=0), actions={"act": act}) as octo:
        await octo.runtime.invoke("send")
        await started.wait()
        octo.work.cancel()
        await asyncio.sleep(0.01)
        assert ended == []
        octo.work.cancel()
        await asyncio.wait([octo.work])
        assert ended == [True]


async def test_elements_that_a_split_has_sent_on_are_waited_for():
    text = """
      flows:
        - name: work
          source: { type: queue, settings: { subject: work } }
          process:
            - { type: split, settings: { items: body } }
            - { type: log, name: act }
        - name: send
          process: [ { type: queue-dispatch, settings: { subject: '"work"' } } ]
    """
    done = []

    async def act(message, run):
        await asyncio.sleep(0.01)
        done.append(message.body)

    watcher = Watcher(FlowStarted)
    async with served(text, actions={"act": act}, observers=[watcher]) as octo:
        await octo.runtime.invoke("send", [1.0, 2.0, 3.0])
        await until(lambda: any(event.address == "work" for event in watcher.others))
        await octo.stop()

    assert sorted(done) == [1.0, 2.0, 3.0]


class Noted(Source):
    """Notes what happens to it."""

    type = "noted"
    label: str

    async def listen(self, live, deliver):
        live.append(f"{self.label} listens")
        try:
            await asyncio.Event().wait()
        finally:
            live.append(f"{self.label} stops")


class Broken(Source):
    """Cannot go on."""

    type = "broken"

    async def listen(self, live, deliver):
        raise ConnectorError("the line is dead")


def serving(events, *sources, observers=()):
    from contextlib import asynccontextmanager

    class Line(Connector, type="line"):
        """Gives a list to write into."""

        @asynccontextmanager
        async def open(self, runtime):
            events.append("line opens")
            yield events
            events.append("line closes")

    loaded = config("flows: [" + ", ".join(f"{{name: f{index}}}" for index in range(len(sources))) + "]")
    line = Line()
    line.named("line")
    for flow, source in zip(loaded.flows, sources, strict=True):
        source.__dict__.update(instance="line", implied=line)
        flow.__dict__["source"] = source
    return Runtime(loaded, serving=True, observers=observers)


async def test_flows_stop_in_the_reverse_order_and_connectors_after_them():
    events = []

    async with serving(events, Noted(label="one"), Noted(label="two")) as runtime:
        work = asyncio.create_task(
            runtime.serve(ready=lambda: events.append("ready"), stopping=lambda: events.append("stopping"))
        )
        await until(lambda: "two listens" in events)
        work.cancel()
        await asyncio.wait([work])

    assert events == [
        "line opens",
        "ready",
        "one listens",
        "two listens",
        "stopping",
        "two stops",
        "one stops",
        "line closes",
    ]


async def test_a_source_that_cannot_go_on_ends_the_program():
    events = []

    with pytest.raises(ConnectorError, match="the line is dead"):
        async with serving(events, Noted(label="one"), Broken()) as runtime:
            await runtime.serve()

    assert events[-2:] == ["one stops", "line closes"]


async def test_whoever_gives_up_waiting_does_not_end_the_work():
    finished = []

    class Impatient(Source):
        """Waits for a moment only."""

        type = "impatient"

        async def listen(self, live, deliver):
            outcome = await deliver(Message("patient", event_id="1" * 32))
            assert outcome.message is not None
            live.append(outcome.message.body)
            done = await deliver.accept(Message("impatient", event_id="2" * 32))
            done.cancel()
            await asyncio.Event().wait()

    watcher = Watcher()
    async with serving(finished, Impatient(), observers=[watcher]) as runtime:
        work = asyncio.create_task(runtime.serve())
        await until(lambda: len(watcher.ended) == 2)
        work.cancel()
        await asyncio.wait([work])

    assert finished == ["line opens", "patient", "line closes"]
    assert watcher.ended == [("f0", "completed", "patient"), ("f0", "completed", "impatient")]
