"""octo/agent/form.py: answers of a certain form, by schema and by tool, with one chance to mend them."""

import pytest

from fake_model import TOOL, call, reply, run
from octo.agent.form import Form
from octo.errors import BlockError, ConfigError
from octo.llm.chat import ChatMessage, File, ToolResult, user

SCHEMA = {
    "type": "object",
    "properties": {"tier": {"enum": ["smb", "big"]}, "note": {"type": "string"}},
    "required": ["tier"],
}
KEYS = "outputSchema: {type: object, properties: {tier: {enum: [smb, big]}, note: {type: string}}, required: [tier]}\n"
CLAUDE = f"model: claude-x\n{KEYS}{TOOL}"
ASKED = user("The input of the task, as JSON:\nnull")
FAULT = 'at `tier`: "small" is not one of "smb" or "big"'


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param('{"tier": "smb"}', '{"tier": "smb"}', id="as it came"),
        pytest.param('```json\n{"tier": "smb"}\n```', '```json\n{"tier": "smb"}\n```', id="in a fence"),
        pytest.param('{"tier": "smb", "note": null}', '{"tier":"smb"}', id="null for what may be missing"),
    ],
)
def test_answers_that_have_the_form(text, answer):
    assert Form(SCHEMA).fitted(text) == answer


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("smb", "the answer is not JSON: ", id="prose"),
        pytest.param('{"tier": "small"}', FAULT, id="another word"),
        pytest.param('{"tier": null}', 'at `tier`: null is not one of "smb" or "big"', id="null for what is required"),
        pytest.param("{}", "at `tier`: is required, but missing", id="missing"),
    ],
)
def test_answers_that_have_not(text, fault):
    with pytest.raises(ValueError) as caught:
        Form(SCHEMA).fitted(text)

    assert str(caught.value).startswith(fault)


def test_the_tool_of_the_answer_has_a_name_of_its_own():
    assert Form(SCHEMA).tool({"t"}).name == "structured_output"
    assert Form(SCHEMA).tool({"structured_output", "structured_output_2"}).name == "structured_output_3"


# ---------------------------------------------------------------- by schema


async def test_a_model_that_takes_schemas_is_given_it():
    ran = await run(KEYS + TOOL, reply('{"tier": "smb"}'))

    (request,) = ran.requests
    assert (request.output_schema, request.tool_choice, [tool.name for tool in request.tools]) == (
        SCHEMA,
        "auto",
        ["t"],
    )
    assert ran.message.body == {"tier": "smb"}


async def test_a_schema_without_properties_asks_for_nothing():
    ran = await run(f"outputSchema: {{type: object}}\n{TOOL}", reply("prose"))

    assert (ran.requests[0].output_schema, ran.message.body) == (None, "prose")


async def test_the_model_is_shown_where_its_answer_failed():
    first = reply('{"tier": "small"}')
    ran = await run(KEYS + TOOL, first, reply('{"tier": "smb"}'))

    shown = user(f"The final result has not the form that is asked for: {FAULT}. Give it again, whole, as JSON.")
    assert ran.requests[1].messages == (ASKED, first.message, shown)
    assert ran.message.body == {"tier": "smb"}


async def test_a_second_answer_of_another_form_fails_the_block_and_is_kept_in_the_error():
    with pytest.raises(BlockError) as caught:
        await run(KEYS + TOOL, reply("prose"), reply('{"tier": "small"}'))

    assert str(caught.value) == (
        f'block "ag": ai-agent: the answer has not the form of `outputSchema`: {FAULT}; '
        'the answer begins with `{"tier": "small"}`'
    )
    assert caught.value.detail == '{"tier": "small"}'


async def test_recovery_reads_the_answer_that_could_not_be_used():
    ran = await run(f"{KEYS}{TOOL}", reply("a"), reply("b"), error="vars.error.detail")

    assert ran.message.body == "b"


# ---------------------------------------------------------------- by tool


