"""octo/blocks/ai_mapping.py: what the model is given, what its answer becomes, and when there is none."""

import base64
import json

import pytest

from fake_model import Listener, reply
from octo.errors import BlockError, ProviderError
from octo.llm.chat import ChatMessage, File, Text, Usage
from octo.observe import TurnEnded
from octo.testing import harness
from one_shot import config_text, problems, run

MAPPING = """
type: ai-mapping
name: shape
settings:
  connector: m
  prompt: ' Make it so. '
"""
FILES = """
type: ai-mapping
name: shape
connector: m
prompt: Read it.
input: body.text
attachments: body.files
"""
NAMED = """
  outputSchema:
    type: object
    required: [name]
    properties: {name: {type: string}}
"""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
PICTURE = File("image/png", base64.b64decode(PNG), "red.png")


# ---------------------------------------------------------------- what is refused


def test_the_least_that_a_mapping_needs():
    assert problems(MAPPING) == []


def test_its_keys_may_stand_beside_the_type_as_well():
    assert problems("type: ai-mapping\nconnector: m\nprompt: p") == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "connector: m",
            "connector: ' '",
            'ai-mapping "shape": expected the name of a connector, found blank text',
            id="none",
        ),
        pytest.param(
            "connector: m", "connector: n", 'ai-mapping "shape": connector "n" is not configured', id="unknown"
        ),
        pytest.param(
            "connector: m",
            "connector: jobs",
            'ai-mapping "shape": connector "jobs" is a `queue`, which is no llm connector',
            id="no model",
        ),
        pytest.param("' Make it so. '", "' '", "ai-mapping requires a prompt, found none", id="blank prompt"),
        pytest.param("name: shape", "name: shape\ntools: []", 'unknown field "tools" in block `ai-mapping`', id="key"),
    ],
)
def test_a_mapping_that_cannot_work_is_refused(old, new, expected):
    ((_, message, _),) = problems(MAPPING.replace(old, new))

    assert message == expected


