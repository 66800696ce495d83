"""octo/runlog/tree.py, octo/runlog/words.py, octo/runlog/conversation.py: reading a run log back."""

import random

import pytest

from octo.errors import Location, UsageError
from octo.llm.chat import ChatMessage, ChatRequest, File, Text, user
from octo.runlog import conversation, words
from octo.runlog.record import Record
from octo.runlog.tree import Node, Totals, read, totals, tree

AT = "2026-01-02T03:04:05.00000{}Z"

RUN = [
    Record(1, "flow.started", span_id=1, flow="f", at=AT.format(0)),
    Record(2, "block.pre-invoke", span_id=2, parent_id=1, path="f.ag", block_type="ai-agent", at=AT.format(1)),
    Record(3, "agent.turn_start", span_id=3, parent_id=2, path="f.ag", at=AT.format(2), attrs={"iteration": 1.0}),
    Record(
        4,
        "llm.turn",
        span_id=3,
        duration_ns=1000,
        at=AT.format(3),
        attrs={"iteration": 1.0, "model": "m", "stopReason": "tool_use", "usage": {"promptTokens": 9.0}},
    ),
    Record(5, "agent.tool_call", span_id=5, parent_id=2, at=AT.format(4), attrs={"tool": "t", "input": {"a": 1.0}}),
    Record(6, "block.pre-invoke", span_id=6, parent_id=5, path="f.ag[t].if", block_type="if", at=AT.format(5)),
    Record(7, "block.pre-invoke", span_id=7, parent_id=6, path="f.ag[t].if[then].x", block_type="log", at=AT.format(6)),
    Record(8, "block.post-invoke", span_id=7, duration_ns=10, error="broke", at=AT.format(7)),
    Record(9, "block.post-invoke", span_id=6, duration_ns=20, error='block "x": broke', at=AT.format(7)),
    Record(10, "agent.tool_result", span_id=5, duration_ns=3000, at=AT.format(7), attrs={"tool": "t", "isError": True}),
    Record(11, "agent.guardrail", parent_id=2, at=AT.format(8), attrs={"reason": "model refused"}),
    Record(12, "block.post-invoke", span_id=2, duration_ns=7000, at=AT.format(8)),
    Record(13, "flow.completed", span_id=1, duration_ns=9000, at=AT.format(9)),
]


def outline(records: list[Record]) -> list[tuple[int, str, str, str, str]]:
    return [
        (depth, node.kind, node.name, node.outcome, words.detail(node))
        for root in tree(records)
        for depth, node in root.walk()
    ]


def test_records_are_put_together_again():
    assert outline(RUN) == [
        (0, "flow", "f", "completed", ""),
        (1, "block", "ag", "completed", "ai-agent"),
        (2, "turn", "turn 1", "completed", "m · tool_use"),
        (2, "tool", "t", "failed", '{"a": 1}'),
        (3, "block", "if", "failed", ""),
        (4, "block", "x", "failed", "log · in then"),
        (2, "note", "guardrail", "completed", "model refused"),
    ]


def test_the_order_of_the_lines_does_not_matter():
    shuffled = random.Random(7).sample(RUN, len(RUN))

    assert outline(shuffled) == outline(RUN)


def test_what_never_ended_is_unfinished():
    assert [outcome for *_, outcome, _ in outline(RUN[:7])] == ["unfinished"] * 2 + ["completed"] + ["unfinished"] * 3


def test_an_end_without_its_beginning_stands_alone():
    assert outline([RUN[7]]) == [(0, "block", "", "failed", "")]


def test_it_adds_up():
    assert totals(RUN, tree(RUN)) == Totals(
        records=13,
        turns=1,
        tool_calls=1,
        tokens_read=9,
        tokens_written=None,
        cost=None,
        failures=1,
        seconds=pytest.approx(9e-6, abs=1e-6),
    )


def test_nothing_adds_up_to_nothing():
    assert totals([], []) == Totals(0, 0, 0, None, None, None, 0, 0.0)


def test_what_took_its_time_began_when_its_end_was_told_less_that_time():
    (root,) = tree(RUN)
    tool = root.children[0].children[1]

    assert (tool.ended - tool.began, root.ended - tool.ended) == (
        pytest.approx(3e-6, abs=1e-6),
        pytest.approx(2e-6, abs=1e-6),
    )


def test_a_run_of_any_depth_is_put_together():
    records = [Record(n, "block.pre-invoke", span_id=n, parent_id=n - 1, path="f.b") for n in range(1, 5000)]
    (root,) = tree(records)

    assert [depth for depth, _ in root.walk()] == list(range(4999))


# ---------------------------------------------------------------- files


def test_a_log_is_read(tmp_path):
    file = tmp_path / "run.jsonl"
    file.write_text("\n".join(record.text for record in RUN) + "\n\n", encoding="utf-8")

    assert read(file) == (RUN, [])


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path):
    file = tmp_path / "run.jsonl"
    file.write_text(RUN[0].text + "\n" + RUN[1].text[:-9], encoding="utf-8")

    assert read(file) == (RUN[:1], [])


def test_a_line_that_is_no_record_is_told_and_the_others_are_read(tmp_path):
    file = tmp_path / "run.jsonl"
    file.write_text(f'{RUN[0].text}\n{{"event_id":"e"}}\n{RUN[1].text[:40]}\n{RUN[2].text}\n', encoding="utf-8")

    records, faulty = read(file)

    assert records == [RUN[0], RUN[2]]
    assert faulty == [
        (Location(str(file), 2, 1), "expected a record of a run, an object with `seq` and `kind`"),
        (Location(str(file), 3, 36), "unterminated string starting at"),
    ]


