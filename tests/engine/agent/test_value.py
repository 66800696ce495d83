"""octo/agent/value.py, octo/agent/misplaced.py: the value of an agent with a name."""

from __future__ import annotations

from octo.agent.value import NamedAgent, without_unknown


def test_a_value_has_these_keys_and_no_others() -> None:
    assert sorted(NamedAgent.yaml_keys()) == sorted(
        [
            *("name", "description", "connector", "model", "reasoningEffort", "prompt", "guardrail", "temperature"),
            *("maxTokens", "outputType", "outputSchema", "memory", "messagesContextLength", "maxIterations"),
            *("maxParallelTools", "contextMaxTokens", "memoryCompaction", "skills", "tools"),
            *("input", "attachments", "enabledTools"),
        ]
    )


def test_what_a_newer_octo_has_stored_is_left_out_and_named() -> None:
    value = {
        "connector": "llm",
        "prompt": "x",
        "telepathy": True,
        "tools": [
            {"name": "t", "flow": "f", "colour": "red"},
            {"name": "n", "agent": {"connector": "llm", "prompt": "y", "mood": "good"}},
            {"name": "l", "agent": "other"},
        ],
    }

    assert without_unknown(value) == (
        {
            "connector": "llm",
            "prompt": "x",
            "tools": [
                {"name": "t", "flow": "f"},
                {"name": "n", "agent": {"connector": "llm", "prompt": "y"}},
                {"name": "l", "agent": "other"},
            ],
        },
        ["telepathy", "tools.0.colour", "tools.1.agent.mood"],
    )


def test_ids_of_conversations_in_an_older_value_are_left_out_before_anything_is_looked_up() -> None:
    value = {"connector": "llm", "prompt": "x", "memoryId": "${NOT_DECLARED}", "previousMessages": ["${GONE}"]}

    assert without_unknown(value) == ({"connector": "llm", "prompt": "x"}, [])


def test_a_tool_of_a_kind_that_only_a_newer_octo_knows_is_left_out():
    known = [{"name": "look", "process": []}, {"webSearch": True}, {"name": "nothing"}]
    value = {"connector": "llm", "prompt": "x", "tools": [{"name": "new", "teleport": {"to": "b"}}, *known]}

    assert without_unknown(value) == ({"connector": "llm", "prompt": "x", "tools": known}, ["tools.0.teleport"])
