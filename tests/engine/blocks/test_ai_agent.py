"""octo/blocks/ai_agent.py: what is sent to the model, and whole runs."""

import json

import pytest

from fake_model import TOOL, reply, run
from octo.errors import BlockError
from octo.llm.chat import File, Text
from octo.testing import harness
from vendor import AnthropicServer
from vendor import call as vendor_call
from vendor import reply as vendor_reply

# ---------------------------------------------------------------- what is sent


def opening(ran):
    return ran.requests[0].messages[0]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param({"b": 1.0, "a": "<é"}, '{"a":"\\u003cé","b":1}', id="object"),
        pytest.param(None, "null", id="no body"),
    ],
)
async def test_without_input_the_model_sees_the_body_as_json(body, text):
    assert opening(await run(TOOL, reply("ok"), body=body)).text == f"The input of the task, as JSON:\n{text}"


@pytest.mark.parametrize(
    ("input", "text"),
    [
        pytest.param("body.q", " What? ", id="text as it is"),
        pytest.param("{'n': 1, 'a': null}", '{"a":null,"n":1}', id="other values as JSON"),
        pytest.param("null", "null", id="null"),
    ],
)
async def test_input_is_what_the_model_is_asked(input, text):
    ran = await run(f'input: "{input}"\n{TOOL}', reply("ok"), body={"q": " What? "})

    assert opening(ran).parts == (Text(text),)


@pytest.mark.parametrize(
    ("keys", "body", "text"),
    [
        pytest.param("input: body.q", {}, "ai-agent: input: evaluate expression: no such key: q", id="input fails"),
        pytest.param(
            "input: body.q",
            {"q": ""},
            "ai-agent: `input` is empty and there are no `previousMessages`, so there is nothing to ask the model",
            id="input is empty",
        ),
        pytest.param(
            "input: '\"q\"'\nattachments: body.f",
            {},
            "ai-agent: attachments: evaluate expression: no such key: f",
            id="attachments fail",
        ),
        pytest.param(
            "input: '\"q\"'\nattachments: body.f",
            {"f": {}},
            "ai-agent: `attachments` must evaluate to a list, got a mapping",
            id="attachments are no list",
        ),
        pytest.param(
            "input: '\"q\"'\nattachments: body.f",
            {"f": [{"mimeType": "text/plain", "data": "aGk="}, 5.0]},
            "ai-agent: attachment 1: expected a mapping with `mimeType` and `data`, got a number",
            id="an attachment is no file",
        ),
    ],
)
async def test_a_question_that_cannot_be_asked_fails_before_any_model_call(keys, body, text):
    with pytest.raises(BlockError) as caught:
        await run(f"{keys}\n{TOOL}", body=body)

    assert caught.value.message == f'block "ag": {text}'


async def test_files_go_ahead_of_the_question():
    files = [{"mimeType": "image/png", "data": "aGk=", "name": "a.png"}]
    ran = await run(f"input: body.q\nattachments: body.files\n{TOOL}", reply("ok"), body={"q": "?", "files": files})

    assert opening(ran).parts == (File("image/png", b"hi", "a.png"), Text("?"))


@pytest.mark.parametrize(("answer", "asks"), [("", True), ("json", True), ("text", False)])
async def test_the_system_text_asks_for_json_unless_the_answer_is_text(answer, asks):
    (request,) = (await run(f"answer: '{answer}'\n{TOOL}", reply("ok"))).requests

    assert request.system.endswith("\n\nDo it.")
    assert ("JSON only" in request.system) is asks


async def test_the_prompt_may_stand_in_a_file():
    keys = TOOL + "\nprompt: {resource: prompts/task.md}"
    text = "Plan the visit, {{ body.x }}.\n"
    ran = await run(keys, reply("ok"), files={"prompts/task.md": text})

    assert ran.requests[0].system.endswith("\n\nPlan the visit, {{ body.x }}.")


# ---------------------------------------------------------------- whole runs with the scripted model


def flow(turns, keys=""):
    return f"""
connectors:
  - name: m
    type: llm-scripted
    settings:
      turns: {json.dumps(turns)}
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Do it.
        tools:
          - name: classify
            description: Classify.
            inputSchema: {{type: object, required: [company]}}
            process:
              - type: set-variable
                settings: {{name: seen, value: body.company}}
              - type: set-payload
                settings: {{value: '{{"tier": "smb"}}'}}
        {keys}
"""


async def test_an_agent_calls_its_tool_and_answers():
    turns = [{"calls": [{"name": "classify", "args": {"company": "Acme"}}]}, {"text": {"tier": "smb", "fit": True}}]
    async with harness.runtime(flow(turns)) as octo:
        message = await octo.invoke("f", {"company": "Acme"})

    assert message.body == {"tier": "smb", "fit": True}
    assert message.vars["seen"] == "Acme"


async def test_an_empty_answer_leaves_the_body_as_the_last_tool_left_it():
    turns = [{"calls": [{"name": "classify", "args": {"company": "Acme"}}]}, {"text": ""}]
    async with harness.runtime(flow(turns)) as octo:
        assert (await octo.invoke("f")).body == {"tier": "smb"}