@pytest.mark.parametrize("key", ["inputExample", "outputExample"])
def test_an_example_that_is_text_must_be_json(key):
    ((line, message, hint),) = problems(f"{MAPPING}  {key}: Ada Lovelace\n")

    assert (line, message, hint) == (
        6,
        "expected an example, found text that is not JSON: expecting value at line 1, column 1",
        "an example that is text is written as JSON, in its own quotes: '\"Ada Lovelace\"'",
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param("'{\"type\":'", "expected a JSON Schema, found text that is not JSON", id="no JSON"),
        pytest.param("[1]", "expected a JSON Schema, found a list", id="list"),
        pytest.param("{type: strng}", "ai-mapping: `outputSchema` is not usable", id="no schema"),
        pytest.param(
            "{$ref: 'https://example.org/x.json'}", "ai-mapping: `outputSchema` is not usable", id="another document"
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema, expected):
    ((line, message, _),) = problems(f"{MAPPING}  outputSchema: {schema}\n")

    assert line == 6
    assert message.startswith(expected)


def test_a_cap_below_zero_means_nothing():
    assert problems(f"{MAPPING}  maxTokens: -1\n") == [
        (6, "ai-mapping: `maxTokens` is at least 0, found -1", "0 leaves it to the connector")
    ]


def test_all_that_is_wrong_with_a_mapping_is_told_at_once():
    block = """
      type: ai-mapping
      name: shape
      connector: n
      prompt: ' '
      input: body.
      attachments: body.files
      inputExample: Ada
      outputSchema: {enum: 5}
      maxTokens: -1
    """

    assert [(line, message) for line, message, _ in problems(block)] == [
        (3, 'ai-mapping "shape": connector "n" is not configured'),
        (4, "ai-mapping requires a prompt, found none"),
        (5, 'compile expression "body.": expected a name after `.`, found end of expression'),
        (7, "expected an example, found text that is not JSON: expecting value at line 1, column 1"),
        (8, 'ai-mapping: `outputSchema` is not usable: 5 is not of type "array"'),
        (9, "ai-mapping: `maxTokens` is at least 0, found -1"),
    ]


@pytest.mark.parametrize("key", ["inputExample", "outputExample", "outputSchema", "input", "attachments"])
@pytest.mark.parametrize("value", ["", "''", "'  '", "null"], ids=["nothing", "empty", "blank", "null"])
def test_what_is_blank_is_not_given(key, value):
    assert problems(f"{MAPPING}  {key}: {value}\n") == []


def test_attachments_need_an_input():
    ((line, message, hint),) = problems(f"{MAPPING}  attachments: body.files\n")

    assert (line, message, hint) == (
        6,
        "ai-mapping: `attachments` requires `input`: without it the whole body is sent as JSON, and each file in the "
        "body would go out a second time as base64 text",
        "say in `input` what is mapped, for example `input: body.text`",
    )


def test_attachments_need_a_connector_that_reads_files():
    ((line, message, _),) = problems(FILES.replace("connector: m", "connector: seek"))

    assert (line, message) == (
        6,
        'ai-mapping: connector "seek" reads text only, so `attachments` cannot be sent',
    )


def test_attachments_may_be_sent_where_files_are_read():
    assert problems(FILES.replace("connector: m", "connector: claude")) == []


# ---------------------------------------------------------------- the call


async def test_the_model_is_called_once_without_tools_and_without_caching():
    ran = await run(MAPPING, reply("1"))

    (request,) = ran.requests
    assert (request.tools, request.tool_choice, request.cache, request.model) == ((), "auto", False, None)
    assert (request.output_schema, request.max_tokens) == (None, None)


async def test_the_body_goes_out_as_compact_json_without_a_frame():
    ran = await run(MAPPING, reply("1"), body={"b": [1, None], "a": "x"})

    assert ran.requests[0].messages == (ChatMessage("user", (Text('{"a":"x","b":[1,null]}'),)),)


async def test_an_input_goes_out_in_the_place_of_the_body():
    ran = await run(f"{MAPPING}  input: '\"Lines: \" + body.text'\n", reply("1"), body={"text": "a"})

    assert ran.requests[0].messages[0].text == "Lines: a"


async def test_an_empty_input_is_an_error():
    with pytest.raises(BlockError) as error:
        await run(f"{MAPPING}  input: body.text\n", body={"text": ""})

    assert error.value.message == 'block "shape": ai-mapping: `input` is empty, so there is nothing to map'


async def test_an_input_that_cannot_be_evaluated_is_an_error_of_that_name():
    with pytest.raises(BlockError) as error:
        await run(f"{MAPPING}  input: body.x\n", body={})

    assert error.value.message == 'block "shape": ai-mapping: input: evaluate expression: no such key: x'


async def test_the_model_is_told_to_give_json_only_then_the_prompt_and_nothing_else():
    ran = await run(MAPPING, reply("1"))

    first, *rest = ran.requests[0].system.split("\n\n")
    assert "JSON" in first
    assert rest == ["Make it so."]


async def test_examples_and_schema_follow_the_prompt():
    ran = await run(
        f'{MAPPING}  inputExample: {{b: [1], a: x}}\n  outputExample: |\n    {{ "n": 1.50 }}\n{NAMED}',
        reply('{"name": "Ada"}'),
    )

    assert ran.requests[0].system.split("\n\n")[2:] == [
        'Example input:\n{"a":"x","b":[1]}',
        'Example output:\n{ "n": 1.50 }',
        'JSON Schema of the output:\n{"properties":{"name":{"type":"string"}},"required":["name"],"type":"object"}',
    ]


@pytest.mark.parametrize(
    ("example", "text"),
    [("'null'", "null"), ("false", "false"), ("0", "0"), ("[]", "[]"), ("'\"a\"'", '"a"')],
    ids=["null", "false", "zero", "empty list", "text"],
)
async def test_an_example_may_be_any_json(example, text):
    ran = await run(f"{MAPPING}  outputExample: {example}\n", reply("1"))

    assert ran.requests[0].system.endswith(f"\n\nExample output:\n{text}")


@pytest.mark.parametrize(("given", "sent"), [(0, None), (300, 300)], ids=["zero", "cap"])
async def test_the_cap_of_the_answer_is_sent_when_there_is_one(given, sent):
    ran = await run(f"{MAPPING}  maxTokens: {given}\n", reply("1"))

    assert ran.requests[0].max_tokens == sent


# ---------------------------------------------------------------- files


async def test_files_go_out_ahead_of_the_input():
    ran = await run(
        FILES, reply("1"), body={"text": "What?", "files": [{"data": PNG, "name": "red.png", "mimeType": "image/png"}]}
    )

    assert ran.requests[0].messages == (ChatMessage("user", (PICTURE, Text("What?"))),)


async def test_a_file_alone_is_enough():
    ran = await run(FILES, reply("1"), body={"text": "", "files": [{"data": PNG, "name": "red.png"}]})

    assert ran.requests[0].messages == (ChatMessage("user", (PICTURE,)),)


@pytest.mark.parametrize("files", [None, []], ids=["null", "empty"])
async def test_there_may_be_no_files(files):
    ran = await run(FILES, reply("1"), body={"text": "What?", "files": files})

    assert ran.requests[0].messages == (ChatMessage("user", (Text("What?"),)),)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"a": 1}, "`attachments` must evaluate to a list, got a mapping", id="no list"),
        pytest.param(
            [{"data": PNG}, {"name": "x"}], "attachment 1: `data` must be base64 text or a data URL, got", id="1"
        ),
    ],
)
async def test_files_that_are_none_fail_the_block_and_no_model_is_called(files, expected):
    with pytest.raises(BlockError) as error:
        await run(FILES, body={"text": "What?", "files": files})

    assert error.value.message.startswith(f'block "shape": ai-mapping: {expected}')


