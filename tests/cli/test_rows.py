"""octo_cli/rows.py: JSON lines and CSV, row by row."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import UsageError
from octo.values import dumps
from octo_cli import rows
from octo_cli.rows import Row


def read(path: Path, content: bytes, *, raw: bool = False) -> list[Row]:
    path.write_bytes(content)
    with rows.opened(str(path), raw=raw) as batches:
        return [row for batch in batches for row in batch]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", []),
        (b"\n \n", []),
        (b'{"a": 1}\n[2]\n"x"\nnull', [(1, 1, {"a": 1.0}), (2, 2, [2.0]), (3, 3, "x"), (4, 4, None)]),
        (b"\xef\xbb\xbf1\r\n2\r\n", [(1, 1, 1.0), (2, 2, 2.0)]),
        (b"\n1\n\n2\n", [(1, 2, 1.0), (2, 4, 2.0)]),
        ('"é日🎈\u2028"\n'.encode(), [(1, 1, "é日🎈\u2028")]),
    ],
    ids=["nothing", "blank lines only", "any value", "from Windows", "blank lines between", "line breaks of Unicode"],
)
def test_each_line_of_json_is_a_row(tmp_path: Path, content: bytes, found: list[tuple[int, int, object]]) -> None:
    assert read(tmp_path / "rows.jsonl", content) == [Row(*row) for row in found]


@pytest.mark.parametrize(
    ("line", "text", "fault"),
    [
        (b'{"a": }', '{"a": }', "expecting value at column 7"),
        (b"NaN", "NaN", "`NaN` is not JSON"),
        (b"1e999", "1e999", "a number is out of the range of doubles"),
        ("é".encode(), "é", "expecting value at column 1"),
        (b"1 2\r", "1 2", "extra data at column 3"),
    ],
    ids=["broken off", "not a number", "too large", "no text", "two values"],
)
def test_a_line_that_is_no_json_is_a_row_with_a_fault(tmp_path: Path, line: bytes, text: str, fault: str) -> None:
    assert read(tmp_path / "rows.jsonl", b"1\n" + line + b"\n2\n") == [
        Row(1, 1, 1.0),
        Row(2, 2, text, f"the row is not valid JSON: {fault}"),
        Row(3, 3, 2.0),
    ]


@pytest.mark.parametrize("raw", [False, True], ids=["JSON", "raw"])
@pytest.mark.parametrize("end", [b"\n2\n", b""], ids=["in the middle", "at the end"])
def test_a_line_that_is_too_long_is_a_row_with_a_fault(tmp_path: Path, raw: bool, end: bytes) -> None:
    fault = "the row is longer than 64 MB: each row stands on a line of its own"
    after = [Row(3, 3, "2" if raw else 2.0)] if end else []

    assert read(tmp_path / "rows.jsonl", b"1\n" + b"x" * 64_000_001 + end, raw=raw) == [
        Row(1, 1, "1" if raw else 1.0),
        Row(2, 2, None, fault),
        *after,
    ]


def test_raw_lines_are_taken_as_text(tmp_path: Path) -> None:
    assert read(tmp_path / "rows.txt", b"a,b\r\n\n{c\n", raw=True) == [Row(1, 1, "a,b"), Row(2, 3, "{c")]


@settings(max_examples=30)
@given(st.lists(st.text(max_size=40).map(lambda text: text * 2000), max_size=6))
def test_lines_longer_than_one_read_stay_whole(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    content = "".join(f"{dumps(text)}\n" for text in texts).encode("utf-8", errors="replace")

    found = read(tmp_path_factory.mktemp("rows") / "rows.jsonl", content)

    assert [dumps(row.value) for row in found] == content.decode().split("\n")[:-1]


def test_a_pipe_gives_what_is_there_without_waiting_for_more(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    with rows.opened(str(pipe)) as batches:
        os.write(writer, b"1\n2\n3")
        assert next(batches) == [Row(1, 1, 1.0), Row(2, 2, 2.0)]
        os.write(writer, b"4\n")
        assert next(batches) == [Row(3, 3, 34.0)]
    os.close(writer)


# ---------------------------------------------------------------- CSV


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", []),
        (b"a,b\n", []),
        (b"a,b\n1,\n", [(1, 2, {"a": "1", "b": ""})]),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n\r\n3,4", [(1, 2, {"a": "1", "b": "2"}), (2, 4, {"a": "3", "b": "4"})]),
        (
            b'a\n"x\ny"\n"he said ""no"""\n',
            [(1, 2, {"a": "x\ny"}), (2, 4, {"a": 'he said "no"'})],
        ),
    ],
    ids=["nothing", "only names", "an empty field", "from a spreadsheet", "quotes"],
)
def test_the_first_row_of_csv_names_the_columns(
    tmp_path: Path, content: bytes, found: list[tuple[int, int, object]]
) -> None:
    assert read(tmp_path / "rows.CSV", content) == [Row(*row) for row in found]


