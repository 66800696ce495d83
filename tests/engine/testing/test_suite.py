"""octo/testing/suite.py: what a suite may say, and how what is wrong with it is reported."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from octo.errors import ConfigError
from octo.testing.suite import read_suite


def problems(folder: Path, text: str | bytes) -> list[tuple[str, str | None]]:
    """What is wrong with a suite: line and column with the text, and the hint."""
    file = folder / "a_test.yaml"
    file.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
    with pytest.raises(ConfigError) as caught:
        read_suite(file)
    found = []
    for problem in caught.value.problems:
        place = problem.location
        where = f"{place.line}:{place.column} " if place else ""
        found.append((f"{where}{problem.message}", problem.hint))
    return found


def messages(folder: Path, text: str) -> list[str]:
    return [message for message, _ in problems(folder, text)]


def test_a_suite_says_what_all_cases_share_and_what_each_expects(tmp_path):
    (tmp_path / "a_test.yaml").write_text(
        """
        x-note: anything
        flow: quote
        inputs: { pair: { data: { qty: 2 }, vars: { region: eu } } }
        mocks: { quote.price: { default: { body: { unit: 4 } } } }
        models: { claude: [ { text: hello } ] }
        env: { CITY: Oslo }
        timeout: 5s
        cases:
          - name: whole
            x-ticket: 7
            input: pair
            mocks: { quote.price: null }
            models: { claude: null }
            env: { CITY: Bergen }
            expect: { body: { total: 8 }, vars: { status: 200 }, that: [ 'true' ] }
            spies: { quote.price: { count: 1, records: [ { input: { body: 1 }, error: gone } ] } }
            tools: [ { name: t, args: { a: 1 }, count: 0, block: quote.agent } ]
            sent: { quote.agent: { count: 1, records: [ { that: [ 'true' ] } ] } }
            log: [ { kind: llm.turn, path: quote.agent, that: [ 'true' ], count: 2 } ]
            timeout: 1s
            skip: later
          - { name: bare }
        """,
        encoding="utf-8",
    )

    suite = read_suite(tmp_path / "a_test.yaml").value

    whole, bare = suite.cases
    assert (suite.flow, suite.timeout.seconds, suite.env) == ("quote", 5.0, {"CITY": "Oslo"})
    assert (whole.input, whole.skip, whole.expect.body, whole.needs_records) == ("pair", "later", {"total": 8}, True)
    assert (bare.input, bare.timeout, bare.needs_records) == (None, None, False)


def test_all_problems_of_a_suite_are_reported_at_their_places(tmp_path):
    text = """\
        flow: quote
        caes: []
        mocks:
          quote.price: { defualt: { body: 1 } }
        cases:
          - nam: one
          - name: two
            expct: { body: 1 }
            input: pare
            mocks: { quote.nothing: null }
          - name: two
            expect: { body: 1, dropped: true }
    """

    assert problems(tmp_path, text) == [
        ('2:1 parse suite: unknown field "caes" in the suite', "did you mean `cases`?"),
        ('4:18 parse suite: unknown field "defualt" in `quote.price`', "did you mean `default`?"),
        ('6:5 parse suite: unknown field "nam" in an entry of `cases`', "did you mean `name`?"),
        ('8:5 parse suite: unknown field "expct" in an entry of `cases`', "did you mean `expect`?"),
        ('9:12 parse suite: there is no input "pare" (inputs: none)', "add it under `inputs`"),
        (
            '10:14 parse suite: null takes the file\'s mock "quote.nothing" away, but the file has none',
            "known names: `quote.price`",
        ),
        ('11:11 parse suite: two cases are called "two"', "give one of them another name"),
        (
            "12:15 parse suite: `body` cannot be expected together with `dropped`",
            "a flow completes with a message, filters it out, or fails",
        ),
    ]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("{ input: none }", ['there is no input "none" (inputs: pair)']),
        ("{ input: 7 }", ["expected an input, found a number"]),
        ("{ input: { dat: 1 } }", ['unknown field "dat" in `input`']),
        ("{ timeout: soon }", ["expected a duration, found `soon`"]),
        ("{ timeout: 5 }", ["expected a duration, found a number"]),
        ("{ timeout: 0s }", ["expected a time limit of more than 0, found `0s`"]),
        ("{ env: { N: 1 } }", ["`N`: expected text, found the number 1"]),
        ("{ expect: { body: 1, error: x } }", ["`body` cannot be expected together with `error`"]),
        ("{ expect: { error: x, dropped: true } }", ["`error` cannot be expected together with `dropped`"]),
        ("{ expect: { that: 'body' } }", ["`that`: expected a list, found text"]),
        ("{ expect: { that: [ '' ] } }", ["expected an expression, found blank text"]),
        ("{ expect: { that: [ true ] } }", ["expected an expression, found a boolean"]),
        ("{ spies: { a.b: { count: -1 } } }", ["expected 0 or more, found -1"]),
        ("{ spies: { a.b: { count: 0, records: [ {} ] } } }", ["1 `records`, but a `count` of 0"]),
        (
            "{ spies: { a.b: { records: [ { dropped: true, output: { body: 1 } } ] } } }",
            ["`dropped` cannot be expected together with `output`"],
        ),
        ("{ mocks: { a.b: {} } }", ["a mock needs `cases` or a `default`"]),
        (
            "{ mocks: { a.b: { cases: [ { when: 'body +', drop: true } ] } } }",
            ['compile expression "body +": unexpected end of expression'],
        ),
        ("{ models: { c: [ { txt: a } ] } }", ['unknown field "txt" in an entry of `c`']),
        ("{ models: { c: null } }", ['null takes the file\'s model "c" away, but the file has none']),
        ("{ tools: [ { args: {} } ] }", ["missing key `name`"]),
        ("{ log: [ { kind: llm.turns } ] }", ["expected a kind of records of the run log, found `llm.turns`"]),
        ("{ sent: { a.b: { records: [ { that: [ 1 ] } ] } } }", ["expected an expression, found a number"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_case_that_cannot_be_right_is_refused(tmp_path, case, expected):
    text = "flow: f\ninputs: { pair: {} }\ncases:\n  - { name: one, " + case.removeprefix("{") + "\n"

    assert [message.partition("parse suite: ")[2] for message in messages(tmp_path, text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flow: f\n", ["1:1 parse suite: missing key `cases`"]),
        ("flow: f\ncases: []\n", ["2:8 parse suite: `cases` needs at least one entry"]),
        ("cases: [ { name: one } ]\n", ["1:1 parse suite: missing key `flow`"]),
        ("- a\n", ["1:1 parse suite: expected a mapping with keys such as `flow`"]),
        ("flow: f\nflow: g\n", ["2:1 parse suite: duplicate key `flow`"]),
        ("flow: [\n", ["2:1 parse suite: "]),
        (
            "flow: f\ncases: [ { name: one } ]\n---\ncases: [ { name: two } ]\n",
            ["3:1 parse suite: only the first document of a file is read, and another one starts here"],
        ),
        ("flow: f\ntimeout: 0\ncases: [ { name: one } ]", ["2:10 parse suite: expected a time limit of more than 0"]),
        (b"flow: \xff\n", ["1:7 parse suite: byte 0xff is not UTF-8"]),
    ],
    ids=["no cases", "empty cases", "no flow", "a list", "twice", "no YAML", "two documents", "no time", "no UTF-8"],
)
def test_a_file_that_is_no_suite_is_refused(tmp_path, text, expected):
    found = [message for message, _ in problems(tmp_path, text)]

    assert [message[: len(start)] for message, start in zip(found, expected, strict=False)] == expected


def test_a_suite_that_cannot_be_read_is_a_problem(tmp_path):
    with pytest.raises(ConfigError, match=r"suite `.*none_test.yaml` cannot be read: no such file or directory"):
        read_suite(tmp_path / "none_test.yaml")
