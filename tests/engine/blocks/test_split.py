"""octo/blocks/split.py: elements on their own way through the rest of the flow."""

import asyncio

import pytest

from acting import drop, runtime, stop
from octo.errors import BlockError, ConfigError, OctoError
from octo.message import Dropped
from octo.observe import BlockLeft, FlowEnded, LogLine
from octo.testing.harness import config

FLOW = """
  flows:
    - name: main
      pool: 2
      process:
        - { type: set-variable, settings: { name: own, value: '1' } }
        - type: split
          items: body.rows
          buildResponse: { process: [ { type: set-payload, name: answer, settings: { value: 'vars.groupSize' } } ] }
        - { type: set-payload, name: check, settings: { value: '{"id": body.id}' } }
        - { type: set-payload, name: end, settings: { value: body } }
      error:
        - { type: set-payload, name: failed, settings: { value: '[body, vars.error.message, vars.groupIndex]' } }
    - name: plain
      process:
        - { type: split, items: body }
        - { type: set-payload, name: end, settings: { value: 'body.id' } }
    - name: recovering
      process: [ { type: set-payload, settings: { value: body.missing } } ]
      error:
        - { type: split, items: body }
        - { type: set-payload, name: end, settings: { value: 'body.id' } }
"""


class Seen:
    """Keeps what arrives at a block."""

    def __init__(self):
        self.messages = []

    async def __call__(self, message, run):
        self.messages.append(message.clone())

    @property
    def bodies(self):
        return [message.body for message in self.messages]


class Log:
    kinds = (LogLine,)

    def __init__(self):
        self.lines = []

    def notify(self, event):
        self.lines.append((event.level, event.text, event.fields.get("flow")))


def cut(mode, **settings):
    """A flow that splits in a mode, and lets nothing follow but the block `end`."""
    keys = ", ".join(f"{key}: {value}" for key, value in settings.items())
    return f"""
      flows:
        - name: main
          process:
            - {{ type: split, mode: {mode}{", " if keys else ""}{keys} }}
            - {{ type: set-payload, name: end, settings: {{ value: body }} }}
    """


async def test_each_element_goes_through_the_rest_as_a_message_of_its_own():
    seen = Seen()
    async with runtime(FLOW, {"end": seen}) as octo:
        message = await octo.invoke("main", {"rows": [{"id": 1.0, "x": 0.0}, {"id": 2.0}]}, vars={"mine": [1.0]})

    assert seen.bodies == [{"id": 1.0}, {"id": 2.0}]
    assert [each.vars for each in seen.messages] == [
        {"mine": [1.0], "own": 1.0, "groupId": message.event_id, "groupIndex": index, "groupSize": 2.0}
        for index in (0.0, 1.0)
    ]
    assert len({message.event_id, *(each.event_id for each in seen.messages)}) == 3


async def test_elements_carry_the_correlation_id_of_the_parent():
    seen = Seen()

    async def correlate(message, run):
        message.correlation_id = "c-1"

    async with runtime(FLOW, {"set-variable": correlate, "end": seen}) as octo:
        await octo.invoke("main", {"rows": [{"id": 1.0}]})

    assert [each.correlation_id for each in seen.messages] == ["c-1"]


async def test_the_caller_gets_its_own_message_and_the_flow_stops_with_it():
    async with runtime(FLOW, {}) as octo:
        message = await octo.invoke("main", {"rows": [{"id": 1.0}, {"id": 2.0}]})

    assert (message.body, message.stopped) == (2.0, True)
    assert message.vars == {"own": 1.0, "groupId": message.event_id, "groupSize": 2.0}


async def test_without_build_response_the_answer_is_the_message_as_it_was(run_flow):
    message = await run_flow(FLOW, [{"id": 1.0}], flow="plain")

    assert message.body == [{"id": 1.0}]
    assert message.vars == {"groupId": message.event_id, "groupSize": 1.0}


