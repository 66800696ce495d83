"""octo/agent/memory/policy.py, octo/agent/memory/given.py, octo/agent/inputs.py: what a config may say of memory, and
what is refused.
"""

import pytest

from octo.agent.memory.policy import Policy
from octo.errors import ConfigError
from octo.testing import harness

AGENT = """
flows:
  - name: f
    process:
      - type: ai-agent
        {name}
        connector: m
        prompt: Do it.
        tools: [{{name: t, description: T., process: []}}]
        {keys}
connectors: [{{name: m, type: llm-scripted, settings: {{turns: [{{text: x}}]}}}}]
"""
BAKED = "0c3f4b5e-0000-4000-8000-00000000000a"
FORM = "each message is `{role, content}`, as the Chat Completions API has them"


def problems(keys, name="name: ag"):
    """What is wrong with an agent that has these keys: the text that is pointed at, the message, the hint."""
    text = AGENT.format(keys=keys, name=name)
    try:
        harness.config(text)
    except ConfigError as error:
        found = []
        for problem in error.problems:
            line = text.split("\n")[problem.location.line - 1]
            found.append((line[problem.location.column - 1 :], problem.message, problem.hint))
        return found
    return []


@pytest.mark.parametrize(
    ("written", "mode", "bound"),
    [
        ({"kind": "off"}, "off", None),
        ({"kind": "window", "contextLength": 0}, "off", 0),
        ({"kind": "window", "contextLength": 3}, "managed", 3),
        ({"kind": "window", "context_length": 3}, "managed", 3),
        ({"kind": "compaction"}, "managed", None),
        ({"kind": "compaction", "contextWindow": 8000}, "managed", None),
        ({"kind": "auto"}, "off", None),
        ({"kind": "auto", "contextLength": 0, "memoryId": BAKED}, "off", 0),
        ({"kind": "auto", "contextLength": 3}, "auto", 3),
        ({"kind": "manual"}, "manual", None),
        ({"kind": "manual", "messages": []}, "manual", None),
    ],
)
def test_how_a_policy_is_read(written, mode, bound):
    policy = Policy.model_validate(written)

    assert (policy.mode, policy.bound) == (mode, bound)


@pytest.mark.parametrize("id", [BAKED, BAKED.upper(), f"{{{BAKED}}}", f" {BAKED} "])
def test_a_baked_id_is_the_key_itself(id):
    assert Policy.model_validate({"kind": "auto", "contextLength": 1, "memoryId": id}).baked_id == BAKED


def test_a_blank_baked_id_is_none():
    assert Policy.model_validate({"kind": "auto", "contextLength": 1, "memoryId": " "}).baked_id == ""


