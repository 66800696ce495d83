"""Calling flows, watching them, stopping and dropping.

Covers octo/runtime.py, octo/run.py, octo/block.py, octo/connector.py and octo/observe.py.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from octo import Block, Connector, Dropped, Runtime, UsageError
from octo.errors import ConnectorError, OctoError
from octo.observe import BlockEntered, BlockLeft, FlowEnded, FlowStarted, LogLine
from octo.testing.harness import config, runtime

THREE = """
  flows:
    - name: main
      process:
        - { type: set-variable, settings: { name: a, value: '1' } }
        - { type: set-payload, name: gate, settings: { value: body } }
        - { type: set-variable, settings: { name: b, value: '2' } }
"""


class Recorder:
    kinds = (FlowStarted, FlowEnded, BlockEntered, BlockLeft)

    def __init__(self):
        self.seen = []

    def notify(self, event):
        self.seen.append((type(event).__name__, event.address, getattr(event, "outcome", None)))


class Stop(Block, type="test-stop"):
    """Completes the flow."""

    async def execute(self, message, run):
        message.stop()
        return message


class Drop(Block, type="test-drop"):
    """Filters the message out."""

    async def execute(self, message, run):
        raise Dropped


class Fresh(Block, type="test-fresh"):
    """Returns a message of its own, as a plug-in may."""

    async def execute(self, message, run):
        fresh = message.clone()
        fresh.body = "fresh"
        fresh.vars["made"] = True
        return fresh


def with_block(loaded, block, flow=0):
    """The config with the block called `gate` replaced by one of the tests'."""
    process = tuple(_swap(each, block) for each in loaded.flows[flow].process)
    loaded.flows[flow].__dict__["process"] = process
    return loaded


def _swap(each, block):
    if each.label != "gate":
        return each
    block.put_at(each.place)
    return block


async def test_a_stop_completes_the_flow_right_there():
    async with Runtime(with_block(config(THREE), Stop())) as octo:
        message = await octo.invoke("main", 5.0)

    assert (message.body, message.vars) == (5.0, {"a": 1.0})


async def test_a_drop_skips_the_rest_and_is_no_error():
    recorder = Recorder()

    async with Runtime(with_block(config(THREE), Drop()), observers=[recorder]) as octo:
        with pytest.raises(Dropped):
            await octo.invoke("main")

    assert recorder.seen == [
        ("FlowStarted", "main", None),
        ("BlockEntered", "main.set-variable", None),
        ("BlockLeft", "main.set-variable", "completed"),
        ("BlockEntered", "main.gate", None),
        ("BlockLeft", "main.gate", "dropped"),
        ("FlowEnded", "main", "dropped"),
    ]


async def test_a_block_may_return_a_message_of_its_own_and_the_flow_goes_on_with_its_content():
    async with Runtime(with_block(config(THREE), Fresh())) as octo:
        message = await octo.invoke("main")

    assert (message.body, message.vars) == ("fresh", {"a": 1.0, "made": True, "b": 2.0})


async def test_an_unknown_flow_is_a_usage_error_with_the_near_miss():
    async with runtime(THREE) as octo:
        with pytest.raises(UsageError) as caught:
            await octo.invoke("mian")

    assert (str(caught.value), caught.value.hint) == ('flow "mian" is not registered', "did you mean `main`?")


async def test_messages_have_ids_of_their_own():
    ids = iter(["a" * 32, "b" * 32])

    async with Runtime(config(THREE), new_id=lambda: next(ids)) as octo:
        first = await octo.invoke("main")
        second = await octo.invoke("main")

    assert (first.event_id, second.event_id) == ("a" * 32, "b" * 32)


class Live(Connector, type="test-live"):
    """Notes when it opens and closes."""

    fails: bool = False
    events: list[str]

    @asynccontextmanager
    async def open(self, runtime):
        if self.fails:
            raise OctoError("nobody is there")
        self.events.append(f"open {self.instance}")
        try:
            yield self
        finally:
            self.events.append(f"close {self.instance}")


def with_connectors(*connectors):
    loaded = config("connectors: [] \nflows: [{name: main}]")
    loaded.__dict__["connectors"] = connectors
    return loaded


def live(name, events, **settings):
    connector = Live(events=[], **settings)
    connector.__dict__["events"] = events
    connector.named(name)
    return connector


async def test_connectors_open_in_order_and_close_in_reverse():
    events = []

    async with Runtime(with_connectors(live("one", events), live("two", events))):
        events.append("work")

    assert events == ["open one", "open two", "work", "close two", "close one"]


