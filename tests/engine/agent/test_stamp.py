"""octo/agent/stamp.py: what tells one agent from another."""

from pathlib import Path
from typing import Any

import pytest

import octo
from octo.agent.declared import read
from octo.agent.stamp import inline
from octo.testing.harness import config

MODEL = "{name: model, type: llm-scripted, settings: {turns: [{text: a}]}}"
TOOL = "{name: look, description: Looks, process: [{type: set-payload, settings: {value: body}}]}"


def stamp(keys: str, tools: str = TOOL) -> Any:
    loaded = config(
        f"{{connectors: [{MODEL}], flows: [{{name: a, process: [{{type: ai-agent, tools: [{tools}], {keys}}}]}}]}}"
    )
    return inline(loaded.flows[0].process[0])  # type: ignore[arg-type]  # an agent


def test_an_agent_that_is_written_in_its_block_is_known_by_its_value() -> None:
    found = stamp("connector: model, prompt: Look")

    assert (found.name, found.source, found.version, len(found.hash)) == ("", "inline", None, 32)


@pytest.mark.parametrize(
    ("keys", "is_same"),
    [
        ("prompt: Look, connector: model", True),
        ("connector: model, prompt: Look, name: other, answer: text, default: {process: []}", True),
        ("connector: model, prompt: Look twice", False),
        ("connector: model, prompt: Look, temperature: 0.5", False),
    ],
    ids=["another order", "what belongs to the block", "another prompt", "another setting"],
)
def test_the_hash_changes_with_what_makes_the_agent(keys: str, is_same: bool) -> None:
    assert (stamp(keys).hash == stamp("connector: model, prompt: Look").hash) is is_same


def test_the_hash_changes_with_what_a_tool_does() -> None:
    other = TOOL.replace("value: body", "value: '1'")

    assert stamp("connector: model, prompt: Look", other).hash != stamp("connector: model, prompt: Look").hash


def test_an_agent_with_a_name_that_is_written_in_the_same_words_has_the_same_hash() -> None:
    keys = "connector: model, system_prompt: Look, maxTokens: 5, outputSchema: {type: object}"
    tool = TOOL.replace("process:", "inputs: {a: 1, b: {expr: body.b}}, process:")
    loaded = config(f"{{connectors: [{MODEL}], agents: {{a: {{tools: [{tool}], {keys}}}}}}}")
    (declared,) = read(loaded)

    assert stamp(keys, tool).hash == declared.hash


def test_the_hash_changes_with_the_file_of_a_prompt(tmp_path: Path) -> None:
    def hash_of(text: str) -> str:
        (tmp_path / "p.md").write_text(text, encoding="utf-8")
        agent = f"{{type: ai-agent, tools: [{TOOL}], connector: model, prompt: {{resource: p.md}}}}"
        file = tmp_path / "app.yaml"
        file.write_text(f"{{connectors: [{MODEL}], flows: [{{name: a, process: [{agent}]}}]}}", encoding="utf-8")
        return inline(octo.load(file, environ={}).flows[0].process[0]).hash  # type: ignore[arg-type]  # an agent

    assert hash_of("one") == hash_of("one") != hash_of("two")
