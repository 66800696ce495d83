"""octo/agent/authored.py, octo/config/literal.py: names of agents, and the one form of a value."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.agent import authored
from octo.config import literal
from octo.errors import OctoError

SEGMENTS = (
    "a name is made of segments with `/` between them; a segment has letters, digits, `_`, `.` and `-`, and begins "
    "with a letter, a digit or `_`"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9).map(float) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize("name", ["a", "support/triage", "_x/1.2-b", "9", "a" * 200])
def test_these_are_names_of_agents(name: str) -> None:
    assert authored.name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", SEGMENTS),
        ("a//b", SEGMENTS),
        ("../a", SEGMENTS),
        ("a/./b", SEGMENTS),
        ("a/..", SEGMENTS),
        ("/a", SEGMENTS),
        ("-a", SEGMENTS),
        ("a b", SEGMENTS),
        ("ä", SEGMENTS),
        ("a\n", SEGMENTS),
        ("a@7", "`@` stands before the version of a pin"),
        ("a" * 201, "a name has at most 200 characters"),
    ],
)
def test_these_are_none(name: str, fault: str) -> None:
    assert authored.name_fault(name) == fault


def test_the_hash_is_of_json_with_keys_in_order_and_no_room_between() -> None:
    value = {"prompt": "hi", "connector": "llm", "tools": [{"name": "a", "flow": "f"}], "maxTokens": 20.0}
    text = '{"connector":"llm","maxTokens":20,"prompt":"hi","tools":[{"flow":"f","name":"a"}]}'

    assert authored.text(value) == text
    assert authored.digest(value) == sha256(text.encode()).hexdigest()[:32]


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
@settings(max_examples=60)
def test_the_order_of_keys_makes_no_difference(value: dict[str, Any]) -> None:
    def reversed_(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: reversed_(item[key]) for key in reversed(item)}
        return [reversed_(inner) for inner in item] if isinstance(item, list) else item

    assert authored.digest(value) == authored.digest(reversed_(value))


def test_references_are_hashed_as_they_are_written() -> None:
    assert authored.authored({"prompt": "${A}"}) == {"prompt": "${A}"}
    assert authored.digest({"prompt": "${A}"}) != authored.digest({"prompt": "${B}"})


def test_a_value_is_kept_in_one_spelling_without_its_name() -> None:
    written = {
        "name": "a",
        "x-note": 1,
        "system_prompt": "p",
        "max_completion_tokens": 5,
        "output_type": "text",
        "enabled_tools": [],
        "user_message": "body.q",
    }

    assert authored.authored(written) == {
        "prompt": "p",
        "maxTokens": 5,
        "outputType": "text",
        "enabledTools": [],
        "input": "body.q",
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("prompt", "system_prompt"),
        ("maxTokens", "max_completion_tokens"),
        ("maxIterations", "max_iterations"),
        ("outputType", "output_type"),
        ("outputSchema", "output_schema"),
        ("messagesContextLength", "messages_context_length"),
        ("input", "user_message"),
        ("attachments", "user_attachments"),
        ("user_attachments", "user_images"),
        ("enabledTools", "enabled_tools"),
    ],
)
def test_a_key_in_two_spellings_is_refused_with_both(one: str, other: str) -> None:
    with pytest.raises(OctoError) as caught:
        authored.authored({one: 1, other: 2})

    assert caught.value.message == f"`{one}` and `{other}` are two spellings of one key"


def test_the_text_of_a_prompt_that_is_kept_in_a_file_counts() -> None:
    written = {"prompt": {"resource": "p.md"}}
    before, after = authored.authored(written, lambda _: "old"), authored.authored(written, lambda _: "new")

    assert before == {"prompt": {"resource": "p.md", "text": "old"}}
    assert authored.digest(before) != authored.digest(after)


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghij0123456789",
        "use sk-proj-abcdefghij0123456789 please",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA0123456789abcdefghijk",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN",
        "ghp_0123456789abcdef0123",
    ],
)
def test_texts_that_look_like_a_key_are_found_where_they_stand(text: str) -> None:
    assert list(literal.secrets({"tools": [{"inputs": {"key": {"value": text}}}], "prompt": "hi"})) == [
        ("tools", 0, "inputs", "key", "value")
    ]


@pytest.mark.parametrize("text", ["sk-short", "${API_KEY}", "task-abcdefghij0123456789xyz", "ask me", "eyJ only"])
def test_other_texts_are_not(text: str) -> None:
    assert list(literal.secrets({"prompt": text})) == []
