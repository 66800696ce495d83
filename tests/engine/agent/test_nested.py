"""octo/agent/nested.py, octo/agent/value.py: an agent as a tool of another agent."""

import asyncio

import pytest

from fake_model import FakeModel, FakeRuntime, Listener, call, config_text, problems, reply
from octo.config import address
from octo.errors import BlockError
from octo.llm.chat import File, Text, Usage
from octo.observe import AgentEnded, BlockEntered, LogLine, ToolReturned
from octo.testing import harness

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


def nested(keys="", inputs="{}", tools=""):
    """The keys of an agent with one tool that is an agent on the connector `n`."""
    return (
        f"tools:\n  - name: helper\n    inputs: {inputs}\n    agent:\n"
        f"      description: Helps.\n      connector: n\n      prompt: Help.\n"
        + "".join(f"      {line}\n" for line in keys.strip().splitlines())
        + (f"      tools: [{tools}]\n" if tools else "")
    )


LOOK = "{name: look, process: [{type: set-payload, settings: {value: '{\"seen\": body}'}}]}"
KEEP = "{name: keep, process: [{type: set-variable, settings: {name: kept, value: body.n}}]}"


def ask(text="What?", id=None):
    return call("helper", {"user_message": text}, id)


class Models(FakeRuntime):
    """A runtime in which each connector has a model of its own."""

    models: dict[str, FakeModel]

    def live(self, name, kind):
        return self.models[name]


class Ran:
    def __init__(self, message, models):
        self.message = message
        self.outer, self.inner = (models[name].requests for name in ("m", "n"))

    @property
    def results(self):
        """What the outer model read of its calls."""
        turns = [turn for turn in self.outer[-1].messages if turn.role == "tool"]
        return [(part.text, part.is_error) for turn in turns for part in turn.parts]


def with_n(keys):
    """A config of one agent, with a second connector."""
    another = "  - name: n\n    type: llm-scripted\n    settings: {turns: [{text: x}]}\n"
    return config_text(keys).replace("flows:", f"{another}flows:", 1)


async def run(keys, outer, inner, *, body=None, observers=()):
    runtime = Models(harness.config(with_n(keys)), observers=observers)
    runtime.models = {"m": FakeModel(outer), "n": FakeModel(inner)}
    async with runtime:
        message = await runtime.invoke("f", body)
    assert [model.replies for model in runtime.models.values()] == [[], []]
    return Ran(message, runtime.models)


# ---------------------------------------------------------------- the task and the answer


async def test_the_model_sees_one_parameter_which_is_the_task_in_words():
    ran = await run(nested(), [reply("done")], [])

    (tool,) = ran.outer[0].tools
    assert (tool.name, tool.description) == ("helper", "Helps.")
    assert tool.input_schema == {
        "type": "object",
        "required": ["user_message"],
        "additionalProperties": False,
        "properties": {
            "user_message": {
                "type": "string",
                "description": "What is to be done, with all that one must know for it.",
            }
        },
    }


@pytest.mark.parametrize(
    ("entry", "description"),
    [
        pytest.param("{name: h, description: Mine., agent: {connector: m, prompt: x}}", "Mine.", id="of the tool"),
        pytest.param("{name: h, agent: {connector: m, prompt: x, description: His.}}", "His.", id="of the agent"),
        pytest.param("{name: h, agent: {connector: m, prompt: x}}", "h", id="the name of the tool"),
    ],
)
async def test_an_agent_is_described_to_the_model(entry, description):
    ran = await run(f"tools: [{entry}]", [reply("done")], [])

    assert ran.outer[0].tools[0].description == description


async def test_the_agent_is_asked_the_task_and_nothing_else():
    ran = await run(nested(tools=LOOK), [reply("", ask("What is Oslo?")), reply("done")], [reply("A city.")], body="b")

    (request,) = ran.inner
    assert [turn.text for turn in request.messages] == ["What is Oslo?"]
    assert request.system.endswith("\n\nHelp.") and "JSON only" not in request.system
    assert [tool.name for tool in request.tools] == ["look"]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        pytest.param("A city.", '"A city."', id="text"),
        pytest.param('{"b": 1, "a": [true]}', '{"a":[true],"b":1}', id="JSON"),
        pytest.param("```json\n5\n```", "5", id="JSON in a fence"),
    ],
)
async def test_its_answer_is_the_result(answer, result):
    ran = await run(nested(), [reply("", ask()), reply("done")], [reply(answer)])

    assert ran.results == [(result, False)]


