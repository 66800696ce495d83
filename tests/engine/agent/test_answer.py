"""octo/agent/answer.py: what a model's final text makes of the body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octo.agent import answer
from octo.values import dumps

FENCE = "```"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        pytest.param('{"tier": "smb"}', {"tier": "smb"}, id="object"),
        pytest.param(" [1, 2] \n", [1.0, 2.0], id="list with space around"),
        pytest.param("42", 42.0, id="number"),
        pytest.param("true", True, id="boolean"),
        pytest.param("null", None, id="null"),
        pytest.param('"hi"', "hi", id="text in quotes"),
        pytest.param('```json\n{"a": 1}\n```', {"a": 1.0}, id="fenced"),
        pytest.param('```JSON\r\n{"a": 1}\r\n```', {"a": 1.0}, id="upper case tag and CRLF"),
        pytest.param('```\n{"a": 1}\n```', {"a": 1.0}, id="fence without tag"),
        pytest.param('```json{"a": 1}```', {"a": 1.0}, id="fence on one line"),
        pytest.param('\n\n```json\n{"a": 1}', {"a": 1.0}, id="fence that does not close"),
        pytest.param('```json\n{"a": 1}\n```\nThat is it.', {"a": 1.0}, id="words after the fence"),
        pytest.param('{"doc": "```py\\nx\\n```"}', {"doc": "```py\nx\n```"}, id="fences inside bare JSON"),
        pytest.param(
            '```json\n{"doc": "```py\\nx\\n```"}\n```', {"doc": "```py\nx\n```"}, id="fences inside fenced JSON"
        ),
        pytest.param('{"q": "\\ud83d"}', {"q": "\ufffd"}, id="half an emoji"),
    ],
)
def test_an_answer_that_is_json_becomes_its_value(text, body):
    assert answer.fold(text) == body


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" The tier is smb. \n", id="prose, untrimmed"),
        pytest.param('Here it is:\n```json\n{"a": 1}\n```', id="prose before the fence"),
        pytest.param("```yaml\na: 1\n```", id="another language"),
        pytest.param('```jsonc\n{"a": 1}\n```', id="a tag that begins like json"),
        pytest.param('{"a": 1} and more', id="words after the value"),
        pytest.param("NaN", id="NaN"),
        pytest.param("{'a': 1}", id="single quotes"),
        pytest.param("[1, 2,]", id="trailing comma"),
        pytest.param("// note\n1", id="comment"),
        pytest.param('```json\n{"a": "```"}', id="open fence with a fence inside"),
        pytest.param("# Title\n\n```py\nprint(1)\n```\n", id="Markdown"),
        pytest.param("[" * 100_000, id="nested too deeply"),
    ],
)
def test_any_other_answer_stays_the_text_it_is(text):
    assert answer.fold(text) == text


@pytest.mark.parametrize("text", ["", " \n\t", "```", "```json\n```", "```json", "``````"])
def test_an_answer_of_nothing_but_space_and_fences_is_empty(text):
    assert answer.is_empty(text)


@pytest.mark.parametrize("text", ["null", '""', "{}", "0", "```yaml\n```"])
def test_an_answer_of_an_empty_value_is_not_empty(text):
    assert not answer.is_empty(text)


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(alphabet="`a{}\n"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="`ab"), inner, max_size=3),
    max_leaves=8,
)


@given(values, st.sampled_from(["", "json", "JSON"]), st.sampled_from(["\n", "\r\n", " "]))
def test_any_value_survives_a_fence(value, tag, space):
    assert answer.fold(f"{FENCE}{tag}{space}{dumps(value)}{space}{FENCE}") == value