async def test_a_stated_type_that_the_bytes_belie_is_logged():
    ran = await run(FILES, reply("1"), body={"text": "?", "files": [{"data": PNG, "mimeType": "image/gif"}]})

    assert ran.log == ["attachment 0 is image/png by its bytes, not image/gif"]


async def test_produced_files_replace_what_the_variable_held():
    ran = await run(f"{MAPPING}  responseMedia: drawn\n", reply("1", files=[PICTURE]), vars={"drawn": ["old"]})

    assert ran.message.vars["drawn"] == [{"name": "red.png", "mimeType": "image/png", "size": 69.0, "data": PNG}]


async def test_without_produced_files_the_variable_stays():
    ran = await run(f"{MAPPING}  responseMedia: drawn\n", reply("1"), vars={"drawn": "old"})

    assert ran.message.vars == {"drawn": "old"}


async def test_produced_files_are_kept_even_when_the_answer_is_no_json():
    block = f"{MAPPING}  responseMedia: drawn\n"
    recovery = "    error: [{type: set-payload, settings: {value: 'vars.drawn[0].name'}}]"

    ran = await run(block, reply("Here it is.", files=[PICTURE]), tail=recovery)

    assert ran.message.body == "red.png"


async def test_produced_files_without_a_variable_are_dropped():
    ran = await run(MAPPING, reply("1", files=[PICTURE]))

    assert ran.message.vars == {}


# ---------------------------------------------------------------- the answer


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1]}', {"a": [1.0]}),
        ("[]", []),
        ("42", 42.0),
        ('"text"', "text"),
        ("true", True),
        ("null", None),
        (' \n{"a": 1}\n', {"a": 1.0}),
        ('```json\n{"a": 1}\n```', {"a": 1.0}),
        ('```JSON\n{"a": 1}\n```\nThat is all.', {"a": 1.0}),
        ("```\n[1]", [1.0]),
        ('```\n{"a": "```"}\n```', {"a": "```"}),
    ],
)
async def test_the_json_of_the_answer_becomes_the_body(text, value):
    ran = await run(MAPPING, reply(text), body={"old": 1}, vars={"v": 1})

    assert (ran.message.body, ran.message.vars) == (value, {"v": 1.0})


@pytest.mark.parametrize("stop", ["end_turn", "max_tokens", "refusal"])
async def test_why_the_model_stopped_does_not_matter(stop):
    ran = await run(MAPPING, reply("7", stop=stop))

    assert ran.message.body == 7


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(reply(""), "it is empty", id="nothing"),
        pytest.param(reply("", thinking="Hm."), "it is empty", id="reasoning only"),
        pytest.param(
            reply("I cannot do that.", stop="refusal"),
            "expecting value at line 1, column 1; the answer begins with `I cannot do that.`",
            id="refusal",
        ),
        pytest.param(
            reply('{"a": [1', stop="max_tokens"),
            "expecting ',' delimiter at line 1, column 9; the answer begins with `{\"a\": [1`",
            id="cut off",
        ),
        pytest.param(reply("{} {}"), "extra data at line 1, column 4; the answer begins with `{} {}`", id="two values"),
        pytest.param(
            reply("Here: {}"),
            "expecting value at line 1, column 1; the answer begins with `Here: {}`",
            id="prose before",
        ),
        pytest.param(
            reply("```yaml\na: 1\n```"),
            "expecting value at line 1, column 1; the answer begins with ````yaml\na: 1\n````",
            id="another language",
        ),
        pytest.param(reply("NaN"), "`NaN` is not JSON; the answer begins with `NaN`", id="not a number"),
    ],
)
async def test_an_answer_that_is_no_json_fails_the_block_and_the_body_stays(answer, reason):
    recovery = "    error: [{type: set-variable, settings: {name: was, value: vars.error}}]"

    ran = await run(MAPPING, answer, body={"old": 1}, tail=recovery)

    assert ran.message.body == {"old": 1.0}
    assert ran.message.vars["was"]["message"] == (f'block "shape": ai-mapping: the answer is not valid JSON: {reason}')
    assert ran.message.vars["was"].get("detail", "") == answer.text


