"""octo/runlog/page.py: the HTML page of a run log in a browser."""

from html import escape

import pytest

from browser import in_browser
from octo.runlog.page import page
from octo.runlog.record import Record


def foreach(rounds: int) -> list[Record]:
    """A flow that runs two blocks for each of many elements: four records in each round."""
    records = [Record(1, "flow.started", span_id=1, flow="f")]
    records.append(Record(2, "block.pre-invoke", span_id=2, parent_id=1, path="f.each", block_type="foreach"))
    for n in range(3, 3 + 4 * rounds, 2):
        body = {"number": float(n), "text": "some text of the usual length", "list": [1.0, 2.0]}
        records.append(
            Record(n, "block.pre-invoke", span_id=n, parent_id=2, path="f.each[body].b", block_type="log", body=body)
        )
        records.append(Record(n + 1, "block.post-invoke", span_id=n, duration_ns=1000, body=body | {"more": True}))
    return [*records, Record(len(records) + 1, "flow.completed", span_id=1)]


def each(calls: int) -> list[Record]:
    """So many calls of a flow, one after another."""
    records = []
    for n in range(1, 2 * calls, 2):
        records.append(Record(n, "flow.started", span_id=n, flow="f", body={"row": float(n)}))
        records.append(Record(n + 1, "flow.completed", span_id=n, duration_ns=1000, body=float(n)))
    return records


@pytest.mark.parametrize("records", [foreach(2500), each(5000)], ids=["one long call", "many calls"])
def test_a_page_of_ten_thousand_records_opens_within_a_second(tmp_path, records):
    html = page(records, "run.jsonl")

    assert len(records) >= 10_000
    assert any(in_browser(tmp_path, html, "return performance.now()") < 1000 for _ in range(3))


def test_what_is_closed_in_a_long_log_is_there_when_it_is_opened(tmp_path):
    script = """
        const before = spans().length;
        document.getElementById("open").click();
        return [before, spans().length, tree.querySelectorAll("pre").length, tree.querySelectorAll("script").length];
    """

    assert in_browser(tmp_path, page(foreach(1000), "run.jsonl"), script) == [2, 2002, 4000, 0]


def test_rows_beyond_the_first_of_many_calls_are_there_when_they_are_looked_for(tmp_path):
    script = """
        const before = spans().length;
        find.value = "1999";
        filter();
        return [before, spans().length, [...spans()].filter(span => !span.hidden).length];
    """

    assert in_browser(tmp_path, page(each(1000), "run.jsonl"), script) == [200, 1000, 1]


def test_the_keyboard_reaches_every_row_and_the_search(tmp_path):
    script = """
        const said = [];
        const press = key => {
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
            const row = document.activeElement.closest(".span");
            said.push(row ? row.querySelector(".name").textContent + (row.open ? "+" : "") : document.activeElement.id);
        };
        ["/", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowLeft", "ArrowUp"].forEach(press);
        return said;
    """

    assert in_browser(tmp_path, page(foreach(2), "run.jsonl"), script) == [
        "find",
        "f+",
        "each",
        "each+",
        "b",
        "each+",
        "each",
        "f+",
    ]


def test_the_search_finds_what_rows_hold(tmp_path):
    script = """
        find.value = '"number": 1007';
        filter();
        return [...spans()].filter(span => !span.hidden).map(span => span.querySelector(".name").textContent);
    """

    assert in_browser(tmp_path, page(foreach(1000), "run.jsonl"), script) == ["f", "each", "b"]


def test_a_page_fits_a_narrow_window(tmp_path):
    wide = Record(99, "flow.started", flow="x" * 200, vars={"y" * 200: "z" * 200})
    inside = escape(page([*foreach(3), wide], "run.jsonl"))
    html = f'<body><iframe id="narrow" style="width: 360px; border: 0" srcdoc="{inside}"></iframe></body>'

    script = (
        "const {clientWidth, scrollWidth} = narrow.contentDocument.documentElement; return [clientWidth, scrollWidth]"
    )
    width, needed = in_browser(tmp_path, html, script)

    assert needed == width <= 360
