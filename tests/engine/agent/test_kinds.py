"""octo/agent/kinds.py: what stands behind a tool, above all a flow of the config."""

import pytest

from fake_model import FakeModel, FakeRuntime, call, config_text, reply
from octo.errors import ConfigError
from octo.testing import harness


async def called(blocks, arguments, *, tool="{name: h, flow: helper}", error="", vars=None, end=""):
    """What the model reads of a call of a flow with these blocks, and the message afterwards."""
    text = config_text(f"tools: [{tool}]").rstrip() + f"\n  - name: helper\n    process: [{blocks}]\n"
    text += f"    error: [{error}]\n" if error else ""
    runtime = FakeRuntime(harness.config(text))
    runtime.model = FakeModel([reply("", call("h", arguments)), reply(end)])
    async with runtime:
        message = await runtime.invoke("f", {}, vars=dict(vars or {}))
    result = runtime.model.requests[1].messages[-1].parts[0] if len(runtime.model.requests) > 1 else None
    return (result.text, result.is_error) if result else None, message


SET = '{type: set-payload, settings: {value: \'{"got": body.n, "who": vars.who}\'}}'
NOTE = "{type: set-variable, settings: {name: note, value: '\"kept\"'}}"
FAIL = "{type: set-payload, name: step, settings: {value: body.missing}}"
DIRECT = "{name: h, flow: helper}"
BY_REF = "{name: h, description: H., process: [{type: flow-ref, settings: {flow: helper}}]}"
BOTH = pytest.mark.parametrize("tool", [DIRECT, BY_REF], ids=["flow", "flow-ref"])


@BOTH
async def test_the_arguments_are_the_body_of_the_flow_and_its_body_is_the_result(tool):
    told, message = await called(SET, {"n": 1}, tool=tool, vars={"who": "Ada"})

    assert told == ('{"got":1,"who":"Ada"}', False)
    assert message.body == {"got": 1.0, "who": "Ada"}


@BOTH
async def test_the_variables_of_the_flow_come_back(tool):
    _, message = await called(NOTE, {}, tool=tool)

    assert message.vars["note"] == "kept"


@BOTH
async def test_a_flow_that_recovers_gives_an_ordinary_result(tool):
    recovery = "{type: set-payload, settings: {value: '{\"failed\": vars.error.block}'}}"

    assert (await called(FAIL, {}, tool=tool, error=recovery))[0] == ('{"failed":"step"}', False)


@pytest.mark.parametrize(
    ("tool", "before"),
    [
        pytest.param(DIRECT, "", id="flow"),
        pytest.param(BY_REF, 'block "flow-ref": flow-ref "helper": ', id="flow-ref"),
    ],
)
async def test_a_flow_that_fails_is_a_failed_result(tool, before):
    told, message = await called(FAIL, {"n": 1}, tool=tool)

    assert told == (f'{before}block "step": set-payload value: evaluate expression: no such key: missing', True)
    assert message.body == {"n": 1.0}
    assert "error" not in message.vars


async def test_bindings_fill_in_parameters_of_a_flow():
    tool = "{name: h, flow: helper, inputs: {n: {value: 7}}}"

    assert (await called(SET, {}, tool=tool, vars={"who": "Ada"}))[0] == ('{"got":7,"who":"Ada"}', False)


async def test_arguments_of_a_flow_are_checked_when_there_is_a_schema():
    tool = "{name: h, flow: helper, inputSchema: {type: object, required: [n]}}"

    assert (await called(SET, {}, tool=tool, end="done"))[0] == (
        "invalid arguments: at `n`: is required, but missing",
        True,
    )


@BOTH
async def test_a_flow_that_completes_early_completes_the_flow_of_the_agent(tool):
    text = config_text(f"tools: [{tool}]").rstrip() + (
        "\n      - {type: set-payload, settings: {value: '\"after\"'}}"
        "\n  - name: helper\n    process: [{type: validate, settings: {rules: [{expr: 'false'}]}}]\n"
    )
    runtime = FakeRuntime(harness.config(text))
    runtime.model = FakeModel([reply("", call("h", {"n": 1}))])
    async with runtime:
        message = await runtime.invoke("f", {})

    assert message.body != "after"


@pytest.mark.parametrize(
    ("tool", "description"),
    [
        pytest.param("{name: h, flow: helper}", "Helps.", id="the flow's own"),
        pytest.param("{name: h, flow: helper, description: Me.}", "Me.", id="that of the tool"),
        pytest.param("{name: h, flow: helper, description: ' '}", "Helps.", id="blank"),
        pytest.param("{name: h, flow: plain}", "h", id="the name, where there is none"),
        pytest.param("{name: h, flow: nowhere}", "h", id="the name, where there is no flow"),
    ],
)
async def test_a_flow_is_described_to_the_model(tool, description):
    text = config_text(f"tools: [{tool}]").rstrip()
    text += "\n  - {name: helper, description: Helps., process: []}\n  - {name: plain, process: []}\n"
    runtime = FakeRuntime(harness.config(text))
    runtime.model = FakeModel([reply("done")])
    async with runtime:
        await runtime.invoke("f", {})

    (definition,) = runtime.model.requests[0].tools
    assert (definition.description, definition.input_schema) == (description, {"type": "object"})


async def test_a_flow_that_does_not_exist_harms_nobody_until_it_is_called():
    runtime = FakeRuntime(harness.config(config_text("tools: [{name: h, flow: nowhere}]")))
    runtime.model = FakeModel([reply("", call("h")), reply("done")])
    async with runtime:
        message = await runtime.invoke("f", {})

    result = runtime.model.requests[1].messages[-1].parts[0]
    assert (result.text, result.is_error, message.body) == ('flow "nowhere" is not registered', True, "done")


def test_a_flow_with_a_source_is_warned_of():
    text = config_text("tools: [{name: h, flow: timed}]").rstrip()
    text += "\n  - {name: timed, source: {type: cron, settings: {schedule: '@every 5m'}}, process: []}\n"
    try:
        warnings = harness.config(text).warnings
    except ConfigError as error:
        warnings = tuple(error.problems)

    assert [(problem.message, problem.hint) for problem in warnings] == [
        (
            "ai-agent tool `h`: `octo run` does not let flow `timed` be called, for it has a source",
            "move its blocks into a flow without a source, and call that one from both",
        )
    ]