def test_what_a_record_shares_with_an_earlier_one_is_there_after_reading(tmp_path):
    file = tmp_path / "run.jsonl"
    lines = [
        '{"seq":1,"kind":"flow.started","body":[1],"vars":{"a":"x","b":2}}',
        '{"seq":2,"kind":"block.pre-invoke","vars":{"b":3},"same":{"body":1,"vars.a":1}}',
        '{"seq":3,"kind":"block.pre-invoke","same":{"body":2,"vars.a":9}}',
    ]
    file.write_text("\n".join(lines), encoding="utf-8")

    records, _ = read(file)

    assert [(record.body, record.vars) for record in records] == [
        ([1.0], {"a": "x", "b": 2.0}),
        ([1.0], {"a": "x", "b": 3.0}),
        ([1.0], {}),
    ]
    assert [record.text for record in records] == lines


def test_names_with_dots_are_shown_whole():
    paths = ["f.dot.ted", "f.dot.ted[th.en].in.ner"]
    records = [
        Record(1, "flow.started", span_id=1, flow="f"),
        Record(2, "block.pre-invoke", span_id=2, parent_id=1, flow="f", path=paths[0]),
        Record(3, "block.pre-invoke", span_id=3, parent_id=2, flow="f", path=paths[1]),
        Record(4, "block.pre-invoke", span_id=4, parent_id=1, flow="f", path="f[error].a.b"),
        Record(5, "block.post-invoke", flow="f.g", path="f.g.a.b"),
    ]

    assert [(node.branch, node.name) for root in tree(records) for _, node in root.walk()] == [
        ("", "f"),
        ("", "dot.ted"),
        ("th.en", "in.ner"),
        ("", "a.b"),
        ("", "a.b"),
    ]


@pytest.mark.parametrize("content", [b"", b"\n \n"], ids=["nothing", "blank lines"])
def test_a_file_without_records_is_an_error(tmp_path, content):
    file = tmp_path / "run.jsonl"
    file.write_bytes(content)

    with pytest.raises(UsageError) as caught:
        read(file)

    assert caught.value.message == f"`{file}` holds no records"


@pytest.mark.parametrize(
    ("content", "line"), [(b"\xff\xfe\x00", 1), (b"flows:\n", 1), (b"%PDF-1.7\n", 1)], ids=["bytes", "yaml", "pdf"]
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, line):
    file = tmp_path / "app.yaml"
    file.write_bytes(content)

    with pytest.raises(UsageError) as caught:
        read(file)

    assert caught.value.location == Location(str(file), line, 1)
    assert caught.value.message.startswith("this is no run log: ")


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "none.jsonl")

    assert caught.value.message == f"cannot read `{tmp_path / 'none.jsonl'}`: no such file or directory"


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, ""),
        (0.0, "0.00 ms"),
        (0.00001, "0.01 ms"),
        (0.0123, "12.3 ms"),
        (0.25, "250 ms"),
        (1.5, "1.50 s"),
        (61.0, "1 min 1 s"),
    ],
)
def test_a_span_of_time_is_told_as_exactly_as_people_care(seconds, shown):
    assert words.duration(seconds) == shown


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        ({"inputTokens": 1200.0, "outputTokens": 34.0}, "1,200 → 34 tokens"),
        ({"inputTokens": 1.0, "promptTokens": 5.0}, "5 → ? tokens"),
        ({}, ""),
        ("odd", ""),
    ],
    ids=repr,
)
def test_tokens_that_are_unknown_are_not_told_as_zero(usage, shown):
    node = Node(Record(1, "agent.turn_start"), Record(2, "llm.turn", attrs={"usage": usage}))

    assert words.tokens(node) == shown


def test_long_json_is_laid_out_and_short_json_stands_on_one_line():
    assert words.laid_out({"n": 1.0, "t": "ü"}) == '{"n": 1, "t": "ü"}'
    assert words.laid_out(["x" * 40, "y" * 40]) == f'[\n  "{"x" * 40}",\n  "{"y" * 40}"\n]'


# ---------------------------------------------------------------- conversations


def test_files_are_told_without_their_content():
    turn = user("look", File("image/png", b"12345", "a.png"), File("text/plain", b""))

    assert conversation.turn(turn) == {
        "role": "user",
        "text": "look",
        "files": [{"mimeType": "image/png", "name": "a.png", "size": 5}, {"mimeType": "text/plain", "size": 0}],
    }


def test_a_message_whose_files_were_taken_out_since_is_not_told_again():
    first = user("look", File("image/png", b"12345"))
    answer = ChatMessage("assistant", (Text("ok"),))
    more = user("and now?")
    request = ChatRequest((first.without_files(), answer, more))

    assert conversation.asked(request, (first, answer)) == {
        "earlier": 2,
        "messages": [{"role": "user", "text": "and now?"}],
    }


def test_a_conversation_that_was_shortened_is_told_from_where_it_changed():
    old, summary, last = user("old"), user("summary"), user("last")

    assert conversation.asked(ChatRequest((summary, last), system="s"), (old, last)) == {
        "system": "s",
        "messages": [{"role": "user", "text": "summary"}, {"role": "user", "text": "last"}],
    }


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("", None), ('{"a": 1}', {"a": 1.0}), ("plain", "plain"), ("[" * 40000, "[" * 40000)],
    ids=["empty", "json", "text", "large"],
)
def test_arguments_are_told_as_what_they_mean_if_they_are_json(text, meaning):
    assert conversation.decoded(text) == meaning
