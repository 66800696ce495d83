"""octo/runlog/page.py: the HTML page of a run log."""

import re
from html.parser import HTMLParser

import pytest

import fake_model
from fake_model import TOOL, call, reply
from octo.runlog.page import page
from octo.runlog.record import Record
from octo.runlog.recorder import Recorder
from octo.testing.harness import runtime

VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """Checks that elements are closed in order, and keeps what a reader sees of rows and parts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.text += data

    def shows(self, *words: str) -> bool:
        """Whether these words stand on the page, in this order."""
        return re.search(".*".join(map(re.escape, words)), " ".join(self.text.split())) is not None


def chain(length: int, deep: bool = False) -> list[Record]:
    """A flow with so many blocks, one after another or one inside the other."""
    records = [Record(1, "flow.started", span_id=1, flow="f")]
    for n in range(2, length + 2):
        parent = n - 1 if deep else 1
        records.append(Record(n, "block.pre-invoke", span_id=n, parent_id=parent, path="f.b", body=f"<b>{n}</b>"))
    return records


async def test_an_agent_is_shown_with_its_conversation():
    records: list[Record] = []
    first = reply("I look.", call("t", {"n": 1}), thinking="hm")
    await fake_model.run(TOOL, first, reply("done"), body={"q": 1.0}, observers=[Recorder([records.append])])

    shown = Page(page(records, "run.jsonl"))

    assert shown.shows("f", "completed", "run.jsonl", "Model calls", "2", "Tool calls", "1", "Failures", "0")
    assert shown.shows("block", "ag", "ai-agent", "model", "turn 1", "fake · tool_use")
    assert shown.shows(
        "System", "Tools (1)", "t: A tool.", "User", 'as JSON: {"q":1}', "Reasoning hm", "Answer I look.", "Calls t"
    )
    assert shown.shows("tool", "t", '{"n": 1}', "Arguments", '{"n": 1}', "Result", '{"done": {"n": 1}}')
    assert shown.shows("turn 2", "2 earlier messages, shown in the calls before", "Result of t", "Answer done")


async def test_blocks_are_shown_with_their_message_before_and_after():
    records: list[Record] = []
    text = """
        flows:
          - name: main
            process:
              - {type: set-variable, settings: {name: v, value: body}}
              - {type: set-payload, name: next, settings: {value: '{"is": body}'}}
              - {type: set-payload, name: broken, settings: {value: body.none}}
            error:
              - {type: log, settings: {message: body}}
    """
    async with runtime(text, observers=[Recorder([records.append])]) as octo:
        await octo.invoke("main", "<i>")

    shown = Page(page(records, "run.jsonl"))

    assert shown.shows("set-variable", "Body <i>", 'Variables after {"v": "<i>"}')
    assert shown.shows("next", "set-payload", "Body before <i>", 'Body after {"is": "<i>"}')
    assert shown.shows("broken", "failed", "Error set-payload value: evaluate expression: no such key: none")
    assert shown.shows("Failures", "1")


def test_a_page_needs_nothing_else():
    html = page(chain(2000), "run.jsonl")

    assert not [value for name, value in Page(html).attributes if name in ("src", "href", "srcset", "data", "action")]
    assert "url(" not in html
    assert "default-src 'none'" in html


@pytest.mark.parametrize("deep", [False, True], ids=["side by side", "one inside the other"])
@pytest.mark.parametrize("length", [10, 2000], ids=["short", "long"])
def test_what_a_message_holds_is_never_taken_for_markup(length, deep):
    html = page(chain(length, deep), "</title><script>alert(1)</script>")

    assert html.count("&lt;b&gt;2&lt;/b&gt;") == 1
    assert "<b>" not in html
    assert "<script>alert" not in html
    Page(html)


def test_control_characters_are_spelt_out():
    records = [Record(1, "flow.started", flow="f\x1b[2J", body="a\x00b\n\x1b[31m")]

    html = page(records, "run\x07.jsonl")
    assert re.findall("[\x00-\x08\x0b-\x1f]", html) == []
    assert Page(html).shows("f\\u001b[2J", "run\\u0007.jsonl")


def test_a_log_that_nobody_wrote_like_this_is_shown_as_well_as_it_can():
    records = [
        Record(1, "llm.turn", attrs={"iteration": "x", "input": ["odd"], "output": 1.0, "usage": []}),
        Record(2, "llm.turn", attrs={"input": {"messages": [1.0, {"text": {"a": 1.0}}], "earlier": "x", "tools": 3.0}}),
        Record(3, "agent.tool_call", attrs={"tool": {"a": 1.0}}),
        Record(4, "source.receive", at="yesterday", attrs={"reason": [1.0]}),
    ]

    assert Page(page(records, "run.jsonl")).shows('turn "x"', '{"a": 1}', "event", "source.receive")


def test_a_body_that_stays_stands_on_the_page_once():
    body = {"text": "x" * 300}
    records = [
        Record(1, "flow.started", span_id=1, flow="f", body=body),
        Record(2, "block.pre-invoke", span_id=2, parent_id=1, flow="f", path="f.a", body=body, same={"body": 1}),
        Record(3, "block.post-invoke", span_id=2, flow="f", path="f.a", body=body, same={"body": 1}),
        Record(4, "block.pre-invoke", span_id=4, parent_id=1, flow="f", path="f.b", body=body, same={"body": 1}),
        Record(5, "block.post-invoke", span_id=4, flow="f", path="f.b", body="new"),
        Record(6, "flow.completed", span_id=1, flow="f", body="new"),
    ]

    text = page(records, "run.jsonl")

    assert text.count("x" * 300) == 1
    assert text.count("(the same as in record 1 of the log)") == 2