def test_memory_counts_before_the_oldest_spelling():
    config = harness.config(AGENT.format(name="name: ag", keys="memory: {kind: off}\n        messagesContextLength: 5"))

    assert config.flows[0].process[0].policy.mode == "off"


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        pytest.param(
            "memory: {contextLength: 5}",
            [
                (
                    "{contextLength: 5}",
                    "ai-agent memory requires `kind`",
                    "for example `{kind: window, contextLength: 20}`",
                )
            ],
            id="no kind",
        ),
        pytest.param(
            "memory: {kind: windows, contextLength: 5}",
            [
                (
                    "windows, contextLength: 5}",
                    "expected `off` or `window` or `compaction` or `auto` or `manual`, found `windows`",
                    "did you mean `window`?",
                )
            ],
            id="unknown kind",
        ),
        pytest.param(
            "memory: {kind: window}",
            [("{kind: window}", "ai-agent memory: `kind: window` requires `contextLength`", "0 remembers nothing")],
            id="a window without a length",
        ),
        pytest.param(
            "memory: {kind: window, contextLength: -1}",
            [("-1}", "ai-agent memory: `contextLength` is at least 0, found -1", None)],
            id="negative",
        ),
        pytest.param(
            "memory: {kind: window, contextLength: 1.5}",
            [("1.5}", "`contextLength`: expected a whole number, found the number 1.5", None)],
            id="fraction",
        ),
        pytest.param(
            "messagesContextLength: -2",
            [("-2", "ai-agent: `messagesContextLength` is at least 0, found -2", None)],
            id="negative, oldest spelling",
        ),
        pytest.param(
            "memory: {kind: compaction, contextWindow: -1}",
            [("-1}", "ai-agent memory: `contextWindow` is at least 0, found -1", None)],
            id="negative window",
        ),
        pytest.param(
            "memory: {kind: compaction, contextLength: 5}",
            [("contextLength: 5}", "ai-agent memory: `contextLength` has no effect with `kind: compaction`", None)],
            id="a key of another kind",
        ),
        pytest.param(
            f"memory: {{kind: window, contextLength: 5, memoryId: {BAKED}}}",
            [(f"memoryId: {BAKED}}}", "ai-agent memory: `memoryId` has no effect with `kind: window`", None)],
            id="an id in the policy",
        ),
        pytest.param(
            "memory: {kind: auto, contextLength: 5, memoryId: customer-1}",
            [
                (
                    "customer-1}",
                    "ai-agent memory: `memoryId` is a UUID, found `customer-1`",
                    "`memoryId` beside `memory` takes any text",
                )
            ],
            id="a baked id that is no UUID",
        ),
        pytest.param(
            "memory: {kind: manual, messages: [{role: user, content: a}, {role: robot, content: b}]}",
            [
                (
                    "[{role: user, content: a}, {role: robot, content: b}]}",
                    "ai-agent memory: messages: message 1: expected `system`, `developer`, `user`, `assistant` or "
                    '`tool` as `role`, found `"robot"`',
                    FORM,
                )
            ],
            id="messages that are none",
        ),
        pytest.param(
            "memory: {kind: window, contextLength: 5}\n        memoryThreadId: body.chat",
            [
                (
                    "memoryThreadId: body.chat",
                    "ai-agent: `memory` and `memoryThreadId` are two ways to remember, and a block takes one of them",
                    "remove one of the two",
                )
            ],
            id="memory and a thread",
        ),
        pytest.param(
            "memoryId: body.a\n        previousMessages: []\n        memoryThreadId: body.chat",
            [
                (
                    "memoryId: body.a",
                    "ai-agent: `memoryId` has no effect in a thread, which `memoryThreadId` names",
                    "remove one of the two",
                ),
                (
                    "previousMessages: []",
                    "ai-agent: `previousMessages` has no effect in a thread, which `memoryThreadId` names",
                    "remove one of the two",
                ),
            ],
            id="a key and a thread",
        ),
        pytest.param("memory: {kind: off}\n        memoryThreadId: body.chat", [], id="no memory and a thread"),
        pytest.param(
            "memoryId: {ai: true}",
            [("ai: true}", "`{ai: true}` is for parameters of tools", "write a value or an expression")],
            id="an id from the model",
        ),
        pytest.param(
            "memoryId: body.",
            [("", 'compile expression "body.": expected a name after `.`, found end of expression', None)],
            id="an expression that does not compile",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(keys, found):
    assert problems(keys) == found


def test_a_block_that_remembers_has_a_name_of_its_own():
    assert problems("memory: {kind: window, contextLength: 5}", name="x-name: ag") == [
        (
            "type: ai-agent",
            "ai-agent requires a `name` while memory is on",
            "add `name:`; what is remembered belongs to that name",
        )
    ]
    assert problems("memory: {kind: manual}", name="x-name: ag") == []
    twice = AGENT.format(keys="memory: {kind: window, contextLength: 5}", name="name: ag")
    block = twice[twice.index("      - type: ai-agent") : twice.index("connectors:")]
    with pytest.raises(ConfigError) as caught:
        harness.config(twice.replace(block, block + block))
    assert [problem.message for problem in caught.value.problems] == [
        "ai-agent: two blocks of one chain have the name `ag`"
    ] * 2


def test_a_block_that_remembers_stands_in_a_flow_with_a_name():
    text = AGENT.format(keys="memory: {kind: window, contextLength: 5}", name="name: ag")
    text = text.replace("- name: f", "- source: {type: cron, settings: {schedule: '@every 2s'}}")

    with pytest.raises(ConfigError) as caught:
        harness.config(text)
    assert [problem.message for problem in caught.value.problems] == [
        "ai-agent requires a flow with a `name` while memory is on"
    ]


def test_a_nested_agent_that_remembers_belongs_to_a_block_with_a_name():
    nested = "{connector: m, prompt: x, memory: {kind: window, contextLength: 2}}"
    text = AGENT.format(name="name: ag", keys="").replace("process: []", f"agent: {nested}")

    harness.config(text)
    with pytest.raises(ConfigError) as caught:
        harness.config(text.replace("name: ag", "x-name: ag"))
    assert [problem.message for problem in caught.value.problems] == ["ai-agent requires a `name` while memory is on"]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        pytest.param(
            "memoryId: body.id",
            (
                "ai-agent: `memoryId` has no effect while `memory` is off",
                "remove it, or have it remembered: `memory: {kind: window, contextLength: 20}`",
            ),
            id="an id without memory",
        ),
        pytest.param(
            "memory: {kind: window, contextLength: 1}\nmemoryId: body.id\npreviousMessages: body.said",
            ("ai-agent: `previousMessages` has no effect while `memory` is on", "remove one of the two"),
            id="messages and memory",
        ),
        pytest.param(
            "memory: {kind: manual}\nmemoryId: body.id",
            ("ai-agent: `memoryId` has no effect with `memory` of `kind: manual`", "remove one of the two"),
            id="an older spelling",
        ),
        pytest.param(
            "memoryVolatile: true",
            (
                "ai-agent: `memoryVolatile` has no effect without `memoryThreadId`",
                "say which conversation it is, for example `memoryThreadId: body.chat`",
            ),
            id="volatile without a thread",
        ),
        pytest.param(
            "memoryThreadId: body.chat\nuserId: vars.sub",
            (
                "ai-agent: `userId` has no effect without `agentId`",
                "give the agent an id, for example `agentId: support`",
            ),
            id="a person without an agent",
        ),
        pytest.param("memoryId: ' '", None, id="a blank id"),
        pytest.param("previousMessages: body.said", None, id="messages without memory"),
    ],
)
def test_what_has_no_effect_is_warned_of(keys, why):
    written = keys.replace("\n", "\n        ")

    warnings = harness.config(AGENT.format(keys=written, name="name: ag")).warnings

    assert [(one.message, one.hint) for one in warnings] == ([why] if why else [])