async def test_an_empty_list_sends_nothing():
    seen = Seen()
    async with runtime(FLOW, {"end": seen}) as octo:
        message = await octo.invoke("main", {"rows": []})

    assert (message.body, seen.bodies) == (0.0, [])


async def test_elements_are_copies():
    async def change(message, run):
        message.body["id"] = "changed"

    rows = [{"id": 1.0}]
    async with runtime(FLOW, {"end": change, "check": change, "answer": drop}) as octo:
        with pytest.raises(Dropped):
            await octo.invoke("main", {"rows": rows})

    assert rows == [{"id": 1.0}]


async def test_a_failing_element_goes_to_the_error_chain_alone():
    seen, failed = Seen(), Seen()
    async with runtime(FLOW, {"end": seen, "failed": failed}) as octo:
        message = await octo.invoke("main", {"rows": [{"id": 1.0}, {}, {"id": 3.0}]})

    assert message.body == 3.0
    assert seen.bodies == [{"id": 1.0}, {"id": 3.0}]
    (element,) = failed.messages
    assert (element.body, element.vars["groupIndex"]) == ({}, 1.0)
    assert element.vars["error"] == {
        "message": 'block "check": set-payload value: evaluate expression: no such key: id',
        "flow": "main",
        "block": "check",
    }


async def test_without_an_error_chain_a_failing_element_is_logged_with_its_flow():
    log = Log()
    async with runtime(FLOW, {}, observers=[log]) as octo:
        await octo.invoke("plain", [{}, {"id": 1.0}])

    text = 'block "end": set-payload value: evaluate expression: no such key: id'
    assert log.lines == [("error", text, "plain")]


async def test_in_an_error_chain_elements_go_through_its_rest_and_do_not_recover_again():
    log = Log()
    async with runtime(FLOW, {}, observers=[log]) as octo:
        message = await octo.invoke("recovering", [{}, {"id": 1.0}])

    text = 'block "end": set-payload value: evaluate expression: no such key: id'
    assert message.vars["error"]["block"] == "set-payload"
    assert log.lines == [("error", text, "recovering")]


@pytest.mark.parametrize("action", [drop, stop], ids=["drop", "stop"])
async def test_a_dropped_or_stopped_element_concerns_nobody_else(action):
    log = Log()
    async with runtime(FLOW, {"check": action}, observers=[log]) as octo:
        message = await octo.invoke("main", {"rows": [{"id": 1.0}]})

    assert (message.body, log.lines) == (1.0, [])


async def test_a_stop_travels_up_to_the_caller_of_the_flow(run_flow):
    flow = (
        FLOW
        + """
    - name: caller
      process:
        - { type: flow-ref, settings: { flow: main } }
        - { type: set-payload, settings: { value: '"after"' } }
    """
    )

    message = await run_flow(flow, {"rows": []}, flow="caller")

    assert (message.body, message.stopped) == (0.0, True)


async def test_elements_run_at_once_on_the_pool_and_the_caller_does_not_wait_for_them():
    running, most, done = 0, 0, []

    async def work(message, run):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        done.append(message.body)

    async with runtime(FLOW, {"end": work}) as octo:
        await octo.invoke("main", {"rows": [{"id": float(number)} for number in range(10)]})
        at_the_answer = len(done)

    assert (at_the_answer, len(done), most) == (0, 10, 2)


async def test_a_full_pool_makes_the_splitting_worker_help_and_no_element_is_lost():
    seen = []

    async def work(message, run):
        await asyncio.sleep(0.001)
        seen.append(message.body["id"])

    async with runtime(FLOW, {"end": work}) as octo:
        await octo.invoke("main", {"rows": [{"id": float(number)} for number in range(300)]})
        left = 300 - len(seen)

    assert sorted(seen) == [float(number) for number in range(300)]
    assert 0 < left <= 66