async def test_a_connector_that_cannot_open_closes_the_others_and_is_named():
    events = []

    with pytest.raises(ConnectorError) as caught:
        async with Runtime(with_connectors(live("one", events), live("two", events, fails=True))):
            events.append("never")

    assert str(caught.value) == 'connector "two" (test-live): nobody is there'
    assert events == ["open one", "close one"]


async def test_work_beside_the_flow_is_waited_for():
    done = []

    async def work():
        await asyncio.sleep(0.01)
        done.append(True)

    async with runtime(THREE) as octo:
        octo.spawn(work())

    assert done == [True]


async def test_a_thousand_messages_run_at_once():
    async with runtime(THREE) as octo:
        messages = await asyncio.gather(*(octo.invoke("main", float(number)) for number in range(1000)))

    assert [message.body for message in messages] == [float(number) for number in range(1000)]


async def test_work_that_work_beside_the_flow_starts_is_waited_for_too():
    done = []

    async with runtime(THREE) as octo:

        async def first():
            await asyncio.sleep(0.001)
            octo.spawn(second())

        async def second():
            await asyncio.sleep(0.001)
            done.append(True)

        octo.spawn(first())

    assert done == [True]


async def test_an_unforeseen_failure_beside_the_flow_is_logged():
    class Lines:
        kinds = (LogLine,)

        def __init__(self):
            self.seen = []

        def notify(self, event):
            self.seen.append((event.level, event.text))

    async def work():
        raise KeyError("x")

    lines = Lines()
    async with runtime(THREE, observers=[lines]) as octo:
        octo.spawn(work())

    assert lines.seen == [("error", "internal error: KeyError('x')")]


async def test_a_pause_ends_early_when_the_runtime_closes():
    pauses = []

    async with runtime(THREE) as octo:

        async def work():
            while await octo.pause(0.001 if len(pauses) < 2 else 60):
                pauses.append(True)

        octo.spawn(work())
        await asyncio.sleep(0.05)

    assert pauses == [True, True]


async def test_a_runtime_that_is_torn_down_cancels_the_work_and_takes_no_more():
    ended = []

    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    with pytest.raises(ZeroDivisionError):
        async with runtime(THREE) as octo:
            octo.spawn(work())
            await asyncio.sleep(0)
            raise ZeroDivisionError

    assert ended == [True]
    with pytest.raises(OctoError, match="the runtime is closing and takes no more work"):
        octo.spawn(work())


LETTER = """
  resources: { templates: [ { resource: letter.txt } ] }
  flows: [ { name: main, process: [ { type: set-payload, settings: { value: '%s' } } ] } ]
"""


async def test_an_expression_renders_a_template_with_everything_in_scope():
    letter = {"letter.txt": "{{ vars.who }} on {{ now.getFullYear() }}: {{ body }}"}
    at_midnight = config(LETTER % 'templateResource("letter.txt") + "!"', files=letter)
    async with Runtime(at_midnight, clock=lambda: 0) as octo:
        message = await octo.invoke("main", {"n": 1}, vars={"who": "Ada"})

    assert message.body == 'Ada on 1970: {"n":1}!'


async def test_the_randomness_of_expressions_comes_from_outside():
    async with Runtime(config(LETTER % "uuid()", files={"letter.txt": ""}), random=bytes) as octo:
        assert (await octo.invoke("main")).body == "00000000-0000-4000-8000-000000000000"


async def test_every_number_of_a_body_is_a_double():
    async with runtime(LETTER % "[body.n / 2, body]", files={"letter.txt": ""}) as octo:
        body = (await octo.invoke("main", {"n": 3})).body

    assert repr(body) == "[1.5, {'n': 3.0}]"


LOOP = """
  flows:
    - name: main
      process:
        - type: foreach
          items: body
          body: { process: [ { type: set-variable, settings: { name: last, value: vars.item } } ] }
"""


async def test_blocks_that_never_wait_let_time_limits_through():
    async with runtime(LOOP) as octo:
        started = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await octo.invoke("main", [1.0] * 3_000_000)

        assert asyncio.get_running_loop().time() - started < 2


async def test_blocks_that_never_wait_let_other_messages_through():
    async with runtime(LOOP) as octo:
        long = asyncio.create_task(octo.invoke("main", [1.0] * 3_000_000))
        await asyncio.sleep(0)
        await octo.invoke("main", [1.0])

        assert not long.done()
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
