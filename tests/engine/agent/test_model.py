"""octo/agent/model.py: the keys of an agent, and what is refused of them."""

import pytest

from fake_model import TOOL, config_text, reply, run
from octo.errors import ConfigError
from octo.testing import harness

CONFIG = """
connectors:
  - name: m
    type: llm-scripted
    settings:
      turns:
        - text: hi
  - name: web
    type: {other}
    settings: {{turns: [{{text: x}}]}}
flows:
  - name: f
    process:
      - type: ai-agent
"""


def problems(keys):
    """What is wrong with an agent that has these keys: line below the block, message, hint."""
    text = CONFIG.format(other="llm-scripted")
    start = text.count("\n")
    lines = keys.strip("\n").split("\n")
    text += "\n".join(f"        {line}" for line in lines)
    try:
        harness.config(text)
    except ConfigError as error:
        return [
            (problem.location.line - start if problem.location else None, problem.message, problem.hint)
            for problem in error.problems
        ]
    return []


GOOD = """
connector: m
prompt: Do it.
tools:
  - name: t
    description: A tool.
    process: []
"""


def test_the_least_that_an_agent_needs():
    assert problems(GOOD) == []


@pytest.mark.parametrize(
    ("keys", "messages"),
    [
        pytest.param(
            "name: ag",
            ["ai-agent requires a connector, a prompt, at least one tool"],
            id="nothing",
        ),
        pytest.param(GOOD.replace("Do it.", "' '"), ["ai-agent requires a prompt, found none"], id="blank prompt"),
        pytest.param(
            "connector: m\nprompt: Do it.\ntools: []",
            ["ai-agent requires at least one tool, found none"],
            id="no tools",
        ),
        pytest.param(
            GOOD.replace("connector: m", "connector: ' '"),
            ["ai-agent: expected the name of a connector, found blank text"],
            id="blank connector",
        ),
        pytest.param(
            GOOD.replace("connector: m", "connector: n"),
            ['ai-agent: connector "n" is not configured'],
            id="unknown connector",
        ),
        pytest.param(
            f"{GOOD}maxIterations: 1001", ["ai-agent: `maxIterations` is at most 1000, found 1001"], id="too many turns"
        ),
        pytest.param(
            f"{GOOD}maxParallelTools: -1", ["ai-agent: `maxParallelTools` is at least 1, found -1"], id="parallel"
        ),
        pytest.param(f"{GOOD}maxTokens: 0", ["ai-agent: `maxTokens` is at least 1, found 0"], id="cap"),
        pytest.param(f"{GOOD}answer: yaml", ["ai-agent: `answer` is `json` or `text`, found `yaml`"], id="answer"),
        pytest.param(
            f"{GOOD}memoryMaxTokens: 500",
            [
                "ai-agent: `memoryMaxTokens` was renamed to `contextMaxTokens`, which is the budget of the whole "
                "prompt: system text, tools and conversation"
            ],
            id="retired key",
        ),
        pytest.param(
            f"{GOOD}attachments: body.files",
            [
                "ai-agent: `attachments` requires `input`: without it the whole body is sent as JSON, and each file "
                "in the body would go out a second time as base64 text, stay there, and be paid for on every turn"
            ],
            id="attachments without input",
        ),
        pytest.param(
            f"{GOOD}attachments: body.files\ninput: ''",
            [
                "ai-agent: `attachments` requires `input`: without it the whole body is sent as JSON, and each file "
                "in the body would go out a second time as base64 text, stay there, and be paid for on every turn"
            ],
            id="attachments with blank input",
        ),
        pytest.param(
            f"{GOOD}input: body.a +", ['compile expression "body.a +": unexpected end of expression'], id="input"
        ),
        pytest.param(f"{GOOD}prompts: x", ['unknown field "prompts" in block `ai-agent`'], id="misspelt key"),
        pytest.param(f"{GOOD}stopWhen: 'true'", ['unknown field "stopWhen" in block `ai-agent`'], id="unknown key"),
        pytest.param(
            "settings:\n  connector: m",
            ["the keys of `ai-agent` stand beside `type`, not under `settings`"],
            id="keys under settings",
        ),
        pytest.param(
            f"{GOOD}default: {{process: [], workers: 2}}", ['unknown field "workers" in `default`'], id="default"
        ),
        pytest.param(
            f"{GOOD}user_message: body.a\ninput: body.b",
            ["`input` and `user_message` are two spellings of one key"],
            id="two spellings",
        ),
    ],
)
def test_a_mistake_in_the_block_is_refused(keys, messages):
    assert [message for _, message, _ in problems(keys)] == messages


