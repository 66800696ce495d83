"""octo/runlog/recorder.py: records of a run while it goes, each in its place, and how they are written."""

import asyncio
import io
import json

import pytest

from octo.errors import OctoError
from octo.message import Dropped
from octo.runlog.record import Record
from octo.runlog.recorder import Writer
from octo.testing import harness
from octo.testing.harness import runtime
from recorded import outline, plain, recorder, records_of

# ---------------------------------------------------------------- flows and blocks


async def test_flows_and_blocks_are_told_with_what_went_in_and_came_out():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - type: set-variable
                settings: {name: seen, value: 'true'}
              - type: set-payload
                name: double
                settings: {value: body.n * 2}
        """,
        {"n": 2},
    )

    assert [plain(record) for record in records] == [
        {"seq": 1, "kind": "flow.started", "spanId": 1, "flow": "main", "body": {"n": 2}},
        {
            "seq": 2,
            "kind": "block.pre-invoke",
            "spanId": 2,
            "parentId": 1,
            "flow": "main",
            "path": "main.set-variable",
            "blockType": "set-variable",
            "body": {"n": 2},
        },
        {
            "seq": 3,
            "kind": "block.post-invoke",
            "spanId": 2,
            "flow": "main",
            "path": "main.set-variable",
            "blockType": "set-variable",
            "body": {"n": 2},
            "vars": {"seen": True},
        },
        {
            "seq": 4,
            "kind": "block.pre-invoke",
            "spanId": 4,
            "parentId": 1,
            "flow": "main",
            "path": "main.double",
            "blockType": "set-payload",
            "body": {"n": 2},
            "vars": {"seen": True},
        },
        {
            "seq": 5,
            "kind": "block.post-invoke",
            "spanId": 4,
            "flow": "main",
            "path": "main.double",
            "blockType": "set-payload",
            "body": 4,
            "vars": {"seen": True},
        },
        {"seq": 6, "kind": "flow.completed", "spanId": 1, "flow": "main", "body": 4, "vars": {"seen": True}},
    ]
    assert {record.trace_id for record in records} == {record.event_id for record in records} != {""}
    assert [record.at[-7:] for record in records] == [f"00000{n}Z" for n in range(6)]
    assert all((record.duration_ns is None) == record.begins for record in records)


async def test_a_failure_is_told_of_every_block_and_flow_that_it_ends():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - type: if
                condition: 'true'
                then:
                  process:
                    - type: set-payload
                      name: price
                      settings: {value: body.price}
        """,
        {},
    )

    cause = "set-payload value: evaluate expression: no such key: price"
    assert [(record.kind, record.path, record.error) for record in records if record.error] == [
        ("block.post-invoke", "main.if[then].price", cause),
        ("block.post-invoke", "main.if", f'block "price": {cause}'),
        ("flow.failed", "", f'block "if": block "price": {cause}'),
    ]


async def test_a_recovered_failure_leaves_the_flow_completed():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - {type: set-payload, name: price, settings: {value: body.price}}
            error:
              - {type: set-payload, name: sorry, settings: {value: '"sorry"'}}
        """,
        {},
    )

    assert outline(records) == ["flow main", "  block price: failed", "  block sorry"]
    assert records[-1].kind == "flow.completed"


async def test_a_message_that_is_filtered_out_is_told():
    records: list[Record] = []
    text = """
        flows:
          - name: main
            process:
              - {type: aggregate, correlation: body, completionSize: '9', maxGroups: 1, onOverflow: drop}
              - {type: log, settings: {message: body}}
    """
    async with runtime(text, observers=[recorder(records)]) as octo:
        await octo.invoke("main", "first group")
        with pytest.raises(Dropped):
            await octo.invoke("main", "second group")

    assert [(record.kind, record.dropped, record.error) for record in records[-2:]] == [
        ("block.post-invoke", True, ""),
        ("flow.dropped", True, ""),
    ]


async def test_flows_that_are_called_lie_inside_the_block_that_calls_them_and_have_its_trace():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - {type: flow-ref, settings: {flow: other}}
          - name: other
            process:
              - {type: set-payload, settings: {value: '1'}}
        """
    )

    assert outline(records) == ["flow main", "  block flow-ref", "    flow other", "      block set-payload"]
    assert len({record.trace_id for record in records}) == 1
    assert [record.flow for record in records] == ["main", "main", "other", "other", "other", "other", "main", "main"]


