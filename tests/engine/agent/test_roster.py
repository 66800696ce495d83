"""octo/agent/roster.py: the tools of an agent together, as its block changes and narrows them."""

import pytest
import yaml

from fake_model import TOOL, FakeModel, FakeRuntime, Listener, call, config_text, problems, reply, run
from octo.config.explain import explain
from octo.errors import BlockError, ConfigError
from octo.observe import LogLine
from octo.testing import harness

TWO = """
tools:
  - name: stock
    description: Count.
    inputSchema: {type: object, properties: {sku: {}, site: {}, day: {}}, required: [sku, site]}
    inputs: {site: {value: Oslo}, day: {expr: body.day}}
    process: [{type: log, settings: {message: '"stock"'}}]
  - name: order
    description: Order.
    process: []
"""


def names(ran):
    return [tool.name for tool in ran.requests[0].tools]


# ---------------------------------------------------------------- enabledTools


@pytest.mark.parametrize(
    ("enabled", "offered"),
    [
        pytest.param("", ["stock", "order"], id="not set"),
        pytest.param("enabledTools: null", ["stock", "order"], id="null in the config"),
        pytest.param("enabledTools: ''", ["stock", "order"], id="blank text"),
        pytest.param("enabledTools: 'null'", ["stock", "order"], id="an expression that gives null"),
        pytest.param("enabledTools: 'vars.which'", ["order"], id="an expression that gives names"),
        pytest.param("enabledTools: {expr: vars.which}", ["order"], id="an expression, said so"),
        pytest.param("enabledTools: [order, stock, order]", ["stock", "order"], id="a list in another order, doubled"),
        pytest.param("enabledTools: {value: [stock]}", ["stock"], id="a value, said so"),
        pytest.param("enabled_tools: [stock]", ["stock"], id="the other spelling"),
        pytest.param("enabledTools: [Stock, ' order']", [], id="names are exact"),
        pytest.param("enabledTools: []", [], id="none"),
    ],
)
async def test_a_run_is_offered_the_tools_that_are_enabled(enabled, offered):
    ran = await run(f"{TWO}\n{enabled}\n", reply("done"), vars={"which": ["order"]})

    assert names(ran) == offered


no_names = pytest.mark.parametrize(
    ("enabled", "found"),
    [
        pytest.param("'\"stock\"'", "text", id="text"),
        pytest.param("5", "a number", id="number"),
        pytest.param("{stock: true}", "a mapping", id="mapping"),
        pytest.param("[stock, 5]", "a list with other things in it", id="list with a number"),
    ],
)


@no_names
async def test_anything_but_a_list_of_names_fails_before_any_model_call(enabled, found):
    runtime = FakeRuntime(harness.config(config_text(f"{TWO}enabledTools: body.enabled\n")))
    runtime.model = FakeModel([])
    async with runtime:
        with pytest.raises(BlockError) as caught:
            await runtime.invoke("f", {"enabled": yaml.safe_load(enabled)})

    assert caught.value.message == f'block "ag": ai-agent: `enabledTools` must be a list of names, got {found}'


@no_names
def test_anything_but_a_list_of_names_is_refused_where_it_is_written(enabled, found):
    with pytest.raises(ConfigError) as caught:
        harness.config(config_text(f"{TWO}enabledTools: {enabled}\n"))

    assert [problem.message for problem in caught.value.problems] == [
        f"ai-agent: `enabledTools` must be a list of names, got {found}"
    ]


@pytest.mark.parametrize(
    "enabled",
    ["[stok, order]", '\'["stok", "order"]\'', "{value: [stok]}"],
    ids=["list", "expression that is a list", "value, said so"],
)
def test_a_written_name_that_no_tool_has_is_warned_of(enabled):
    (warning,) = harness.config(config_text(f"{TWO}enabledTools: {enabled}\n")).warnings

    assert (warning.message, warning.hint) == (
        "ai-agent: no tool `stok` is there to enable",
        "did you mean `stock`?",
    )


async def test_of_names_that_no_tool_has_the_log_tells_only_how_many():
    log = Listener(LogLine)
    await run(f"{TWO}enabledTools: [s3cret, stock, t0ken]\n", reply("done"), observers=[log])

    (line,) = (event for event in log.events if event.text == "names in enabledTools that no tool has")
    assert line.fields == {"count": 2}
    assert not any("s3cret" in str(event.fields) for event in log.events if event.level != "debug")