@pytest.mark.parametrize(
    ("line", "value", "fault"),
    [
        (b"1", ["1"], "expected 2 fields as in the first row, found 1"),
        (b"1,2,3", ["1", "2", "3"], "expected 2 fields as in the first row, found 3"),
        (b'"1"x,2', None, "the row is not valid CSV: ',' expected after '\"'"),
    ],
    ids=["too short", "too long", "text after a quote"],
)
def test_a_row_of_csv_that_does_not_fit_is_a_row_with_a_fault(
    tmp_path: Path, line: bytes, value: object, fault: str
) -> None:
    assert read(tmp_path / "rows.csv", b"a,b\n" + line + b"\n1,2\n") == [
        Row(1, 2, value, fault),
        Row(2, 3, {"a": "1", "b": "2"}),
    ]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            b'a,b\n"1,2\n3,4\n5,6',
            [
                Row(1, 2, None, "the row is not valid CSV: the quote that opens in line 2 is not closed"),
                Row(2, 3, {"a": "3", "b": "4"}),
                Row(3, 4, {"a": "5", "b": "6"}),
            ],
        ),
        (
            b'a,b\n"1\n2","x\n3,4\n',
            [
                Row(1, 2, None, "the row is not valid CSV: the quote that opens in line 3 is not closed"),
                Row(2, 4, {"a": "3", "b": "4"}),
            ],
        ),
        (
            b'a,b\n"1,2\n' + (b"3," + b"4" * 99_997 + b"\n") * 120,
            [
                Row(1, 2, None, "the row is not valid CSV: the quote that opens in line 2 is not closed"),
                *(Row(number, number + 1, {"a": "3", "b": "4" * 99_997}) for number in range(2, 122)),
            ],
        ),
        (
            b"a,b\n" + b"1" * 30_000_000 + b",2\n3,4\n",
            [
                Row(1, 2, None, "the row is not valid CSV: it is longer than 10 MB"),
                Row(2, 3, {"a": "3", "b": "4"}),
            ],
        ),
        (b"a;b\n1;2,5\n", [Row(1, 2, {"a": "1", "b": "2,5"})]),
        (b"a;b,c\n1,2\n", [Row(1, 2, {"a;b": "1", "c": "2"})]),
    ],
    ids=["up to the end", "in a later line", "a large file", "one long line", "semicolons", "a semicolon in a name"],
)
def test_one_bad_row_of_csv_costs_no_other(tmp_path: Path, content: bytes, found: list[Row]) -> None:
    assert read(tmp_path / "rows.csv", content) == found


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ("a,", "but column 2 has no name"),
        ("a,b,a", "but two have the name `a`"),
        ('"a"b', "but is not valid CSV: ',' expected after '\"'"),
    ],
    ids=["no name", "twice", "no CSV"],
)
def test_columns_need_names(tmp_path: Path, header: str, error: str) -> None:
    path = tmp_path / "rows.csv"

    with pytest.raises(UsageError) as caught:
        read(path, f"{header}\n1,2,3\n".encode())

    assert caught.value.message == f"`--each`: the first row of `{path}` names the columns, {error}"


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("name", "reason"), [("none.jsonl", "no such file or directory"), (".", "is a directory")], ids=["none", "a folder"]
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError) as caught, rows.opened(name):
        pass

    assert caught.value.message == f"`--each`: cannot read `{name}`: {reason}"


def test_rows_of_csv_are_no_raw_content() -> None:
    with pytest.raises(UsageError) as caught, rows.opened("rows.csv", raw=True):
        pass

    assert caught.value.message == "`--content-type` takes lines as they are, the rows of a CSV file are mappings"


def test_a_tab_separates_the_columns_of_a_tsv_file(tmp_path: Path) -> None:
    assert read(tmp_path / "rows.TSV", b"a\tb,c\n1\t2\n") == [Row(1, 2, {"a": "1", "b,c": "2"})]


def test_csv_that_is_taken_for_json_lines_is_told_in_its_first_row(tmp_path: Path) -> None:
    fault = "the row is not valid JSON: expecting value at column 1"
    told = f"{fault}; CSV is read from a file whose name ends in `.csv` or `.tsv`"
    assert read(tmp_path / "rows.txt", b"a,b\nc,d\n") == [Row(1, 1, "a,b", told), Row(2, 2, "c,d", fault)]