async def test_a_model_that_repairs_its_call_gets_through():
    turns = [
        {"calls": [{"name": "classify", "args": '{"company": "Ac'}]},
        {"calls": [{"name": "classify", "args": {}}]},
        {"calls": [{"name": "classify", "args": {"company": "Acme"}}]},
        {"text": "ok"},
    ]
    async with harness.runtime(flow(turns)) as octo:
        message = await octo.invoke("f")

    assert (message.body, message.vars["seen"]) == ("ok", "Acme")


async def test_the_default_path_sees_what_the_tools_left():
    turns = [{"calls": [{"name": "classify", "args": {"company": "Acme"}}]}, {"text": "I will not.", "stop": "refusal"}]
    keys = """default:
          process:
            - type: set-payload
              settings: {value: '{"manual": vars.seen, "last": body}'}"""
    async with harness.runtime(flow(turns, keys)) as octo:
        assert (await octo.invoke("f")).body == {"manual": "Acme", "last": {"tier": "smb"}}


async def test_a_failing_default_path_fails_the_block():
    keys = """default:
          process:
            - type: set-payload
              name: fallback
              settings: {value: body.missing}"""
    async with harness.runtime(flow([{"stop": "refusal"}], keys)) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.invoke("f", {})

    assert caught.value.message == (
        'block "ag": block "fallback": set-payload value: evaluate expression: no such key: missing'
    )


# ---------------------------------------------------------------- over the wire


WIRE = """
connectors:
  - name: m
    type: llm-anthropic
    settings: {apiKey: k}
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Do it.
        tools:
          - name: t
            description: A tool.
            process:
              - type: set-payload
                settings: {value: 'vars.result'}
        default:
          process:
            - type: set-payload
              settings: {value: '{"default": body}'}
"""


async def over_the_wire(*script, body=None, **vars):
    """The message that came out, and the requests that the vendor took; it must refuse none."""
    with AnthropicServer(script) as server:
        async with harness.runtime(WIRE, environ={"ANTHROPIC_BASE_URL": server.url}) as octo:
            message = await octo.invoke("f", body, vars=vars)
    assert server.refusals == []
    return message, [request.json for request in server.requests]


@pytest.mark.parametrize("result", ["", " ", "\n\t", None, "\ud83d"])
async def test_no_result_of_a_tool_makes_a_request_that_the_vendor_refuses(result):
    script = [vendor_reply(" ", calls=[vendor_call("t")]), vendor_reply("done")]
    message, requests = await over_the_wire(*script, body={"q": "\ud83d"}, result=result)

    assert message.body == "done"
    assert [turn["role"] for turn in requests[1]["messages"]] == ["user", "assistant", "user"]
    assert [part["type"] for part in requests[1]["messages"][1]["content"]] == ["tool_use"]


@pytest.mark.parametrize("arguments", ['{"path":"a"', '{"path":"a"}'], ids=["cut", "parses all the same"])
async def test_calls_that_the_vendor_cut_off_never_run(arguments):
    cut = vendor_reply(calls=[vendor_call("t", arguments)], stop_reason="max_tokens")
    message, requests = await over_the_wire(cut, cut, body="in", result="ran")

    assert message.body == {"default": "in"}
    assert "toolName" not in message.vars
    (result,) = requests[1]["messages"][2]["content"]
    assert result["is_error"] is True


async def test_an_empty_reply_of_the_vendor_is_no_success():
    with pytest.raises(BlockError) as caught:
        await over_the_wire(vendor_reply(), vendor_reply(thinking="Hm."))

    assert caught.value.message == 'block "ag": ai-agent: the model gave an empty answer twice, and no tool ran'


async def test_an_agent_may_work_inside_a_tool_of_another():
    script = [
        vendor_reply(calls=[vendor_call("ask", {"q": "size?"})]),
        vendor_reply(calls=[vendor_call("look", {})]),
        vendor_reply("small"),
        vendor_reply("done"),
    ]
    config = """
connectors:
  - name: m
    type: llm-anthropic
    settings: {apiKey: k}
flows:
  - name: f
    process:
      - type: ai-agent
        connector: m
        prompt: Outer.
        tools:
          - name: ask
            description: Ask another agent.
            process:
              - type: ai-agent
                connector: m
                prompt: Inner.
                input: body.q
                tools:
                  - name: look
                    description: Look.
                    process: []
"""
    with AnthropicServer(script) as server:
        async with harness.runtime(config, environ={"ANTHROPIC_BASE_URL": server.url}) as octo:
            message = await octo.invoke("f", {})

    assert message.body == "done"
    assert server.refusals == []
    assert server.requests[1].json["messages"][0]["content"][0]["text"] == "size?"
    (result,) = server.requests[3].json["messages"][2]["content"]
    assert result["content"] in ('"small"', [{"type": "text", "text": '"small"'}])
