"""octo/chat_connector.py: connectors that stand in for others, in a config and in a run."""

import pytest

from octo.errors import BlockError, ConfigError
from octo.testing import harness

FLOWS = """
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: a
        prompt: Do it.
        tools:
          - name: t
            description: A tool.
            idempotent: {idempotent}
            process: []
"""
DOWN = "{error: {status: 503, message: busy}}"
CALL = "{calls: [{name: t}]}"


def connectors(*entries):
    """A config with scripted connectors: name, turns, and who stands in."""
    lines = ["connectors:"]
    for name, turns, fallback in entries:
        lines.append(f"  - {{name: {name}, type: llm-scripted, settings: {{turns: [{turns}], fallback: {fallback}}}}}")
    return "\n".join(lines)


def problems(text):
    with pytest.raises(ConfigError) as caught:
        harness.config(text)
    return [(problem.location.line, problem.message, problem.hint) for problem in caught.value.problems]


async def answer(*entries, idempotent="false"):
    async with harness.runtime(connectors(*entries) + FLOWS.format(idempotent=idempotent)) as octo:
        return (await octo.invoke("f")).body


async def test_a_connector_that_cannot_answer_has_another_answer_for_it():
    assert await answer(("a", DOWN, "[b]"), ("b", "{text: from b}", "[]")) == "from b"


async def test_one_name_needs_no_list():
    assert await answer(("a", DOWN, "b"), ("b", "{text: from b}", "[]")) == "from b"


async def test_those_that_stand_in_have_others_stand_in_for_them():
    entries = (("a", DOWN, "[b]"), ("b", DOWN, "[c]"), ("c", "{text: from c}", "[]"))

    assert await answer(*entries) == "from c"


async def test_after_a_tool_with_effects_no_other_connector_is_asked():
    with pytest.raises(BlockError, match="busy; no other connector is asked once a tool with effects has run"):
        await answer(("a", f"{CALL}, {DOWN}", "[b]"), ("b", "{text: from b}", "[]"))


async def test_after_a_tool_that_may_be_called_again_another_may_be():
    entries = (("a", f"{CALL}, {DOWN}", "[b]"), ("b", "{text: from b}", "[]"))

    assert await answer(*entries, idempotent="true") == "from b"


async def test_an_agent_stays_with_the_one_that_answered():
    entries = (("a", DOWN, "[b]"), ("b", f"{CALL}, {{text: b again}}", "[]"))

    assert await answer(*entries) == "b again"


def test_a_name_that_no_connector_has_is_refused():
    text = connectors(("main", "{text: x}", "[mian]")) + FLOWS.format(idempotent="false").replace(
        "a\n        p", "main\n        p"
    )

    assert problems(text) == [(2, 'connector "mian" is not configured', "did you mean `main`?")]


def test_connectors_that_stand_in_for_one_another_in_a_circle_are_refused():
    text = connectors(("a", "{text: x}", "[b]"), ("b", "{text: x}", "[c]"), ("c", "{text: x}", "[a]"))

    assert problems(text) == [(2, "connectors stand in for one another in a circle: `a` → `b` → `c` → `a`", None)]


def test_a_connector_that_stands_in_for_itself_is_refused():
    assert problems(connectors(("a", "{text: x}", "[a]"))) == [
        (2, "connectors stand in for one another in a circle: `a` → `a`", None)
    ]
