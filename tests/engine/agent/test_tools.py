"""octo/agent/tools.py, octo/agent/entry.py, octo/agent/bindings.py: one tool call, and where parameters come from."""

import pytest

from fake_model import call, reply, run

ECHO = """
tools:
  - name: t
    description: A tool.
    {extra}
    process:
      - {{type: log, settings: {{message: '"in"'}}}}
"""


def echo(extra=""):
    """A tool that gives its arguments back."""
    return ECHO.format(extra=extra or "x-nothing: 1")


async def result(keys, arguments, **options):
    """What the model reads, and the message that came out."""
    ran = await run(keys, reply("", call("t", arguments)), reply("done"), **options)
    return ran.results[0], ran.message


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param("", "{}", id="nothing"),
        pytest.param(" ", "{}", id="space"),
        pytest.param('{"b": 1, "a": [true, null]}', '{"a":[true,null],"b":1}', id="object"),
    ],
)
async def test_arguments_become_the_body_of_the_blocks(arguments, text):
    assert (await result(echo(), arguments))[0] == (text, False)


@pytest.mark.parametrize(
    ("schema", "arguments", "text"),
    [
        pytest.param("{type: array}", "[1]", "[1]", id="list"),
        pytest.param("{type: string}", '"x"', '"x"', id="text"),
        pytest.param("{}", "null", "null", id="null"),
    ],
)
async def test_any_value_that_the_schema_admits_may_be_the_arguments(schema, arguments, text):
    assert (await result(echo(f"inputSchema: {schema}"), arguments))[0] == (text, False)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param("{", "not JSON: expecting property name enclosed in double quotes at line 1, column 2", id="cut"),
        pytest.param("NaN", "not JSON: `NaN` is not JSON", id="NaN"),
        pytest.param("[1]", '[1] is not of type "object"', id="list where an object is wanted"),
    ],
)
async def test_arguments_that_cannot_be_used_are_told_to_the_model(arguments, text):
    (told, is_error), message = await result(echo(), arguments, body="in")

    assert (told, is_error) == (f"invalid arguments: {text}", True)
    assert message.vars["toolName"] == "t"


@pytest.mark.parametrize("depth", [2000, 100_000])
async def test_deeply_nested_arguments_do_no_harm(depth):
    (told, is_error), _ = await result(echo(), '{"a":' * depth + "1" + "}" * depth)

    assert is_error
    assert told.startswith("invalid arguments: ") and told.endswith("nested more than 200 levels deep")


HALL = "inputSchema: {type: object, required: [hall], properties: {hall: {type: string}, n: {type: integer}}}"


async def test_arguments_are_checked_before_the_blocks_run():
    ran = await run(echo(HALL), reply("", call("t", {"n": "x"})), reply("done"))

    assert ran.results == [
        ('invalid arguments: at `hall`: is required, but missing; at `n`: "x" is not of type "integer"', True)
    ]
    assert ran.log.count("in") == 0


async def test_the_check_of_arguments_can_be_turned_off():
    assert (await result(echo(f"{HALL}\n    validateInput: false"), {"n": "x"}))[0] == ('{"n":"x"}', False)


async def test_the_schema_may_be_written_as_json_text():
    keys = echo("""inputSchema: '{"type": "object", "required": ["hall"]}'""")

    assert (await result(keys, {}))[0] == ("invalid arguments: at `hall`: is required, but missing", True)


async def test_a_schema_that_is_not_usable_checks_nothing():
    assert (await result(echo("inputSchema: {type: thing}"), {"n": 1}))[0] == ('{"n":1}', False)


async def test_the_call_leaves_its_marks_on_the_message():
    _, message = await result(echo(), {})

    scope = message.vars.pop("toolScope")
    assert message.vars == {"toolName": "t", "toolCallId": "call_t"}
    assert scope.startswith("run-") and scope.endswith("/t") and len(scope) == len("run-/t") + 32


# ---------------------------------------------------------------- results