def test_all_that_is_wrong_with_an_agent_is_told_at_once():
    keys = """
connector: n
prompt: ' '
temperature: -1
maxTokens: 0
outputSchema: {type: strin}
maxIterations: 1001
maxParallelTools: -1
memoryCompaction: squeeze
skills: [{name: s, description: d}]
history: always
userMemory: true
nameThread: {process: []}
forwardContext: body
answer: yaml
tools:
  - {name: t, description: d, process: []}
  - {name: t, description: d, process: []}
  - {name: s, description: d, process: []}
  - {description: d, process: []}
"""

    assert [(line, message) for line, message, _ in problems(keys)] == [
        (1, 'ai-agent: connector "n" is not configured'),
        (2, "ai-agent requires a prompt, found none"),
        (3, "ai-agent: `temperature` is at least 0, found -1"),
        (4, "ai-agent: `maxTokens` is at least 1, found 0"),
        (
            5,
            'ai-agent: `outputSchema` is not usable: "strin" is not valid under any of the schemas listed in the '
            "'anyOf' keyword",
        ),
        (6, "ai-agent: `maxIterations` is at most 1000, found 1001"),
        (7, "ai-agent: `maxParallelTools` is at least 1, found -1"),
        (8, "ai-agent: `memoryCompaction` is `prune` or `summarize`, found `squeeze`"),
        (9, "ai-agent skill `s` requires `resource`"),
        (10, "ai-agent: `history` is `record` or `off`, found `always`"),
        (11, "ai-agent: `userMemory` requires `agentId`"),
        (11, "ai-agent: `userMemory` requires `userId`, for facts are about a person"),
        (12, "ai-agent: `nameThread` requires `agentId`"),
        (13, "ai-agent: `forwardContext` requires `agentId`"),
        (14, "ai-agent: `answer` is `json` or `text`, found `yaml`"),
        (17, "ai-agent tool `t` is declared twice"),
        (19, "ai-agent requires a name for tool 3"),
    ]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{enum: 5}", '5 is not of type "array"'),
        (
            "{properties: {a: {type: strin}}}",
            "\"strin\" is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        ("{required: a}", '"a" is not of type "array"'),
        ("{properties: {a: {pattern: '('}}}", '"(" is not a "regex"'),
        ("{$ref: 'https://example.org/x.json'}", "a schema must not refer to other documents"),
    ],
    ids=["enum", "type", "required", "pattern", "another document"],
)
def test_a_form_of_the_answer_that_cannot_be_checked_is_refused(schema, why):
    assert problems(f"{GOOD}outputSchema: {schema}") == [(7, f"ai-agent: `outputSchema` is not usable: {why}", None)]


def test_an_unusual_temperature_is_warned_of():
    text = config_text(f"temperature: 99\n{TOOL}")

    assert [(one.message, one.hint) for one in harness.config(text).warnings] == [
        ("ai-agent: `temperature` is 99, and no provider is known to take more than 2", None)
    ]


@pytest.mark.parametrize(
    ("keys", "why", "hint"),
    [
        pytest.param(
            "outputSchema: {type: array, items: {type: string}}",
            "it has no `properties`",
            "it is for objects: `{type: object, properties: {…}}`",
            id="no properties",
        ),
        pytest.param(
            "outputType: image\noutputSchema: {properties: {a: {}}}",
            "the answer is an image",
            "remove it",
            id="an image",
        ),
    ],
)
def test_a_form_of_the_answer_that_nothing_is_held_to_is_warned_of(keys, why, hint):
    (warning,) = harness.config(config_text(f"{keys}\n{TOOL}")).warnings

    assert (warning.message, warning.hint) == (f"ai-agent: `outputSchema` has no effect: {why}", hint)