async def test_a_claude_model_gives_its_answer_by_a_tool():
    given = reply("", call("structured_output", {"tier": "smb"}))
    ran = await run(CLAUDE, given)

    (request,) = ran.requests
    assert [tool.name for tool in request.tools] == ["t", "structured_output"]
    assert (request.tools[1].input_schema, request.output_schema) == (SCHEMA, None)
    assert (request.tool_choice, request.may_think_first) == ("any", True)
    assert "by calling `structured_output`" in request.system
    assert ran.message.body == {"tier": "smb"}


async def test_calls_before_the_answer_run_and_those_after_it_do_not():
    turn = reply(
        "", call("t", {"n": 1}, "a"), call("structured_output", {"tier": "big "}, "b"), call("t", {"n": 2}, "c")
    )
    ran = await run(CLAUDE, turn, reply("", call("structured_output", {"tier": "big"})))

    assert ran.requests[1].messages[2] == ChatMessage(
        "tool",
        (
            ToolResult("a", "t", '{"done":{"n":1}}'),
            ToolResult(
                "b", "structured_output", 'invalid arguments: at `tier`: "big " is not one of "smb" or "big"', True
            ),
            ToolResult("c", "t", "not run: the answer was given before it", True),
        ),
    )
    assert ran.message.body == {"tier": "big"}


async def test_a_second_call_of_another_form_fails_the_block():
    wrong = reply("", call("structured_output", {"tier": "small"}))
    with pytest.raises(BlockError, match="the answer has not the form of `outputSchema`"):
        await run(CLAUDE, wrong, wrong)


async def test_an_answer_that_the_cap_cut_off_is_not_taken():
    cut = reply("", call("structured_output", {"tier": "smb"}, "a"), stop="max_tokens")
    ran = await run(CLAUDE, cut, reply("", call("structured_output", {"tier": "big"}, "b")))

    (result,) = ran.requests[1].messages[-1].parts
    assert (result.text.startswith("not run: the output cap"), result.is_error) == (True, True)
    assert ran.message.body == {"tier": "big"}


async def test_a_model_that_ends_without_the_tool_is_asked_once_more_without_thinking():
    ran = await run(CLAUDE, reply("It is small."), reply("", call("structured_output", {"tier": "smb"})))

    again = ran.requests[1]
    assert again.messages[-1] == user("Give the final result now, by calling `structured_output`.")
    assert (again.tool_choice, again.may_think_first) == ("any", False)
    assert ran.message.body == {"tier": "smb"}


async def test_a_model_that_ends_without_the_tool_twice_fails_the_block():
    with pytest.raises(BlockError) as caught:
        await run(CLAUDE, reply("It is small."), reply("As I said."))

    assert str(caught.value) == (
        'block "ag": ai-agent: the model gave its answer without calling `structured_output`; '
        "the answer begins with `As I said.`"
    )


async def test_text_of_the_right_form_is_as_good_as_the_call():
    ran = await run(CLAUDE, reply('{"tier": "smb"}'))

    assert ran.message.body == {"tier": "smb"}


# ---------------------------------------------------------------- images


async def test_an_agent_that_makes_an_image_gives_it_as_a_file():
    ran = await run("outputType: image", reply("", files=[File("image/png", b"\x89PNG")]))

    assert ran.message.body == {"mimeType": "image/png", "name": "image.png", "data": "iVBORw=="}
    assert (ran.requests[0].output_type, ran.requests[0].tools) == ("image", ())


async def test_an_answer_without_the_image_is_an_error():
    with pytest.raises(BlockError, match=r"the model made no image; the answer begins with `I cannot\.`"):
        await run("outputType: image", reply("I cannot."))


async def test_a_word_that_is_no_type_of_output_is_refused():
    with pytest.raises(ConfigError, match="expected `text` or `image`, found `json`"):
        await run(f"outputType: json\n{TOOL}")