@pytest.mark.parametrize(
    ("stop", "hint"),
    [
        ("end_turn", None),
        ("max_tokens", "the output cap (`maxTokens`) cut the answer off: raise `maxTokens`"),
        ("refusal", "the model refused the task"),
    ],
)
async def test_a_hint_says_why_there_may_be_no_json(stop, hint):
    with pytest.raises(BlockError) as error:
        await run(MAPPING, reply("{", stop=stop))

    assert error.value.hint == hint


async def test_an_answer_that_breaks_the_schema_fails_the_block():
    with pytest.raises(BlockError) as error:
        await run(MAPPING + NAMED, reply('{"name": 1}'))

    assert error.value.message == (
        'block "shape": ai-mapping: the answer does not fit `outputSchema`: at `name`: 1 is not of type "string"; '
        'the answer begins with `{"name": 1}`'
    )
    assert error.value.detail == '{"name": 1}'


async def test_the_schema_is_recorded_with_the_body():
    ran = await run(MAPPING + NAMED, reply('{"name": "Ada"}'))

    assert ran.message.body == {"name": "Ada"}
    assert ran.message.body_schema == {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}},
    }


async def test_without_a_schema_none_is_recorded():
    assert (await run(MAPPING, reply("1"))).message.body_schema is None


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "object", "properties": {"name": {"type": "string"}}}, id="mapping"),
        pytest.param('{"type": "object", "properties": {"name": {"type": "string"}}}', id="text"),
    ],
)
async def test_a_schema_is_a_mapping_or_text(schema):
    ran = await run(f"{MAPPING}  outputSchema: {json.dumps(schema)}\n", reply('{"name": "Ada"}'))

    assert ran.message.body == {"name": "Ada"}


async def test_a_schema_without_a_dialect_is_of_2020_12():
    block = f"{MAPPING}  outputSchema: {{prefixItems: [{{type: number}}]}}\n"

    with pytest.raises(BlockError):
        await run(block, reply('["a"]'))


async def test_a_schema_may_name_its_dialect():
    schema = '{"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "number"}]}'

    ran = await run(f"{MAPPING}  outputSchema: '{schema}'\n", reply('["a"]'))

    assert ran.message.body == ["a"]


async def test_a_format_is_not_checked():
    ran = await run(f"{MAPPING}  outputSchema: {{type: string, format: date}}\n", reply('"someday"'))

    assert ran.message.body == "someday"


# ---------------------------------------------------------------- failures, budgets, events


async def test_a_failed_call_fails_the_block():
    with pytest.raises(BlockError) as error:
        await run(MAPPING, ProviderError("llm-x complete: status 500: down"))

    assert error.value.message == 'block "shape": ai-mapping: llm-x complete: status 500: down'


async def test_a_spent_budget_fails_the_block():
    with pytest.raises(BlockError) as error:
        await run(MAPPING, limits={"maxTokens": 0})

    assert error.value.message == 'block "shape": ai-mapping: budget exceeded'
    assert error.value.hint == "`maxTokens` is 0, 0 are used up"


async def test_the_call_is_charged_and_told():
    listener = Listener(TurnEnded)
    second = "      - {type: ai-mapping, connector: m, prompt: p}"

    with pytest.raises(BlockError, match='block "ai-mapping": ai-mapping: budget exceeded'):
        await run(
            MAPPING,
            reply("1", usage=Usage(input_tokens=60, output_tokens=50)),
            limits={"maxTokens": 100},
            observers=[listener],
            tail=second,
        )

    assert [(event.address, event.iteration, event.text) for event in listener.events] == [("f.shape", 1, "1")]


def test_a_mapping_is_found_by_its_name():
    (block,) = harness.config(config_text(MAPPING)).flows[0].process

    assert (block.address, list(block.branches())) == ("f.shape", [])
