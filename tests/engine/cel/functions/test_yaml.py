"""octo/cel/functions/yaml.py: YAML written and read."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError

WRITE = compile_expression("toYaml(body)", ["body"])
READ = compile_expression("fromYaml(body)", ["body"])


def test_yaml_is_written_in_block_style_with_sorted_keys():
    body = {
        "name": "x",
        "on": "no",
        "version": "1.0",
        "n": 1000000.0,
        "empty": {},
        "list": [1.5, "y", {"b": [], "a": None}, [True, "z"]],
        "deep": {"a": {"b": "c: d"}},
        "text": "one\n\n two\n",
        "note": "# x",
    }

    assert WRITE({"body": body}) == (
        "deep:\n"
        "    a:\n"
        '        b: "c: d"\n'
        "empty: {}\n"
        "list:\n"
        "    - 1.5\n"
        '    - "y"\n'
        "    - a: null\n"
        "      b: []\n"
        "    - - true\n"
        "      - z\n"
        '"n": 1000000\n'
        "name: x\n"
        'note: "# x"\n'
        '"on": "no"\n'
        "text: |\n"
        "    one\n"
        "\n"
        "     two\n"
        'version: "1.0"\n'
    )


TEXTS = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["1e3", "0x1f", "12:30", "2024-01-01", "~", "<<", "=", "|", "a:", "-"])
    | st.sampled_from(["- a", "a #b", ": a", "\n", "a\n", "a\n\n", " a\nb"])
)


def nested(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=8,
    )


VALUES = nested(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS)


@settings(max_examples=400, deadline=None)
@given(VALUES)
def test_what_is_written_reads_back_as_the_same_value(value):
    assert READ({"body": WRITE({"body": value})}) == value


@settings(max_examples=150, deadline=None)
@given(nested(TEXTS))
def test_other_readers_find_the_same_texts(value):
    assert yaml.safe_load(WRITE({"body": value})) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("a: 1\nb: 0x1f\nc: 0o17\nd: 1e3", {"a": 1.0, "b": 31.0, "c": 15.0, "d": 1000.0}),
        ("[yes, no, true, null, ~, '1', \"2\"]", ["yes", "no", True, None, None, "1", "2"]),
        ("[2024-01-02, 2024-01-02 3:04:05.60 +2]", ["2024-01-02T00:00:00Z", "2024-01-02T03:04:05.6+02:00"]),
        ("a: &x {k: 1}\nb: {<<: *x, z: 2}\nc: *x", {"a": {"k": 1.0}, "b": {"k": 1.0, "z": 2.0}, "c": {"k": 1.0}}),
        ("a: !!str 12", {"a": "12"}),
        ("first\n---\nsecond", "first"),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
    ],
)
def test_yaml_is_read_as_json_values(text, expected):
    assert READ({"body": text}) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "text is not YAML: did not find expected node content in line 2"),
        ("1: a", "key of a mapping is not text in line 1"),
        ("a: 1\na: 2", "key `a` is repeated in line 2"),
        ("a: *x", "text is not YAML: alias `x` has no anchor before it"),
        ("!!python/object:os.system x", "text is not YAML: unknown tag `!!python/object:os.system` in line 1"),
        ("a:\n- !!python/tuple [1]", "text is not YAML: unknown tag `!!python/tuple` in line 2"),
        ("1e999", "text is not YAML: a number is out of the range of doubles"),
        ("0x" + "f" * 300, "text is not YAML: a number is out of the range of doubles"),
        ("a: &x [*x]", "text is not YAML: alias `x` has no anchor before it"),
    ],
)
def test_what_is_no_yaml_is_refused(text, message):
    with pytest.raises(ExpressionError) as caught:
        READ({"body": text})

    assert caught.value.message == message


def test_aliases_that_would_expand_without_bound_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 9)]

    with pytest.raises(ExpressionError, match="evaluation exceeds its budget of 64 MB"):
        READ({"body": "\n".join(lines)})
