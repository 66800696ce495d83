"""octo/config/alignment.py, octo/config/document.py: YAML text to values with places.

Also octo/config/parser.py, octo/config/scalars.py, octo/config/source.py, octo/config/syntax.py.
"""

import json
import math
import random
import subprocess
import sys
import time
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from octo.config.document import Document, parse
from octo.errors import ConfigError, Excerpt, ExpressionError, Location, Problem


def value(text: str | bytes) -> object:
    return parse(text, "c.yaml").data


def problems(text: str | bytes) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "c.yaml")
    return list(caught.value.problems)


def problem(line: int, column: int, message: str, hint: str | None, length: int = 1) -> Problem:
    return Problem(f"parse config: {message}", Location("c.yaml", line, column), hint, length=length)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("null", None),
        ("~", None),
        ("", None),
        ("0123", 123),
        ("-7", -7),
        ("+12", 12),
        ("0x1F", 31),
        ("0o17", 15),
        ("-0x1", "-0x1"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1.0", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1e-400", 0.0),
        (".", "."),
        ("-", [None]),
        ("+", "+"),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("12345678901234567890", 12345678901234567890),
        ("'12'", "12"),
        ('"true"', "true"),
        ("! 12", "12"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 1", 1.0),
        ("!!bool 'true'", True),
        ("!!null ''", None),
        ("!!seq [1]", [1]),
        ("http://h:80", "http://h:80"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">-\n  a\n  b", "a b"),
    ],
)
def test_a_scalar_has_the_kind_of_the_core_schema(written: str, expected: object) -> None:
    found = value(f"- {written}")

    assert found == [expected] and type(found[0]) is type(expected)


def test_not_a_number_is_a_float() -> None:
    assert math.isnan(value("a: .nan")["a"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# only a comment\n", {}),
        ("---\n", {}),
        ("null", None),
        ("\ufeffa: 1", {"a": 1}),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ("{url: http://h:80}", {"url": "http://h:80"}),
        ('{"a":1,"b":[true,null]}', {"a": 1, "b": [True, None]}),
        ('{\n\t"a": 1\n}', {"a": 1}),
        ("%YAML 1.1\n---\na: no", {"a": "no"}),
        ("1: a\nyes: b\n1.0: c\nnull: d", {"1": "a", "yes": "b", "1.0": "c", "null": "d"}),
        ("a: &k x\n*k : 1", {"a": "x", "x": 1}),
        ("é: 日本—😀", {"é": "日本—😀"}),
        ('a: "\\ud83d\\ude00"', {"a": "😀"}),
        ('a: "\\ud83d"', {"a": "�"}),
        ("a: '\\ud83d'", {"a": "\\ud83d"}),
        ('a: "\\\\ud83d"', {"a": "\\ud83d"}),
        ("a: x\ud83dy", {"a": "x�y"}),
        ('{"a": "x\u2028y\x85z\x7f"}', {"a": "x\u2028y\x85z\x7f"}),
        ("a: 1\n...\n", {"a": 1}),
    ],
    ids=[
        "empty",
        "comment",
        "empty document",
        "null",
        "byte order mark in text",
        "byte order mark in bytes",
        "carriage returns",
        "colon in a flow mapping",
        "compact JSON",
        "JSON indented with tabs",
        "old version",
        "keys are text",
        "alias as key",
        "beyond ASCII",
        "escaped pair of surrogates",
        "escaped lone surrogate",
        "no escape in single quotes",
        "escaped backslash",
        "lone surrogate",
        "line breaks of YAML 1.1",
        "end of document",
    ],
)
def test_a_text_has_the_value(text: str | bytes, expected: object) -> None:
    assert value(text) == expected


def test_a_merge_key_adds_what_is_not_there_and_the_first_mapping_wins() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc:\n  x: 9\n  <<: [*a, *b]\n"

    assert value(text)["c"] == {"x": 9, "y": 2, "z": 4}


def test_a_quoted_merge_key_is_a_plain_key() -> None:
    assert value("'<<': {a: 1}") == {"<<": {"a": 1}}


def test_aliased_values_can_be_changed_apart() -> None:
    data = value("a: &a [1]\nb: *a")
    data["a"].append(2)

    assert data == {"a": [1, 2], "b": [1]}


def test_a_second_document_is_not_read_and_reported() -> None:
    document = parse("a: 1\n---\nb: {", "c.yaml")

    assert document.data == {"a": 1}
    assert document.warnings == (
        Problem(
            "only the first document of a file is read, and another one starts here",
            Location("c.yaml", 2, 1),
            "put it into a file of its own",
            length=3,
            severity="warning",
        ),
    )


