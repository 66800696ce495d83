"""octo/agent/memory/choice.py: which history a run starts with, every combination of policy, ids and messages."""

import pytest

from octo.agent.memory.choice import Choice, Inputs, choose, choose_for_image, lacking, memory_id
from octo.agent.memory.policy import Policy

LIST = [{"role": "user", "content": "before"}]
BAKED = "0c3f4b5e-0000-4000-8000-00000000000a"

NO_ID = "memory: no memory id was given to this run; running without memory"
EMPTY = "memory: memoryId of this block is empty; running without memory"
ON = "memory: memory is on; previousMessages of this block is ignored"
OFF = "memory: memory is off; memoryId of this block is ignored"
OLD_ID = "memory: legacy memory setting; memoryId of this block is not read"
OLD_LIST = "memory: legacy memory setting; previousMessages of this block is not read"
IMAGE = "memory: image output sends no history; memory settings are not read"

OFFS = [None, {"kind": "off"}, {"kind": "window", "contextLength": 0}, {"kind": "auto"}]


def policy(written=None):
    return Policy.model_validate(written) if written else Policy.of_length(0)


def chosen(written, memory_id=None, previous=None, *, run="run-key"):
    return choose(policy(written), Inputs(memory_id, previous), run_key=run, key_of=lambda id: f"key of {id}")


@pytest.mark.parametrize("written", OFFS, ids=str)
def test_without_memory_the_flow_may_supply_the_history(written):
    assert chosen(written, previous=LIST) == Choice("block", (), "", LIST)


def test_a_remembering_policy_that_ended_without_memory_still_needs_a_question():
    window = policy({"kind": "window", "contextLength": 2})

    assert lacking(Choice("none", (NO_ID,)), window) == "`input` is empty, and it is needed while memory is on"
    assert lacking(Choice("managed", (), "k"), window) == "`input` is empty, and it is needed while memory is on"


def test_a_list_of_messages_stands_for_a_question():
    nothing = "`input` is empty and there are no `previousMessages`, so there is nothing to ask the model"

    assert lacking(Choice("block", messages=LIST), policy()) == ""
    assert lacking(Choice("block", messages=[]), policy()) == nothing
    assert lacking(Choice("none"), policy()) == nothing
    assert lacking(Choice("legacy", messages=[]), policy({"kind": "manual"})) == ""


@pytest.mark.parametrize(
    ("written", "inputs", "lines"),
    [
        pytest.param(None, False, (), id="off and nothing set"),
        pytest.param(None, True, (IMAGE,), id="off and an input set"),
        pytest.param({"kind": "window", "contextLength": 1}, False, (IMAGE,), id="on"),
        pytest.param({"kind": "manual"}, False, (IMAGE,), id="manual"),
    ],
)
def test_an_image_has_no_history(written, inputs, lines):
    assert choose_for_image(policy(written), written=inputs) == Choice("none", lines)


@pytest.mark.parametrize(
    ("value", "fixed", "id"),
    [
        pytest.param(None, True, None, id="fixed null"),
        pytest.param("", True, None, id="fixed empty text"),
        pytest.param(" \t", True, None, id="fixed blank text"),
        pytest.param("c-1", True, "c-1", id="fixed text"),
        pytest.param(42.0, True, "42", id="fixed number"),
        pytest.param("c-1", False, "c-1", id="text"),
        pytest.param(" c-1 ", False, "c-1", id="text with space around"),
        pytest.param(42.0, False, "42", id="number"),
        pytest.param(True, False, "true", id="boolean"),
        pytest.param(["a"], False, '["a"]', id="list"),
        pytest.param({"b": 1.0, "a": None}, False, '{"a":null,"b":1}', id="mapping"),
        pytest.param([], False, "[]", id="empty list"),
        pytest.param(None, False, "", id="null"),
        pytest.param("", False, "", id="empty text"),
        pytest.param("  ", False, "", id="blank text"),
    ],
)
def test_what_a_memory_id_counts_as(value, fixed, id):
    assert memory_id(value, fixed=fixed) == id
