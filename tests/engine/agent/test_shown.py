"""octo/agent/shown.py: values as YAML, and what differs between two of them."""

from __future__ import annotations

from octo.agent import shown
from octo.config.document import parse

VALUE = {
    "tools": [{"process": [{"settings": {"value": "body"}, "type": "set-payload"}], "name": "echo"}],
    "temperature": 0.5,
    "prompt": "Be kind.\nBe short.\n",
    "maxTokens": 20.0,
    "description": "yes",
    "connector": "llm",
}
YAML = """\
description: yes
connector: llm
prompt: |
  Be kind.
  Be short.
maxTokens: 20
temperature: 0.5
tools:
  - name: echo
    process:
      - type: set-payload
        settings:
          value: body
"""


def test_a_value_is_laid_out_as_people_write_it() -> None:
    assert shown.yaml_text(VALUE) == YAML.replace("description: yes", "description: 'yes'")


def test_yaml_that_is_read_again_says_the_same() -> None:
    hard = {
        "prompt": "a: b\n  c # d\n",
        "guardrail": "  no\n",
        "model": "0123",
        "description": "true",
        "connector": "é",
    }

    assert parse(shown.yaml_text(hard), "x").data == hard


def test_the_difference_is_that_of_the_lines() -> None:
    other = {**VALUE, "prompt": "Be kind.\nBe brief.\n"}

    assert shown.difference(VALUE, other, ("a v1", "a v2")) == [
        "--- a v1",
        "+++ a v2",
        "@@ -2,7 +2,7 @@",
        " connector: llm",
        " prompt: |",
        "   Be kind.",
        "-  Be short.",
        "+  Be brief.",
        " maxTokens: 20",
        " temperature: 0.5",
        " tools:",
    ]


def test_a_long_line_stays_one_so_that_a_change_in_it_moves_no_others() -> None:
    words = "Be kind to all who ask. " * 20

    assert f"prompt: {words}end\n" in shown.yaml_text({"prompt": f"{words}end", "connector": "llm"})


def test_equal_values_differ_nowhere() -> None:
    assert shown.difference(VALUE, dict(reversed(VALUE.items())), ("a", "b")) == []


def test_the_places_that_differ_are_named_by_keys_and_names() -> None:
    other = {
        "connector": "llm",
        "model": "m",
        "prompt": VALUE["prompt"],
        "maxTokens": 20,
        "temperature": 0.7,
        "tools": [{"name": "echo", "process": [{"type": "set-payload", "settings": {"value": "vars"}}]}],
    }

    assert list(shown.changed_paths(VALUE, other)) == [
        "description",
        "model",
        "temperature",
        "tools[echo].process[0].settings.value",
    ]