async def test_what_it_said_in_between_stays_with_it():
    inner = [reply("I look.", call("look", {"n": 1})), reply("Seen.")]
    ran = await run(nested(tools=LOOK), [reply("", ask()), reply("done")], inner)

    assert ran.results == [('"Seen."', False)]
    assert ran.inner[1].messages[2].parts[0].text == '{"seen":{"n":1}}'
    assert "I look." not in str(ran.outer[1].messages)


async def test_its_tools_work_on_the_message_of_the_flow():
    ran = await run(
        nested(tools=KEEP), [reply("", ask()), reply("done")], [reply("", call("keep", {"n": 7})), reply("ok")]
    )

    assert ran.message.vars["kept"] == 7.0


async def test_arguments_beside_the_task_are_refused():
    calls = call("helper", {"user_message": "x", "memoryId": "mine"})
    ran = await run(nested(), [reply("", calls), reply("done")], [])

    ((text, is_error),) = ran.results
    assert is_error and text.startswith("invalid arguments: additional properties are not allowed ('memoryId'")


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("keys", "inner", "text"),
    [
        pytest.param(
            "maxIterations: 1",
            [reply("", call("look"))],
            'block "ai-agent": ai-agent: exceeded max iterations',
            id="no answer in time",
        ),
        pytest.param(
            "",
            [reply("No.", stop="refusal")],
            'block "ai-agent": ai-agent: model refused (No.)',
            id="refusal",
        ),
        pytest.param(
            "",
            [reply(""), reply("")],
            'block "ai-agent": ai-agent: the model gave an empty answer twice, and no tool ran',
            id="empty answer",
        ),
    ],
)
async def test_a_run_without_an_answer_is_a_failed_result(keys, inner, text):
    ran = await run(nested(keys, tools=LOOK), [reply("", ask()), reply("done")], inner)

    assert ran.results == [(text, True)]
    assert ran.message.body == "done"


async def test_a_task_of_nothing_is_a_failed_result():
    ran = await run(nested(), [reply("", ask("")), reply("done")], [])

    ((text, is_error),) = ran.results
    assert is_error and text.startswith('block "ai-agent": ai-agent: `user_message` is empty')


# ---------------------------------------------------------------- inputs


async def test_the_config_may_set_the_task():
    keys = nested(inputs="{user_message: {expr: '\"About \" + body.topic'}}")
    ran = await run(keys, [reply("", call("helper")), reply("done")], [reply("ok")], body={"topic": "tea"})

    assert ran.outer[0].tools[0].input_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {},
    }
    assert ran.inner[0].messages[0].text == "About tea"


@pytest.mark.parametrize("name", ["attachments", "user_attachments", "user_images"])
async def test_the_config_may_hand_it_files(name):
    keys = nested(inputs=f"{{{name}: {{expr: body.files}}}}")
    body = {"files": [{"mimeType": "image/png", "name": "a.png", "data": PNG}]}
    ran = await run(keys, [reply("", ask("See?")), reply("done")], [reply("ok")], body=body)

    assert [type(part) for part in ran.inner[0].messages[0].parts] == [File, Text]


async def test_files_that_cannot_be_read_are_a_failed_result():
    keys = nested(inputs="{attachments: {value: [5]}}")
    ran = await run(keys, [reply("", ask()), reply("done")], [])

    text = 'block "ai-agent": ai-agent: attachment 0: expected a mapping with `mimeType` and `data`, got a number'
    assert ran.results == [(text, True)]


@pytest.mark.parametrize("name", ["enabledTools", "enabled_tools"])
async def test_the_config_may_narrow_its_tools(name):
    keys = nested(inputs=f"{{{name}: {{value: [keep]}}}}", tools=f"{LOOK}, {KEEP}")
    ran = await run(keys, [reply("", ask()), reply("done")], [reply("ok")])

    assert [tool.name for tool in ran.inner[0].tools] == ["keep"]


async def test_a_block_binds_the_inputs_of_an_agent_in_its_own_way():
    keys = nested(inputs="{user_message: Old}") + "toolInputs: {helper: {user_message: {value: New}}}\n"
    ran = await run(keys, [reply("", call("helper")), reply("done")], [reply("ok")])

    assert ran.inner[0].messages[0].text == "New"


def test_an_input_that_an_agent_has_not_is_warned_of():
    keys = nested().replace("connector: n", "connector: m") + "toolInputs: {helper: {user_mesage: x}}\n"

    assert problems(keys) == [("ai-agent tool `helper` has no parameter `user_mesage`", "did you mean `user_message`?")]


# ---------------------------------------------------------------- its own way of being asked