async def test_a_call_of_a_tool_that_is_not_enabled_never_reaches_it():
    ran = await run(f"{TWO}enabledTools: [order]\n", reply("", call("stock", {"sku": "A"})), reply("done"))

    assert ran.results == [('unknown tool "stock"', True)]
    assert "stock" not in ran.log


# ---------------------------------------------------------------- toolInputs


async def stock(overlay, arguments, body=None):
    """What the model sees of the tool, and what the tool is given."""
    keys = f"{TWO}toolInputs: {{stock: {overlay}}}\n"
    ran = await run(keys, reply("", call("stock", arguments)), reply("done"), body=body or {"day": "mon", "s": "Rome"})
    return list(ran.requests[0].tools[0].input_schema["properties"]), ran.results[0][0]


@pytest.mark.parametrize(
    ("overlay", "shown", "given"),
    [
        pytest.param("{}", ["sku"], '{"day":"mon","site":"Oslo","sku":"A"}', id="nothing"),
        pytest.param("{site: {value: Bonn}}", ["sku"], '{"day":"mon","site":"Bonn","sku":"A"}', id="another value"),
        pytest.param("{site: Bonn}", ["sku"], '{"day":"mon","site":"Bonn","sku":"A"}', id="a bare value"),
        pytest.param("{site: {expr: body.s}}", ["sku"], '{"day":"mon","site":"Rome","sku":"A"}', id="an expression"),
        pytest.param("{sku: B}", [], '{"day":"mon","site":"Oslo","sku":"B"}', id="one more parameter"),
        pytest.param(
            "{site: {ai: true}}", ["sku", "site"], '{"day":"mon","site":"M","sku":"A"}', id="back to the model"
        ),
        pytest.param("{site: null}", ["sku", "site"], '{"day":"mon","site":"M","sku":"A"}', id="null"),
        pytest.param("{site: ''}", ["sku", "site"], '{"day":"mon","site":"M","sku":"A"}', id="empty text"),
        pytest.param("{colour: red}", ["sku"], '{"colour":"red","day":"mon","site":"Oslo","sku":"A"}', id="unknown"),
    ],
)
async def test_a_block_binds_parameters_in_its_own_way(overlay, shown, given):
    assert await stock(overlay, {"sku": "A", "site": "M"}) == (shown, given)


async def test_what_a_block_binds_is_merged_before_tools_are_switched_off():
    keys = f"{TWO}enabledTools: [order]\ntool_inputs: {{stock: {{sku: X}}, order: {{n: 1}}}}\n"
    ran = await run(keys, reply("", call("order", {})), reply("done"))

    assert ran.results == [('{"n":1}', False)]


async def test_of_tools_that_are_not_there_to_bind_the_log_tells_how_many():
    log = Listener(LogLine)
    await run(f"{TWO}toolInputs: {{stok: {{sku: A}}}}\n", reply("done"), observers=[log])

    (line,) = (event for event in log.events if event.text == "names in toolInputs that no tool has")
    assert line.fields == {"block": "f.ag", "count": 1}


@pytest.mark.parametrize(
    ("overlay", "found"),
    [
        pytest.param("{stok: {sku: A}}", ("no tool `stok` is there to bind", "did you mean `stock`?"), id="tool"),
        pytest.param(
            "{stock: {skuu: A}}", ("tool `stock` has no parameter `skuu`", "did you mean `sku`?"), id="parameter"
        ),
        pytest.param(
            "{stock: {colour: A}}",
            ("tool `stock` has no parameter `colour`", "it is passed on all the same"),
            id="far away",
        ),
    ],
)
def test_what_a_block_binds_in_vain_is_warned_of(overlay, found):
    message, hint = found
    expected = "ai-agent: " + message if message.startswith("no") else "ai-agent " + message
    assert problems(f"{TWO}toolInputs: {overlay}\n") == [(expected, hint)]