async def test_a_split_after_a_split_divides_again():
    flow = """
      flows:
        - name: main
          pool: 1
          process:
            - { type: split, items: body }
            - { type: split, items: body }
            - { type: set-payload, name: end, settings: { value: body } }
    """
    seen = Seen()
    async with asyncio.timeout(10), runtime(flow, {"end": seen}) as octo:
        await octo.invoke("main", [[float(10 * row + column) for column in range(10)] for row in range(20)])

    assert sorted(seen.bodies) == [float(number) for number in range(200)]


async def test_a_fork_in_every_element_finds_room():
    flow = """
      flows:
        - name: main
          pool: 1
          process:
            - { type: split, items: body }
            - type: fork
              branches:
                - { process: [ { type: set-payload, name: end, settings: { value: body } } ] }
                - { process: [ { type: set-payload, name: end, settings: { value: body } } ] }
    """
    seen = Seen()
    async with asyncio.timeout(10), runtime(flow, {"end": seen}) as octo:
        await octo.invoke("main", [float(number) for number in range(100)])

    assert len(seen.bodies) == 200


async def test_every_element_is_an_invocation_of_its_own_for_observers():
    class Recorder:
        kinds = (FlowEnded, BlockLeft)

        def __init__(self):
            self.seen = []

        def notify(self, event):
            self.seen.append((event.address, event.event_id, event.outcome))

    recorder = Recorder()
    ids = iter(["parent", "first", "second"])
    async with runtime(FLOW, {}, observers=[recorder], new_id=lambda: next(ids)) as octo:
        await octo.invoke("plain", [{"id": 1.0}, {}])

    assert recorder.seen == [
        ("plain.split", "parent", "completed"),
        ("plain", "parent", "completed"),
        ("plain.end", "first", "completed"),
        ("plain", "first", "completed"),
        ("plain.end", "second", "failed"),
        ("plain", "second", "failed"),
    ]


@pytest.mark.parametrize(
    ("flow", "body", "pieces"),
    [
        (cut("lines"), "a\r\nb\n\nc\r\n", ["a", "b", "", "c"]),
        (cut("lines"), "a\r\r\nb", ["a\r", "b"]),
        (cut("lines"), "\n", [""]),
        (cut("lines"), "a\u2028b", ["a\u2028b"]),
        (cut("lines"), "", []),
        (cut("delimiter", delimiter="';'"), "a;;b;", ["a", "", "b", ""]),
        (cut("delimiter", delimiter="'--'"), "a---b", ["a", "-b"]),
        (cut("delimiter", delimiter="';'"), "", []),
        (cut("chunk", chunkSize=2), "ab🐙de", ["ab", "🐙d", "e"]),
        (cut("chunk", chunkSize=2), "", []),
    ],
    ids=[
        "lines",
        "one return is stripped",
        "an empty line",
        "only line feeds count",
        "no line",
        "delimiter",
        "long delimiter",
        "delimiter, empty",
        "chunk",
        "chunk, empty",
    ],
)
async def test_text_is_cut_into_pieces_and_the_last_carries_their_number(flow, body, pieces):
    seen = Seen()
    async with runtime(flow, {"end": seen}) as octo:
        message = await octo.invoke("main", body)

    assert seen.bodies == pieces
    sizes = [each.vars["groupSize"] for each in seen.messages]
    assert sizes == [-1.0] * (len(pieces) - 1) + [float(len(pieces))] * bool(pieces)
    assert message.vars["groupSize"] == len(pieces)


async def test_raw_content_is_cut_as_the_text_it_is_and_its_pieces_are_plain():
    seen = Seen()
    async with runtime(cut("lines"), {"end": seen}) as octo:
        message = await octo.invoke("main", "a\nb", content_type="text/csv")

    assert (seen.bodies, [each.raw for each in seen.messages]) == (["a", "b"], [False, False])
    assert message.raw