async def test_a_form_of_the_answer_and_skills_work_as_in_a_block():
    keys = """
outputSchema: {type: object, required: [n], properties: {n: {type: integer}}}
maxTokens: 50
temperature: 0.5
skills: [{name: s, description: d, resource: r.md}]
"""
    ran = await run(nested(keys), [reply("", ask()), reply("done")], [reply('{"n": "x"}'), reply('{"n": 1}')])

    request = ran.inner[0]
    assert (request.max_tokens, request.temperature, [tool.name for tool in request.tools]) == (50, 0.5, ["load_skill"])
    assert "- s: d" in request.system
    assert ran.results == [('{"n":1}', False)]


async def test_an_agent_that_draws_gives_the_image():
    picture = reply("", files=[File("image/png", b"png", "")])
    ran = await run(nested("outputType: image"), [reply("", ask()), reply("done")], [picture])

    assert ran.results == [('{"data":"cG5n","mimeType":"image/png","name":"image.png"}', False)]


# ---------------------------------------------------------------- budgets, records, addresses


async def test_what_it_spends_is_charged_to_the_agent_around_it():
    usage = Usage(input_tokens=80, output_tokens=20)
    keys = (
        nested()
        + "budget: {maxTokens: 100}\ndefault: {process: [{type: set-payload, settings: {value: '\"spent\"'}}]}\n"
    )
    ran = await run(keys, [reply("", ask())], [reply("ok", usage=usage)])

    assert ran.message.body == "spent"


async def test_a_budget_that_is_spent_ends_it_as_well():
    usage = Usage(input_tokens=100)
    keys = nested(tools=LOOK) + "budget: {maxTokens: 100}\ndefault: {process: []}\n"
    log = Listener(ToolReturned)
    await run(keys, [reply("", ask())], [reply("", call("look"), usage=usage)], observers=[log])

    told = 'block "ai-agent": ai-agent: budget exceeded (`maxTokens` is 100, 100 are used up)'
    assert log.events[-1].text == told


async def test_its_tokens_are_told_under_its_own_address():
    ended = Listener(AgentEnded)
    await run(
        nested(),
        [reply("", ask(), usage=Usage(input_tokens=1)), reply("done", usage=Usage(input_tokens=2))],
        [reply("ok", usage=Usage(input_tokens=50))],
        observers=[ended],
    )

    assert [(event.address, event.usage.input_tokens) for event in ended.events] == [
        ("f.ag[helper].ai-agent", 50),
        ("f.ag", 3),
    ]


async def test_everything_inside_has_an_address():
    entered = Listener(BlockEntered)
    await run(
        nested(tools=LOOK),
        [reply("", ask()), reply("done")],
        [reply("", call("look")), reply("ok")],
        observers=[entered],
    )

    assert [event.address for event in entered.events] == [
        "f.ag",
        "f.ag[helper].ai-agent",
        "f.ag[helper].ai-agent[look].set-payload",
    ]


def test_an_address_leads_to_an_agent_inside_and_to_what_it_calls():
    text = config_text(nested(tools=LOOK).replace("connector: n", "connector: m"))
    config = harness.config(text)

    found = address.find(config, "f.ag[helper].ai-agent[look].set-payload")
    assert (found.address, str(config.origin.locate(found.place.path)).rpartition("config.yaml:")[2]) == (
        "f.ag[helper].ai-agent[look].set-payload",
        "20:46",
    )


# ---------------------------------------------------------------- at once