_INDENT = "check the indentation: keys of one mapping start in one column"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b\n]", problem(2, 1, "expected a key in the mapping that starts at line 1", _INDENT)),
        ("a:\n  b: 1\n c: 2", problem(3, 2, "expected a key in the mapping that starts at line 1", _INDENT)),
        (
            "a: b: c",
            problem(
                1,
                5,
                "found `:` where no key can stand",
                "quote a value that contains `: `, or check the indentation",
            ),
        ),
        ("a: @b", problem(1, 4, "a value cannot start with `@`", "put the value in quotes")),
        ("a:\n\t- b", problem(2, 1, "found a tab where only spaces may indent", "indent with spaces")),
        ("a: 'x\n", problem(1, 4, "quotes are not closed", "end the text with `'`")),
        (
            "k: [a, b",
            problem(
                1,
                9,
                "expected `,` or `]` in the list that starts at line 1",
                "close the list, or quote a text that starts with `[`",
            ),
        ),
        (
            "- a\nb: c",
            problem(
                2,
                1,
                "expected `- ` in the list that starts at line 1",
                "check the indentation: items of one list start in one column",
            ),
        ),
        (
            "a: b\x00c",
            problem(1, 5, "control character U+0000 is not allowed", "remove it, or write `\\x00` in double quotes"),
        ),
        ("a: b\né: \xff".encode("latin-1"), problem(2, 1, "byte 0xe9 is not UTF-8", "save the file as UTF-8")),
        ("é: ".encode() + b"\xff", problem(1, 4, "byte 0xff is not UTF-8", "save the file as UTF-8")),
        (
            "'1': a\n1: b",
            problem(2, 1, "duplicate key `1`", "the first one is at c.yaml:1:1; keep one of them"),
        ),
        (
            "<<: {a: 1}\n<<: {b: 1}",
            problem(2, 1, "duplicate key `<<`", "give one list: `<<: [*first, *second]`", 2),
        ),
        (
            "a: {<<: 3}",
            problem(
                1,
                5,
                "expected a mapping or a list of mappings after `<<`, found a number",
                "a plain key of this name is written in quotes",
                2,
            ),
        ),
        (
            "a: *b",
            problem(
                1,
                4,
                "alias `*b` has no anchor",
                "mark a value above with `&b`, or quote a text that starts with `*`",
                2,
            ),
        ),
        ("x-a: &a {<<: *a}", problem(1, 14, "alias `*a` stands inside the value that it repeats", None, 2)),
        (
            "a: {<<: *no}",
            problem(
                1,
                9,
                "alias `*no` has no anchor",
                "mark a value above with `&no`, or quote a text that starts with `*`",
                3,
            ),
        ),
        ("a: &a [*a]", problem(1, 8, "alias `*a` stands inside the value that it repeats", None, 2)),
        (
            "a: !!python/name:os.system x",
            problem(
                1,
                4,
                "unknown tag `!!python/name:os.system`",
                "remove it, or quote a text that starts with `!`",
                25,
            ),
        ),
        (
            "a: !env {}",
            problem(1, 4, "unknown tag `!env`", "remove it, or quote a text that starts with `!`"),
        ),
        ("a: !!int x", problem(1, 4, "expected a value of kind `!!int`, found `x`", None, 7)),
        (
            "a: {{ body }}",
            problem(1, 5, "expected text as a key, found a mapping", "quote a text that starts with `{` or `[`"),
        ),
        (
            "? [a]\n: b",
            problem(1, 3, "expected text as a key, found a list", "quote a text that starts with `{` or `[`"),
        ),
        (
            "?\n: b",
            problem(1, 2, "expected a key before `:`, found nothing", 'write `""` for an empty key'),
        ),
        ("[" * 250, problem(1, 201, "nested more than 200 levels deep", None)),
    ],
    ids=lambda argument: repr(argument)[:40] if isinstance(argument, str | bytes) else "",
)
def test_a_text_that_is_refused_says_where_and_why(text: str | bytes, expected: Problem) -> None:
    assert problems(text) == [expected]


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 310, "9" * 5000, "0x" + "f" * 500])
def test_a_number_that_no_double_holds_is_refused(number: str) -> None:
    shown = number if len(number) <= 40 else number[:40] + "…"

    assert problems(f"a: {number}") == [
        problem(
            1,
            4,
            f"number `{shown}` is too large",
            "no number is larger than about 1.8e308; put it in quotes if it is text",
            len(number),
        )
    ]