def set_payload(value):
    return f"""
tools:
  - name: t
    description: A tool.
    process:
      - type: set-payload
        name: step
        settings: {{value: '{value}'}}
"""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param('""', '""', id="empty text"),
        pytest.param('" "', '" "', id="blank text"),
        pytest.param("null", "null", id="null"),
        pytest.param("3.0", "3", id="whole number"),
        pytest.param('{"b": 1, "a": "é<"}', '{"a":"é\\u003c","b":1}', id="object"),
    ],
)
async def test_the_body_that_the_blocks_leave_is_the_result(value, text):
    assert (await result(set_payload(value), {}))[0] == (text, False)


async def test_a_failing_block_is_a_failed_result_and_the_run_goes_on():
    told, message = await result(set_payload("body.missing"), {"n": 1})

    assert told == ('block "step": set-payload value: evaluate expression: no such key: missing', True)
    assert message.body == "done"
    assert "error" not in message.vars


# ---------------------------------------------------------------- bindings

BOUND = """
tools:
  - name: t
    description: A tool.
    inputSchema:
      type: object
      required: [hall, key]
      properties:
        hall: {type: string}
        key: {type: string}
        day: {type: string}
    inputs:
      key: {value: k-1}
      day: {expr: 'body.day + vars.suffix'}
      hall: {ai: true}
    process:
      - {type: log, settings: {message: '"in"'}}
"""


async def test_a_bound_parameter_is_not_shown_to_the_model():
    (request,) = (await run(BOUND, reply("done"))).requests

    assert request.tools[0].input_schema == {
        "type": "object",
        "required": ["hall"],
        "properties": {"hall": {"type": "string"}},
    }


async def test_a_bound_parameter_is_written_over_what_the_model_sent():
    told, _ = await result(BOUND, {"hall": "east", "key": "guess"}, body={"day": "mon"}, vars={"suffix": "day"})

    assert told == ('{"day":"monday","hall":"east","key":"k-1"}', False)


async def test_a_binding_sees_the_body_as_the_agent_received_it():
    turns = [reply("", call("t", {"hall": "a"})), reply("", call("t", {"hall": "b"})), reply("done")]
    ran = await run(BOUND, *turns, body={"day": "mon"}, vars={"suffix": "day"})

    assert ran.results[1] == ('{"day":"monday","hall":"b","key":"k-1"}', False)


async def test_a_binding_that_fails_is_a_failed_result():
    told, _ = await result(BOUND, {"hall": "east"}, body={}, vars={"suffix": ""})

    assert told == ("input `day`: evaluate expression: no such key: day", True)


async def test_arguments_without_parameters_are_refused_when_some_are_bound():
    told, _ = await result(BOUND, "[1]", body={"day": "mon"})

    assert told == ("invalid arguments: expected an object, got a list", True)


async def test_a_bound_value_that_does_not_fit_the_schema_is_not_told_to_the_model():
    told, _ = await result(BOUND.replace("k-1", "5"), {"hall": "east"}, body={"day": "mon"}, vars={"suffix": ""})

    assert told == ("invalid arguments: at `key`: the value that the configuration gives does not fit the schema", True)


@pytest.mark.parametrize(
    ("binding", "value"),
    [
        pytest.param("5", "5", id="number"),
        pytest.param("plain", '"plain"', id="text"),
        pytest.param("[1, a]", '[1,"a"]', id="list"),
        pytest.param("{a: 1}", '{"a":1}', id="mapping"),
        pytest.param("{value: 1, expr: x}", '{"expr":"x","value":1}', id="mapping with two marks"),
        pytest.param("{x-a: 1}", '{"x-a":1}', id="mapping with a free key"),
        pytest.param("{value: {ai: true}}", '{"ai":true}', id="value that looks like a binding"),
        pytest.param("{expr: 'size(body)'}", "2", id="expression"),
        pytest.param("{value: false}", "false", id="false"),
    ],
)
async def test_what_is_no_binding_is_the_value_itself(binding, value):
    told, _ = await result(echo(f"inputs: {{p: {binding}}}"), {}, body=[1, 2])

    assert told == (f'{{"p":{value}}}', False)


@pytest.mark.parametrize("binding", ["null", '""', "{value: null}", '{value: ""}', "{ai: true}"])
async def test_a_binding_to_nothing_leaves_the_parameter_to_the_model(binding):
    told, _ = await result(echo(f"inputs: {{p: {binding}}}"), {"p": "mine"})

    assert told == ('{"p":"mine"}', False)
