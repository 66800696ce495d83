"""octo/catalogue.py: every type of block and connector once, with all fields and what is said of them."""

from __future__ import annotations

import pytest

from octo import catalogue, registry
from octo.catalogue import documentation
from octo.fields import Model


def entry(kind: str, type_name: str):
    return next(item for item in catalogue.capabilities()[kind] if item["type"] == type_name)


@pytest.mark.parametrize("kind", ["blocks", "connectors"])
def test_every_type_appears_exactly_once(kind):
    assert sorted(item["type"] for item in catalogue.capabilities()[kind]) == sorted(registry.known(kind))


def test_an_entry_says_everything_about_a_block():
    assert entry("blocks", "flow-ref") == {
        "type": "flow-ref",
        "label": "Flow ref",
        "category": "processor",
        "group": "integration",
        "icon": "plug",
        "description": "Call another flow with a copy of the message; its body and variables come back.",
        "fields": [
            {
                "name": "flow",
                "label": "Flow",
                "type": "flow-name",
                "required": True,
                "default": None,
                "description": "The flow to call.",
            },
            {
                "name": "oneWay",
                "label": "One way",
                "type": "boolean",
                "required": False,
                "default": False,
                "description": "Go on at once: what the called flow gives, drops or fails with is ignored.",
            },
        ],
    }


def test_an_entry_of_a_connector_has_settings_and_sources():
    found = entry("connectors", "llm-anthropic")

    assert found.keys() == {"type", "label", "icon", "description", "settings", "sources"}
    assert (found["label"], found["icon"]) == ("LLM anthropic", "sparkles")


@pytest.mark.parametrize(
    ("block", "field", "kind"),
    [
        ("set-payload", "value", "cel"),
        ("set-payload", "contentType", "string"),
        ("set-payload", "rawBody", "boolean"),
        ("log", "level", "enum"),
        ("log", "logger", "connector"),
        ("cache-scope", "ttl", "duration"),
        ("if", "then", "flow"),
        ("fork", "branches", "flow-list"),
        ("handle-errors", "process", "block-list"),
        ("switch", "cases", "case-list"),
        ("validate", "rules", "rule-list"),
        ("validate", "rejectStatus", "number"),
        ("multi-transform", "transforms", "transform-list"),
        ("enrich", "setVars", "cel-map"),
        ("cli-run", "env", "string-list"),
        ("ai-agent", "prompt", "text"),
        ("ai-agent", "tools", "tool-list"),
    ],
)
def test_a_field_has_a_kind(block, field, kind):
    assert next(item["type"] for item in entry("blocks", block)["fields"] if item["name"] == field) == kind


def test_a_field_with_a_closed_set_of_words_lists_them():
    level = next(item for item in entry("blocks", "log")["fields"] if item["name"] == "level")

    assert (level["choices"], level["default"]) == (["debug", "info", "warn", "error"], "info")


def test_documentation_is_inherited_and_can_be_said_anew():
    class Above(Model):
        first: int = 0
        """The first."""

        second: int = 0
        """The second."""

    class Below(Above):
        second: int = 1
        """Another one."""

    assert documentation(Below) == {"first": "The first.", "second": "Another one."}


def test_everything_is_documented():
    """What a user can write has a description."""
    silent = []
    for cls in (*catalogue.blocks(), *catalogue.connectors()):
        silent += [cls.type] * (not catalogue.description(cls))
        silent += [f"{cls.type} {name}" for name in cls.model_fields if not documentation(cls).get(name)]

    assert silent == []