def test_all_problems_of_a_file_are_reported_together() -> None:
    found = problems("a: 1\na: 2\nb: !x y\nc: 1e999\na: 3\nd: 'x")

    assert [str(item) for item in found] == [
        "c.yaml:2:1: parse config: duplicate key `a`",
        "c.yaml:3:4: parse config: unknown tag `!x`",
        "c.yaml:4:4: parse config: number `1e999` is too large",
        "c.yaml:5:1: parse config: duplicate key `a`",
        "c.yaml:6:4: parse config: quotes are not closed",
    ]


def test_the_kind_of_file_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("a: [", "jobs_test.yaml", what="suite")

    assert str(caught.value) == "jobs_test.yaml:1:5: parse suite: expected a value"


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)),
        f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 11)}]\n",
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 300)),
    ],
    ids=["values", "text", "depth"],
)
def test_aliases_cannot_blow_a_file_up(text: str) -> None:
    started = time.process_time()
    found = problems(text)

    assert [item.message for item in found] == [
        "parse config: aliases repeat more than 100 000 values, 10 MB of text or 200 levels"
    ]
    assert time.process_time() - started < 2


def test_a_hundred_thousand_keys_are_read_in_two_seconds() -> None:
    text = "".join(f"key{index}: value\n" for index in range(100_000))
    started = time.process_time()
    document = parse(text, "c.yaml")

    assert document.location(("key99999",)) == Location("c.yaml", 100_000, 11)
    assert time.process_time() - started < 2


PLACES = """\
# 😀
flows:
  - name: "é😀"   # comment
    process: [{type: log, n: 1}]
    base: &base
      level: info
    copy:
      <<: *base
      text: |
        one
        two
    empty:
"""


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        ((), False, (2, 1)),
        (("flows",), True, (2, 1)),
        (("flows",), False, (3, 3)),
        (("flows", 0), False, (3, 5)),
        (("flows", 0, "name"), True, (3, 5)),
        (("flows", 0, "name"), False, (3, 11)),
        (("flows", 0, "process", 0, "n"), False, (4, 30)),
        (("flows", 0, "copy", "level"), False, (6, 14)),
        (("flows", 0, "copy", "text"), False, (9, 13)),
        (("flows", 0, "empty"), False, (12, 11)),
        (("flows", 0, "nowhere", "else"), True, (3, 5)),
        (("flows", 7, "name"), False, (3, 3)),
        (("flows", "name"), False, (3, 3)),
        (("flows", 0, "name", "deeper"), False, (3, 11)),
        (("flows", 0, 0), False, (3, 5)),
    ],
)
def test_every_key_value_and_item_has_a_place(
    path: tuple[str | int, ...], key: bool, expected: tuple[int, int]
) -> None:
    assert parse(PLACES, "c.yaml").location(path, key=key) == ("c.yaml", *expected)


def test_columns_are_characters_whatever_the_line_breaks_and_tabs() -> None:
    document = parse("a: 1\r\nb: 2\rc:\t{😀é: x}\nd: 'x\u2028y'\ne: 1", "c.yaml")

    assert [document.location((key,)) for key in "abcde"] == [
        ("c.yaml", 1, 4),
        ("c.yaml", 2, 4),
        ("c.yaml", 3, 4),
        ("c.yaml", 4, 4),
        ("c.yaml", 5, 4),
    ]
    assert document.location(("c", "😀é")) == ("c.yaml", 3, 9)


def test_places_survive_new_data() -> None:
    document = parse("a:\n  b: ${X}", "c.yaml").with_data({"a": {"b": 5}})

    assert document.data == {"a": {"b": 5}}
    assert document.location(("a", "b")) == Location("c.yaml", 2, 6)


@pytest.mark.parametrize(
    ("path", "options", "column", "length"),
    [
        (("key",), {}, 6, 14),
        (("key",), {"key": True}, 1, 3),
        (("key",), {"part": "${NAME}"}, 12, 7),
        (("map",), {}, 6, 1),
        (("none",), {}, 6, 1),
        (("long",), {}, 7, 3),
    ],
    ids=["value", "key", "part", "container", "nothing", "several lines"],
)
def test_the_caret_marks_what_is_meant(path: tuple[str], options: dict[str, object], column: int, length: int) -> None:
    document = parse("key: 'abcd ${NAME}'\nmap: {a: 1}\nnone:\nlong: one\n  two\n", "c.yaml")
    found = document.problem("wrong", path, hint="right", **options)

    assert (found.location.column, found.length, found.hint) == (column, length, "right")


def expression(source: str, at: str, length: int = 1) -> ExpressionError:
    return ExpressionError("bad", source=source, column=source.index(at) + 1, length=length, hint="better")


