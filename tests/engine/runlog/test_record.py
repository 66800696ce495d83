"""octo/runlog/record.py: the format of a record."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octo.runlog.record import Record, instant

WHOLE = Record(
    seq=3,
    kind="block.post-invoke",
    trace_id="t",
    span_id=2,
    parent_id=1,
    event_id="e",
    correlation_id="c",
    flow="f",
    path="f.b",
    block_type="set-payload",
    at="2026-01-02T03:04:05.000006Z",
    duration_ns=0,
    error="broke",
    dropped=True,
    body={"b": 1.0, "a": "ü"},
    vars={"v": True},
    truncated=True,
    attrs={"n": None},
)
LINE = (
    '{"seq":3,"kind":"block.post-invoke","traceId":"t","spanId":2,"parentId":1,"eventId":"e","correlationId":"c",'
    '"flow":"f","path":"f.b","blockType":"set-payload","at":"2026-01-02T03:04:05.000006Z","durationNs":0,'
    '"error":"broke","dropped":true,"body":{"a":"ü","b":1},"vars":{"v":true},"truncated":true,"attrs":{"n":null}}'
)


def test_a_record_is_one_line_of_json_in_a_fixed_order():
    assert WHOLE.text == LINE


def test_what_is_empty_is_left_out():
    assert Record(seq=1, kind="flow.started").text == '{"seq":1,"kind":"flow.started"}'


@pytest.mark.parametrize("body", [0.0, False, "", [], {}], ids=repr)
def test_a_body_is_left_out_only_when_it_is_null(body):
    assert Record.parse(Record(seq=1, kind="k", body=body).text).body == body


def test_a_line_is_read_back_as_the_record_that_it_was():
    assert Record.parse(LINE) == WHOLE


def test_fields_that_a_later_version_added_are_no_fault():
    assert Record.parse('{"seq":1,"kind":"k","colour":"red"}') == Record(seq=1, kind="k")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[]", "expected a record of a run, an object with `seq` and `kind`"),
        ('{"seq":1}', "expected a record of a run, an object with `seq` and `kind`"),
        ('{"seq":"1","kind":"k"}', '`seq` of a record is a whole number, found `"1"`'),
        ('{"seq":1.5,"kind":"k"}', "`seq` of a record is a whole number, found `1.5`"),
        ('{"seq":true,"kind":"k"}', "`seq` of a record is a whole number, found `true`"),
        ('{"seq":1,"kind":null}', "`kind` of a record is text, found `null`"),
        ('{"seq":1,"kind":"k","dropped":1}', "`dropped` of a record is true or false, found `1`"),
        ('{"seq":1,"kind":"k","vars":[]}', "`vars` of a record is an object, found `[]`"),
    ],
)
def test_a_line_that_is_no_record_is_refused(line, fault):
    with pytest.raises(ValueError) as caught:
        Record.parse(line)

    assert str(caught.value) == fault


json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json, st.dictionaries(st.text(), json, max_size=3))
def test_whatever_a_message_holds_is_written_on_one_line_and_read_back(body, variables):
    record = Record(seq=1, kind="k", body=body, vars=variables)

    assert "\n" not in record.text
    assert Record.parse(record.text).text == record.text


# ---------------------------------------------------------------- limits and secrets


def test_a_body_beyond_the_limit_is_left_out_whole():
    assert Record(seq=1, kind="k", body="ü" * 60, vars={"a": 1.0}).within(100) == Record(
        seq=1, kind="k", vars={"a": 1.0}, truncated=True
    )


def test_variables_beyond_the_limit_are_left_out_whole():
    assert Record(seq=1, kind="k", body="b", vars={"a": "x" * 100}).within(100) == Record(
        seq=1, kind="k", body="b", truncated=True
    )


def test_other_texts_beyond_the_limit_are_cut():
    record = Record(seq=1, kind="k", attrs={"input": {"messages": [{"text": "x" * 200}]}, "tool": "t"})

    assert record.within(100) == Record(
        seq=1, kind="k", attrs={"input": {"messages": [{"text": "x" * 100 + "…"}]}, "tool": "t"}, truncated=True
    )


def test_a_record_whose_parts_fit_is_left_as_it_is():
    record = Record(seq=1, kind="k", body="x" * 90, vars={"a": "y" * 80})

    assert record.within(100) is record


def test_secrets_are_hidden_wherever_they_stand():
    def mask(text):
        return text.replace("s3cret", "***").replace("123456", "***")

    record = Record(
        seq=1,
        kind="k",
        correlation_id="s3cret",
        flow="s3cret",
        path="s3cret.b",
        error="no s3cret",
        body={"s3cret": ["a s3cret", 123456.0, 7.0]},
        vars={"v": "s3cret"},
        attrs={"input": "s3cret"},
    )

    assert record.masked(mask) == Record(
        seq=1,
        kind="k",
        correlation_id="***",
        flow="***",
        path="***.b",
        error="no ***",
        body={"***": ["a ***", "***", 7.0]},
        vars={"v": "***"},
        attrs={"input": "***"},
    )


def test_a_point_in_time_is_told_to_the_microsecond():
    assert instant(1_700_000_000_000_001_999) == "2023-11-14T22:13:20.000001Z"


@pytest.mark.parametrize(
    "large",
    [["x" * 101, object()], [object()] * 101, {"a": {"b" * 101: object()}}, [[[object()] * 20] * 20]],
    ids=["a text", "a list", "a key", "much that is small"],
)
def test_what_is_surely_too_large_is_not_even_written(large):
    """An object that has no JSON would be noticed."""
    record = Record(1, "flow.started", body=large, vars={"v": large}).within(100)

    assert record == Record(1, "flow.started", truncated=True)
