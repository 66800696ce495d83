"""docs/testing.md: its tables name every key of a suite once, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from octo.testing.suite import Case, Expectation, Logged, Sent, Suite, ToolCall

TEXT = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The rows of the tables under a heading, each with what stands in backticks in its first cells."""
    section = re.split(r"(?m)^#+ ", TEXT.partition(f"# {heading}\n")[2])[0]
    return [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]


def keys(heading: str, column: int = 0) -> list[str]:
    return [word for row in rows(heading) for word in re.findall(r"`(\w+)`", row[column])]


@pytest.mark.parametrize(
    ("heading", "model"),
    [("A suite", Suite), ("A case", Case), ("`expect`", Expectation)],
    ids=["suite", "case", "expect"],
)
def test_a_table_names_every_key(heading, model):
    assert sorted(keys(heading)) == sorted(model.yaml_keys())


def test_the_table_of_agents_names_every_key():
    found: dict[str, list[str]] = {}
    owner = ""
    for row in rows("Agents")[1:]:
        owner = "".join(re.findall(r"`(\w+)`", row[0])) or owner
        found.setdefault(owner, []).extend(re.findall(r"`(\w+)`", row[1]))

    assert {name: sorted(words) for name, words in found.items()} == {
        "tools": sorted(ToolCall.yaml_keys()),
        "sent": sorted(Sent.yaml_keys()),
        "log": sorted(Logged.yaml_keys()),
    }