async def test_a_blank_model_and_a_blank_effort_are_those_of_the_connector():
    ran = await run(f"model: ' '\nreasoningEffort: ' '\n{TOOL}", reply("ok"))

    assert (ran.requests[0].model, ran.requests[0].reasoning_effort) == (None, None)


TOOLS = "connector: m\nprompt: Do it.\ntools:\n"


@pytest.mark.parametrize(
    ("tools", "messages"),
    [
        pytest.param(
            "  - {description: d, process: []}", [(4, "ai-agent requires a name for tool 0")], id="without name"
        ),
        pytest.param(
            "  - {name: t, process: []}", [(4, "ai-agent tool `t` requires a description")], id="without description"
        ),
        pytest.param(
            "  - {name: t, description: d}", [(4, "ai-agent tool `t` requires `process`")], id="without process"
        ),
        pytest.param(
            "  - {name: t, description: d, process: []}\n  - {name: t, description: d, process: []}",
            [(5, "ai-agent tool `t` is declared twice")],
            id="declared twice",
        ),
        pytest.param(
            "  - {name: load_skill, description: d, process: []}",
            [(4, "ai-agent tool `load_skill`: the name is reserved")],
            id="load_skill",
        ),
        pytest.param(
            "  - {name: take_default_path, description: d, process: []}",
            [(4, "ai-agent tool `take_default_path`: the name is reserved")],
            id="take_default_path",
        ),
        pytest.param(
            "  - {name: t, description: d, process: [], title: T, annotations: {}}",
            [
                (4, "ai-agent tool `t`: `title` belongs to the tools of an `mcp-router`"),
                (4, "ai-agent tool `t`: `annotations` belongs to the tools of an `mcp-router`"),
            ],
            id="metadata of a server",
        ),
        pytest.param(
            "  - name: t\n    description: d\n    inputSchema: '{'\n    process: []",
            [
                (
                    6,
                    "expected a JSON Schema, found text that is not JSON: expecting property name enclosed in double "
                    "quotes at line 1, column 2",
                )
            ],
            id="schema that is not JSON",
        ),
        pytest.param(
            "  - name: t\n    description: d\n    process:\n      - type: set-paylod",
            [(7, 'block "set-paylod" not registered')],
            id="blocks that do not build",
        ),
        pytest.param(
            "  - name: t\n    description: d\n    inputs: {p: {expr: 'body.'}}\n    process: []",
            [(6, 'compile expression "body.": expected a name after `.`, found end of expression')],
            id="binding that does not compile",
        ),
        pytest.param(
            "  - name: t\n    description: d\n    inputs: {p: {ai: false}}\n    process: []",
            [(6, "expected `{ai: true}`, found `{ai: false}`")],
            id="binding to no model",
        ),
        pytest.param(
            "  - {name: t, description: d, process: [], authorise: x}",
            [(4, 'unknown field "authorise" in an entry of `tools`')],
            id="unknown key",
        ),
    ],
)
def test_a_mistake_in_a_tool_is_refused_where_it_stands(tools, messages):
    assert [(line, message) for line, message, _ in problems(TOOLS + tools)] == messages


def test_a_schema_that_is_not_usable_is_a_warning():
    config = harness.config(
        CONFIG.format(other="llm-scripted")
        + "        connector: m\n        prompt: p\n        tools:\n"
        + "          - {name: t, description: d, process: [], inputSchema: {required: [a, a]}}"
    )

    assert [problem.message for problem in config.warnings] == [
        "ai-agent tool `t`: arguments are not checked, since its schema is not usable: "
        '["a","a"] has non-unique elements'
    ]