def test_a_tool_without_a_schema_takes_any_parameter():
    assert problems(f"{TWO}toolInputs: {{order: {{anything: 1}}}}\n") == []


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("tools", "found"),
    [
        pytest.param(
            "{name: t, description: T.}",
            ("ai-agent tool `t` requires `process`", "or `flow` or `agent`"),
            id="nothing behind it",
        ),
        pytest.param(
            "{name: t, description: T., process: [], flow: x}",
            ("ai-agent tool `t`: `process` and `flow` exclude each other", "keep one of them"),
            id="two things behind it",
        ),
        pytest.param("{description: T., flow: f}", ("ai-agent requires a name for tool 0", None), id="no name"),
        pytest.param(
            "{name: t, process: []}", ("ai-agent tool `t` requires a description", None), id="blocks undescribed"
        ),
        pytest.param(
            "{name: t, flow: f}, {name: t, flow: f}",
            ("ai-agent tool `t` is declared twice", None),
            id="the same name twice",
        ),
        pytest.param(
            "{name: __octo_web_search, flow: f}",
            ("ai-agent tool `__octo_web_search`: the name is reserved", None),
            id="the name of the search",
        ),
        pytest.param(
            "{webSearch: true, description: x, inputs: {q: 1}}",
            ("ai-agent tool 0: `description` has no effect beside `webSearch`", "remove it"),
            id="more beside the search",
        ),
        pytest.param(
            "{name: t, flow: f}, {webSearch: true}, {webSearch: true}",
            ("ai-agent: `webSearch` is declared twice", None),
            id="two searches",
        ),
        pytest.param(
            "{name: t, flow: nope}",
            ('ai-agent tool `t`: flow "nope" is not registered', "known names: `f`"),
            id="a flow that is not there",
        ),
        pytest.param(
            "{name: t!, flow: f}",
            ("ai-agent tool `t!`: providers refuse this name", "use at most 64 letters, digits, `_` and `-`"),
            id="a name that providers refuse",
        ),
    ],
)
def test_tools_that_cannot_work_are_refused_or_warned_of(tools, found):
    assert found in problems(f"tools: [{tools}]")


# ---------------------------------------------------------------- the web


async def test_the_search_of_the_web_is_asked_of_the_provider_and_is_no_tool():
    ran = await run(f"{TWO}  - webSearch: true\n", reply("done"))

    assert (names(ran), ran.requests[0].web_search) == (["stock", "order"], True)


@pytest.mark.parametrize(
    ("enabled", "searches"),
    [("[stock]", False), ("[]", False), ("[__octo_web_search]", True), ("[stock, __octo_web_search]", True)],
)
async def test_the_search_of_the_web_is_switched_off_like_a_tool(enabled, searches):
    ran = await run(f"{TWO}  - webSearch: true\nenabledTools: {enabled}\n", reply("done"))

    assert ran.requests[0].web_search == searches


def test_a_model_that_cannot_search_the_web_is_refused():
    text = config_text(f"{TWO}  - webSearch: true\n").replace(
        "type: llm-scripted\n    settings: {turns: [{text: x}]}", "type: llm-groq\n    settings: {apiKey: k}"
    )
    try:
        harness.config(text)
        found = []
    except Exception as error:
        found = [(problem.message, problem.hint) for problem in error.problems]

    assert found == [
        (
            'ai-agent: connector "m" reaches no model that searches the web',
            "give the agent a tool that searches, or another connector",
        )
    ]


# ---------------------------------------------------------------- shown


def test_the_tools_are_shown_with_what_fills_in_their_parameters():
    config = harness.config(config_text(f"{TWO}toolInputs: {{stock: {{day: {{value: tue}}}}}}\n"))

    shown = explain(config, "f.ag")["tools"]
    for tool in shown:
        for parameter in tool["parameters"].values():
            parameter["from"] = parameter["from"].rpartition("config.yaml:")[2]
    assert shown == [
        {
            "name": "stock",
            "kind": "process",
            "parameters": {
                "sku": {"value": {"ai": True}, "from": "model"},
                "site": {"value": {"value": "Oslo"}, "from": "18:28"},
                "day": {"value": {"value": "tue"}, "from": "23:35"},
            },
        },
        {"name": "order", "kind": "process", "parameters": {}},
    ]


def test_skills_and_tools_share_their_names():
    keys = f"{TOOL}skills: [{{name: t, description: d, resource: r}}]\n"

    assert problems(keys) == [("ai-agent tool `t`: a skill has the same name", None)]