async def test_agents_flows_and_blocks_of_one_turn_run_at_once():
    """All of them wait for one another, which only works when all are on their way."""
    wait = "import asyncio\n\nall_here = asyncio.Barrier(4)\n\nasync def wait(body):\n    await all_here.wait()\n"
    step = "{type: python, settings: {file: wait.py, function: wait}}"
    tools = f"""
tools:
  - {{name: a, description: Waits., process: [{step}]}}
  - {{name: b, description: Waits., process: [{step}]}}
  - {{name: c, flow: slow}}
  - {{name: d, agent: {{connector: n, prompt: x, tools: [{{name: wait, process: [{step}]}}]}}}}
"""
    text = f"{with_n(tools).rstrip()}\n  - {{name: slow, process: [{step}]}}\n"
    runtime = Models(harness.config(text, files={"wait.py": wait}))
    calls = (call("a"), call("b"), call("c"), call("d", {"user_message": "Wait."}))
    inner = [reply("", call("wait")), reply("waited")]
    runtime.models = {"m": FakeModel([reply("", *calls), reply("done")]), "n": FakeModel(inner)}
    async with runtime, asyncio.timeout(5):
        message = await runtime.invoke("f", {})

    assert message.body == "done"


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        pytest.param(
            "{name: h, agent: {connector: m, prompt: x, tools: [{name: i, agent: {connector: m, prompt: y}}]}}",
            ("tool `i` of a nested agent is an agent: agents nest one level deep", "give the tool to the outer agent"),
            id="an agent in an agent in an agent",
        ),
        pytest.param(
            "{name: h, agent: {connector: m, prompt: x, default: {process: []}}}",
            (
                "`default` does not belong to an agent: it is how a flow uses an agent, and stays on the block",
                "remove it",
            ),
            id="a key of the block",
        ),
        pytest.param(
            "{name: h, agent: {connector: m, prompt: x, memoryThreadId: body.t}}",
            (
                "`memoryThreadId` does not belong to an agent: it names a conversation or a person, and stays on the "
                "block",
                "remove it",
            ),
            id="a thread",
        ),
        pytest.param(
            "{name: h, agent: {connector: m, prompt: x, input: body.q}}",
            (
                "`input` does not belong to an agent: what a nested agent is given stands under `inputs` of the tool",
                "remove it",
            ),
            id="an input",
        ),
        pytest.param(
            "{name: h, agent: {type: ai-agent, connector: m, prompt: x}}",
            ("`type` does not belong to an agent: it is no block; its keys stand right here", "remove it"),
            id="a block",
        ),
        pytest.param(
            "{name: h, agent: {name: n, connector: m, prompt: x}}",
            ("`name` does not belong to an agent: the name is that of the tool", "remove it"),
            id="a name of its own",
        ),
        pytest.param(
            "{name: h, agent: {connector: m, prompt: x, apiKey: k}}",
            (
                "`apiKey` does not belong to an agent: credentials stand in connectors only, and an agent names its "
                "connector",
                "remove it",
            ),
            id="a key",
        ),
        pytest.param("{name: h, agent: {connector: m}}", ("ai-agent requires a prompt", None), id="no prompt"),
        pytest.param(
            "{name: h, agent: {connector: nn, prompt: x}}",
            ('ai-agent: connector "nn" is not configured', "known names: `m`"),
            id="no such connector",
        ),
        pytest.param(
            "{name: h, agent: {connector: m, promt: x}}",
            ('unknown field "promt" in block `ai-agent`', "did you mean `prompt`?"),
            id="misspelt",
        ),
        pytest.param(
            "{name: h, inputSchema: {}, agent: {connector: m, prompt: x}}",
            ("ai-agent tool `h`: `inputSchema` has no effect beside `agent`", "remove it"),
            id="a schema",
        ),
        pytest.param(
            "{name: h, agent: {connector: m, prompt: x, tools: [{name: a-b, process: []}]}}",
            ("ai-agent tool `a-b`: a name has 1 to 64 letters, digits and `_`", None),
            id="a name with a dash",
        ),
        pytest.param(
            "{name: h, agent: ../helper}",
            (
                "`../helper` is no name of an agent",
                "a name is made of segments with `/` between them; a segment has letters, digits, `_`, `.` and `-`, "
                "and begins with a letter, a digit or `_`",
            ),
            id="a name that cannot be",
        ),
        pytest.param(
            "{name: h, agent: 5}",
            ("`agent`: expected a mapping, found a number", "a mapping has a `key: value` on each line"),
            id="a number",
        ),
    ],
)
def test_agents_that_cannot_work_are_refused(entry, found):
    assert found in [(text, hint) for text, hint in problems(f"tools: [{entry}]")]


async def test_a_log_of_what_is_wrong_with_files_names_the_agent():
    log = Listener(LogLine)
    keys = nested(inputs="{attachments: {expr: body.files}}")
    body = {"files": [{"mimeType": "image/jpeg", "name": "a.jpg", "data": PNG}]}
    await run(keys, [reply("", ask()), reply("done")], [reply("ok")], body=body, observers=[log])

    (line,) = (event for event in log.events if event.level == "warn")
    assert (line.text, line.fields["block"]) == (
        "attachment 0 is image/png by its bytes, not image/jpeg",
        "f.ag[helper].ai-agent",
    )


async def test_a_failing_outer_agent_fails_the_block_as_ever():
    with pytest.raises(BlockError) as caught:
        await run(nested(), [reply("", ask()), reply("", stop="refusal")], [reply("ok")])

    assert caught.value.message.startswith('block "ag": ai-agent: model refused')