@pytest.mark.parametrize(
    ("written", "source", "expected"),
    [
        ("body.siez + 1", "body.siez + 1", (1, 9, 4, None)),
        ("'body.siez + 1'", "body.siez + 1", (1, 10, 4, None)),
        ('"body.siez + 1"', "body.siez + 1", (1, 10, 4, None)),
        ("&x !!str 'body.siez'", "body.siez", (1, 19, 4, None)),
        ("hello {{ body.siez }}", " body.siez ", (1, 18, 4, None)),
        ("'body.siez + ''x'''", "body.siez + 'x'", (1, 10, 4, None)),
        ("body +\n  body.siez", "body + body.siez", (2, 8, 4, None)),
        ("|\n  body +\n    body.siez\n", "body +\n  body.siez\n", (3, 10, 4, None)),
        (">\n  body +\n  body.siez\n", "body + body.siez\n", (3, 8, 4, None)),
        ("'1\n  + ''x'' + body.siez'", "1 + 'x' + body.siez", (2, 18, 4, None)),
        ('"\\"x\\" + body.siez"', '"x" + body.siez', (1, 18, 4, None)),
        ('"1 +\\\n  body.siez"', "1 +body.siez", (2, 8, 4, None)),
        ('"\\x41 + body.siez"', "A + body.siez", (1, 4, 18, Excerpt("A + body.siez", 10, 4))),
        ("body.siez + ${N}", "body.siez + 7", (1, 9, 4, None)),
        ("'${N} + body.siez'", "7 + body.siez", (1, 17, 4, None)),
        ("&x ${N} +\n  body.siez", "7 + body.siez", (2, 8, 4, None)),
        ("${N} + body.siez + ${N}", "7 + body.siez + 7", (1, 4, 23, Excerpt("7 + body.siez + 7", 10, 4))),
        (">\n  ${N} + body.siez\n", "7 + body.siez\n", (2, 15, 4, None)),
    ],
    ids=[
        "plain",
        "single quotes",
        "double quotes",
        "anchor and tag",
        "span of a template",
        "escaped quote",
        "folded plain",
        "literal block",
        "folded block",
        "folded single quotes",
        "escaped double quotes",
        "continued line",
        "escaped letter",
        "before a value of the environment",
        "behind a value of the environment",
        "lines behind a value of the environment",
        "between values of the environment",
        "folded block with a value of the environment",
    ],
)
def test_a_problem_inside_an_expression_has_its_column(
    written: str, source: str, expected: tuple[int, int, int, Excerpt | None]
) -> None:
    found = parse(f"a: {written}", "c.yaml").expression_problem(expression(source, "siez", 4), "no", ("a",))

    assert found == Problem("no", Location("c.yaml", *expected[:2]), "better", length=expected[2], excerpt=expected[3])


def json_values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=12,
    )


@settings(max_examples=150, deadline=None)
@given(json_values(st.text(max_size=12)), st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_any_json_text_is_read_as_it_is(data: object, ascii_only: bool, indent: int | str | None) -> None:
    text = json.dumps(data, ensure_ascii=ascii_only, indent=indent)

    assert value(text) == data


_printable = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_printable, json_values(_printable), max_size=4))
def test_what_an_editor_of_yaml_writes_is_read_the_same(data: dict[str, object]) -> None:
    out = StringIO()
    YAML().dump(data, out)

    assert value(out.getvalue()) == data


def test_no_bytes_make_the_reader_crash() -> None:
    rnd = random.Random(7)
    sample = (PLACES + "x: [\"a\\u00e9\", 'b', !!str 1, &k {<<: {a: 1}}, *k]\n? k\n: >-\n  t\n").encode()
    for _ in range(1500):
        data = bytearray(sample)
        for _ in range(rnd.randint(1, 4)):
            place = rnd.randrange(len(data))
            data[place : place + rnd.randint(0, 3)] = bytes(
                rnd.choice(b"\x00\t\n\r \"'#&*!|>-?:,[]{}%@`\\<ax1\xc3\xff\xef") for _ in range(rnd.randint(0, 3))
            )
        try:
            outcome: object = parse(bytes(data), "c.yaml")
        except ConfigError as error:
            outcome = error
            lines = bytes(data).count(b"\n") + bytes(data).count(b"\r") + 1
            assert all(item.location and 1 <= item.location.line <= lines for item in error.problems)
        assert isinstance(outcome, Document | ConfigError)


def test_a_yaml_package_without_its_c_parser_reads_the_same() -> None:
    code = (
        "import sys; sys.modules['yaml._yaml'] = None\n"
        "from octo.config.document import parse\n"
        f"document = parse({PLACES!r}, 'c.yaml')\n"
        "print(ascii(document.data), document.location(('flows', 0, 'process', 0, 'n')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == f"{value(PLACES)!a} c.yaml:4:30\n"