@pytest.mark.parametrize("body", [None, 1.0, ["a"], {"contentType": "text/csv", "rawData": "a"}])
async def test_only_text_can_be_cut(run_flow, body):
    with pytest.raises(BlockError, match="split items: mode `lines` needs a text body, got "):
        await run_flow(cut("lines"), body)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "split items: evaluate expression: no such key: rows"),
        ({"rows": "abc"}, "split items must evaluate to an array, got text"),
        ({"rows": None}, "split items must evaluate to an array, got null"),
    ],
    ids=["missing", "text", "null"],
)
async def test_only_a_list_can_be_split(body, text):
    flow = (
        "flows: [{name: main, process: [{type: split, items: body.rows}, {type: set-payload, settings: {value: '1'}}]}]"
    )
    async with runtime(flow, {}) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.invoke("main", body)

    assert str(caught.value) == f'block "split": {text}'


@pytest.mark.parametrize("on_error", ["skip", "abort"])
async def test_what_cannot_be_sent_on_its_way_is_left_out_or_fails_the_block(on_error):
    """A runtime that is torn down takes no more work."""
    flow = f"""
      flows:
        - name: main
          process:
            - {{ type: set-variable, name: gate, settings: {{ name: a, value: '1' }} }}
            - {{ type: split, items: body, onError: {on_error} }}
            - {{ type: set-payload, settings: {{ value: body }} }}
    """
    opened = asyncio.Event()
    log = Log()

    async def wait(message, run):
        await opened.wait()

    with pytest.raises(OctoError, match="torn down"):
        async with runtime(flow, {"gate": wait}, observers=[log]) as octo:
            call = asyncio.ensure_future(octo.invoke("main", [1.0, 2.0]))
            await asyncio.sleep(0)
            raise OctoError("torn down")
    opened.set()

    if on_error == "skip":
        assert (await call).vars["groupSize"] == 2.0
        assert log.lines == [
            ("warn", f"split element {index}: the runtime is closing and takes no more work", "main")
            for index in (0, 1)
        ]
    else:
        with pytest.raises(BlockError) as caught:
            await call
        assert str(caught.value) == 'block "split": split element 0: the runtime is closing and takes no more work'


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{}", "split requires `items` in mode `expression`"),
        ("{mode: delimiter}", "split requires `delimiter` in mode `delimiter`"),
        ("{mode: delimiter, delimiter: ''}", "split requires `delimiter` in mode `delimiter`"),
        ("{mode: chunk}", "split requires `chunkSize` in mode `chunk`"),
        ("{mode: chunk, chunkSize: 0}", "`chunkSize` must be greater than 0"),
        ("{mode: chunk, chunkSize: -1}", "`chunkSize` must be greater than 0"),
        ("{mode: words}", "expected `expression` or `lines` or `delimiter` or `chunk`, found `words`"),
        ("{items: body, onError: stop}", "expected `skip` or `abort`, found `stop`"),
    ],
)
def test_a_mode_needs_its_setting(settings, message):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [{{name: main, process: [{{type: split, settings: {settings}}}, {{type: log}}]}}]")

    assert [problem.message for problem in caught.value.problems] == [message]


def test_a_setting_of_another_mode_is_a_warning():
    (warning,) = config(cut("lines", items="body", delimiter="','")).warnings[:1]

    assert (warning.message, warning.hint) == ("`items` has no effect in mode `lines`", "remove it")


LAST = "`split` cannot be the last block of its chain"
INSIDE = "`split` stands directly in the `process` or `error` chain of a flow, not inside another block"


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        ("process: [{type: split, items: body}]", LAST),
        ("process: [], error: [{type: split, items: body}]", LAST),
        (
            "process: [{type: if, condition: 'true', then: {process: [{type: split, items: body}, {type: log}]}}]",
            INSIDE,
        ),
        ("process: [{type: handle-errors, process: [{type: split, items: body}], error: [{type: log}]}]", INSIDE),
    ],
    ids=["last", "last in the error chain", "inside a sub-flow", "inside a chain"],
)
def test_it_stands_in_the_chain_of_a_flow_and_not_at_its_end(chains, message):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [{{name: main, {chains}}}]")

    assert [problem.message for problem in caught.value.problems] == [message]