def test_a_tool_name_that_providers_refuse_is_a_warning():
    config = harness.config(config_text("tools: [{name: 'look up', description: d, process: []}]"))

    assert [problem.message for problem in config.warnings] == ["ai-agent tool `look up`: providers refuse this name"]


@pytest.mark.parametrize(
    ("type", "settings", "effort", "found"),
    [
        (
            "llm-anthropic",
            "apiKey: k",
            "lots",
            (
                'ai-agent: connector "m" knows no effort `lots`',
                "known names: `none`, `low`, `medium`, `high`, `xhigh`, `max`",
            ),
        ),
        (
            "llm-anthropic",
            "apiKey: k",
            "hihg",
            ('ai-agent: connector "m" knows no effort `hihg`', "did you mean `high`?"),
        ),
        ("llm-anthropic", "apiKey: k", "max", None),
        ("llm-anthropic", "apiKey: k", "none", None),
        ("llm-anthropic", "apiKey: k", "''", None),
        ("llm-scripted", "turns: [{}]", "lots", None),
    ],
    ids=["unknown", "misspelt", "known", "off", "empty", "a model that takes any"],
)
def test_an_effort_that_the_connector_does_not_know_is_refused(type, settings, effort, found):
    text = f"""
connectors:
  - {{name: m, type: {type}, settings: {{{settings}}}}}
flows:
  - name: f
    process:
      - type: ai-agent
        reasoningEffort: {effort}
""" + "\n".join(f"        {line}" for line in GOOD.strip().split("\n"))
    problems = []
    try:
        harness.config(text)
    except ConfigError as error:
        problems = [
            (str(problem.location).split(":", 1)[1], problem.message, problem.hint) for problem in error.problems
        ]

    assert problems == ([("8:26", *found)] if found else [])


@pytest.mark.parametrize(
    ("keys", "warned"),
    [("maxTokens: 2000", True), ("maxTokens: 2001", False), ("maxTokens: 2000\nreasoningEffort: high", False)],
    ids=["too few", "enough", "another way to think"],
)
def test_a_cap_that_leaves_no_room_to_think_is_warned_of(keys, warned):
    text = config_text(f"{keys}\n{TOOL}").replace("llm-scripted", "llm-anthropic")
    text = text.replace("{turns: [{text: x}]}", "{apiKey: k, thinking: budgeted, thinkingBudget: 2000}")
    message = (
        'ai-agent: `maxTokens` is 2000, not above the `thinkingBudget` 2000 of connector "m", '
        "so the model does not think"
    )

    assert [one.message for one in harness.config(text).warnings] == ([message] if warned else [])


def test_blocks_of_tools_and_default_are_addressed_by_their_names():
    keys = (
        "name: plan\n"
        + GOOD.replace("process: []", "process: [{type: log, name: note, settings: {message: '\"x\"'}}]")
        + "default: {process: [{type: log, settings: {message: '\"y\"'}}]}"
    )
    text = CONFIG.format(other="llm-scripted") + "\n".join(f"        {line}" for line in keys.split("\n"))
    (agent,) = harness.config(text).flows[0].process

    assert [block.address for branch in agent.branches() for block in branch.chain] == [
        "f.plan[t].note",
        "f.plan[default].log",
    ]


@pytest.mark.parametrize(
    ("spelling", "key"),
    [
        ("system_prompt: Do it.", "prompt: Do it."),
        ("user_message: body.q", "input: body.q"),
        ("max_iterations: 3", "maxIterations: 3"),
        ("max_completion_tokens: 50", "maxTokens: 50"),
        ("input: body.q\nuser_attachments: '[]'", "input: body.q\nattachments: '[]'"),
        ("input: body.q\nuser_images: '[]'", "input: body.q\nattachments: '[]'"),
    ],
)
async def test_other_spellings_mean_the_same(spelling, key):
    base = GOOD if "prompt" not in key else GOOD.replace("prompt: Do it.\n", "")

    assert problems(base + spelling) == problems(base + key) == []