@pytest.mark.parametrize(
    ("agent", "inputs", "texts"),
    [
        ("", "memoryId: {value: x}", ["ai-agent: `memoryId` has no effect while `memory` is off"]),
        (
            ", memory: {kind: window, contextLength: 2}",
            "memoryId: {value: x}, previous_messages: {value: []}",
            ["ai-agent: `previous_messages` has no effect while `memory` is on"],
        ),
        ("", "previousMessages: {value: []}", []),
    ],
    ids=["an id without memory", "messages and memory", "messages without memory"],
)
def test_what_has_no_effect_on_a_nested_agent_is_warned_of(agent, inputs, texts):
    nested = f"agent: {{connector: m, prompt: x{agent}}}, inputs: {{{inputs}}}"
    text = AGENT.format(name="name: ag", keys="").replace("process: []", nested)

    assert [one.message for one in harness.config(text).warnings] == texts


def test_the_spellings_with_underscores_are_read():
    assert problems("memory_id: body.id\n        previous_messages: []") == []


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        (
            "{memoryMaxBytes: 0}",
            "store: `memoryMaxBytes` is at least 1, found 0",
            "leave it out for no limit",
        ),
        ("{maxBytes: 5}", 'unknown field "maxBytes" in `store`', "did you mean `memoryMaxBytes`?"),
    ],
)
def test_the_room_for_a_memory_is_a_number_of_bytes(written, message, hint):
    with pytest.raises(ConfigError) as caught:
        harness.config(f"store: {written}\nflows: []\n")

    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [(message, hint)]