async def test_branches_that_run_at_the_same_time_keep_their_blocks_apart():
    branches = "".join(
        f"""
                  - name: b{n}
                    process:
                      - {{type: enrich, name: outer{n}, setBody: body, body: {{process: [
                          {{type: set-payload, name: inner{n}, settings: {{value: '{n}'}}}}]}}}}"""
        for n in range(3)
    )
    records = await records_of(
        f"""
        flows:
          - name: main
            process:
              - type: fork
                branches: {branches}
        """
    )

    assert outline(records) == [
        "flow main",
        "  block fork",
        *[line for n in range(3) for line in (f"    block outer{n}", f"      block inner{n}")],
    ]


async def test_messages_that_a_block_sends_on_their_way_belong_to_it_also_when_it_is_done():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - {type: split, name: cut, settings: {items: body}}
              - {type: set-variable, name: note, settings: {name: it, value: body}}
        """,
        [1.0, 2.0],
    )

    assert outline(records) == ["flow main", "  block cut", *["    flow main", "      block note"] * 2]
    assert len({record.trace_id for record in records}) == 1
    assert len({record.event_id for record in records}) == 3


async def test_calls_from_outside_are_apart_even_when_they_run_at_the_same_time():
    records: list[Record] = []
    text = """
        flows:
          - name: main
            process:
              - {type: fork, branches: [{process: [{type: set-payload, settings: {value: body}}]}]}
    """
    async with runtime(text, observers=[recorder(records)]) as octo:
        await asyncio.gather(octo.invoke("main", 1), octo.invoke("main", 2))

    one = ["flow main", "  block fork", "    block set-payload"]
    assert outline(records) == one + one
    assert len({record.trace_id for record in records}) == 2


async def test_what_is_cancelled_is_told_as_interrupted():
    records: list[Record] = []
    text = """
        flows:
          - name: main
            process:
              - {type: python, name: wait, settings: {file: wait.py, function: wait}}
    """
    files = {"wait.py": "import asyncio\n\nasync def wait(body):\n    await asyncio.sleep(9)\n"}
    async with runtime(text, files=files, observers=[recorder(records)]) as octo:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await octo.invoke("main")

    assert [(record.kind, record.error) for record in records[-2:]] == [
        ("block.post-invoke", "interrupted"),
        ("flow.failed", "interrupted"),
    ]


async def test_two_recorders_of_one_runtime_do_not_disturb_each_other():
    first: list[Record] = []
    second: list[Record] = []
    text = "flows: [{name: main, process: [{type: set-payload, settings: {value: '1'}}]}]"
    async with runtime(text, observers=[recorder(first), recorder(second)]) as octo:
        await octo.invoke("main")

    assert outline(first) == outline(second) == ["flow main", "  block set-payload"]


# ---------------------------------------------------------------- payloads


async def test_bodies_beyond_the_limit_are_left_out():
    records = await records_of("flows: [{name: main}]", "x" * 100, limit=99)

    assert [plain(record) for record in records] == [
        {"seq": 1, "kind": "flow.started", "spanId": 1, "flow": "main", "truncated": True},
        {"seq": 2, "kind": "flow.completed", "spanId": 1, "flow": "main", "truncated": True},
    ]


async def test_secrets_never_reach_a_record():
    records: list[Record] = []
    text = """
        env: [{name: API_KEY}]
        flows:
          - name: main
            process:
              - {type: set-variable, settings: {name: key, value: env.API_KEY}}
              - {type: set-payload, settings: {value: 'body[env.API_KEY]'}}
    """
    secret = 's3cret"value'
    mask = harness.config(text, environ={"API_KEY": secret}).environment.mask
    async with runtime(text, environ={"API_KEY": secret}, observers=[recorder(records, mask=mask)]) as octo:
        with pytest.raises(OctoError):
            await octo.invoke("main", {"a": [f"<{secret}>"]})

    assert records[0].body == {"a": ["<***>"]}
    assert records[-1].error.endswith("no such key: ***")
    assert not any("s3cret" in record.text for record in records)


async def test_a_value_that_has_no_json_form_does_not_disturb_the_run():
    records: list[Record] = []
    async with runtime("flows: [{name: main}]", observers=[recorder(records)]) as octo:
        await octo.invoke("main", vars={"odd": object()})

    assert [(record.kind, record.truncated, record.vars) for record in records] == [
        ("flow.started", True, {}),
        ("flow.completed", True, {}),
    ]


# ---------------------------------------------------------------- writing


def test_a_writer_writes_each_record_at_once():
    class Stream(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    stream = Stream()
    writer = Writer(stream)
    writer(Record(seq=1, kind="a"))
    writer(Record(seq=2, kind="b"))

    assert stream.getvalue() == '{"seq":1,"kind":"a"}\n{"seq":2,"kind":"b"}\n'
    assert (stream.flushed, writer.error) == (2, None)


def test_a_writer_that_cannot_write_keeps_the_reason_and_stays_silent():
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    writer = Writer(Full())
    writer(Record(seq=1, kind="a"))
    writer(Record(seq=2, kind="b"))

    assert str(writer.error) == "[Errno 28] No space left on device"


LONG = "x" * 300


async def test_a_long_body_or_variable_that_stays_is_written_once():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - {type: set-variable, name: keep, settings: {name: kept, value: body.text}}
              - {type: set-variable, name: short, settings: {name: n, value: '1'}}
              - {type: set-payload, name: new, settings: {value: '"new"'}}
        """,
        {"text": LONG},
    )

    body = {"text": LONG}
    written = [json.loads(record.text) for record in records]
    assert [(parts.get("body"), parts.get("vars"), parts.get("same")) for parts in written] == [
        (body, None, None),
        (None, None, {"body": 1}),
        (None, {"kept": LONG}, {"body": 1}),
        (None, None, {"body": 1, "vars.kept": 3}),
        (None, {"n": 1}, {"body": 1, "vars.kept": 3}),
        (None, {"n": 1}, {"body": 1, "vars.kept": 3}),
        ("new", {"n": 1}, {"vars.kept": 3}),
        ("new", {"n": 1}, {"vars.kept": 3}),
    ]
    assert [record.body for record in records] == [body] * 6 + ["new"] * 2
    assert [dict(record.vars) for record in records[3:5]] == [{"kept": LONG}, {"kept": LONG, "n": 1.0}]


async def test_what_is_the_same_again_is_masked_as_before():
    records = await records_of(
        "flows: [{name: main, process: [{type: log, settings: {message: '1'}}]}]",
        [LONG, "s3cret"],
        mask=lambda text: text.replace("s3cret", "***"),
    )

    assert [record.body for record in records] == [[LONG, "***"]] * 4
    assert [record.same for record in records] == [{}, *[{"body": 1}] * 3]


async def test_what_was_too_large_is_not_referred_to():
    records = await records_of(
        "flows: [{name: main, process: [{type: log, settings: {message: '1'}}]}]", [LONG], limit=300
    )

    assert [(record.body, record.truncated, record.same) for record in records] == [(None, True, {})] * 4


async def test_the_log_of_a_loop_does_not_repeat_what_stays():
    text = """
    flows:
      - name: main
        process:
          - type: set-variable
            settings: {name: all, value: body}
          - type: foreach
            settings:
              items: '[1, 2, 3, 4]'
              body: {process: [{type: set-payload, settings: {value: 'vars.all.size()'}}]}
    """

    records = await records_of(text, [LONG] * 50)

    assert sum(len(record.text) for record in records) < 2.5 * 50 * len(LONG)
