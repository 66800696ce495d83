"""vendor/responses_rules.py, vendor/responses_request.py, vendor/content.py, vendor/responses.py: what is refused."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from vendor.responses import ResponsesServer, call, reply, search, thinking
from vendor.responses_rules import RULES, encrypt

Json = Any

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0....").decode()
PDF = base64.b64encode(b"%PDF-1.7 ....").decode()
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.fixture(scope="module")
def server() -> Iterator[ResponsesServer]:
    with ResponsesServer(lambda _: reply("fine"), api_key="k") as server:
        yield server


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(headers={"authorization": "Bearer k"}) as client:
        yield client


def talk(*items: Json, **more: Json) -> Json:
    return {"model": "gpt-5.4", "store": False, "input": list(items), **more}


def says(*content: Json, role: str = "user", **more: Json) -> Json:
    return {"type": "message", "role": role, "content": list(content), **more}


def text(value: str = "hello") -> Json:
    return {"type": "input_text", "text": value}


def answers(value: str = "fine", **more: Json) -> Json:
    return says({"type": "output_text", "text": value, "annotations": []}, role="assistant", **more)


def calls(id: str = "a", name: str = "find", arguments: str = "{}", **more: Json) -> Json:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments, **more}


def output(id: str = "a", value: Json = "found") -> Json:
    return {"type": "function_call_output", "call_id": id, "output": value}


def thought(id: str = "rs_1", encrypted: str | None = encrypt("x"), **more: Json) -> Json:
    return {"type": "reasoning", "id": id, "summary": [], "encrypted_content": encrypted, **more}


def tool(name: str = "find", schema: Json = None, **more: Json) -> Json:
    parameters = {"type": "object"} if schema is None else schema
    return {"type": "function", "name": name, "parameters": parameters, "strict": False, **more}


def image(data: str, kind: str = "image/png") -> Json:
    return {"type": "input_image", "image_url": f"data:{kind};base64,{data}", "detail": "auto"}


def document(data: str = PDF, **more: Json) -> Json:
    url = f"data:application/pdf;base64,{data}"
    return {"type": "input_file", "filename": "a.pdf", "file_data": url, **more}


def schema(form: Json, **more: Json) -> Json:
    return {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": form, **more}}


HELLO = says(text())

GOOD = {
    "plain text": talk(HELLO),
    "all settings": talk(
        HELLO,
        instructions="be brief",
        include=["reasoning.encrypted_content"],
        max_output_tokens=16,
        temperature=0.5,
        reasoning={"effort": "none"},
        user="u",
        prompt_cache_key="k",
        text=schema(CLOSED),
    ),
    "files before the text": talk(says(image(PNG), image(JPEG, "image/jpeg"), document(), text())),
    "an answer first": talk(answers(), HELLO),
    "an answer as text": talk(HELLO, says(role="assistant") | {"content": "fine"}, HELLO),
    "calls and their outputs": talk(HELLO, calls("a"), calls("b"), output("b"), output("a"), HELLO),
    "reasoning before calls": talk(HELLO, thought(), thought("rs_2"), calls(), output()),
    "a forced tool": talk(HELLO, tools=[tool()], tool_choice={"type": "function", "name": "find"}),
    "a strict tool": talk(HELLO, tools=[tool(schema=CLOSED, strict=True)], tool_choice="required"),
    "an image": talk(HELLO, tools=[{"type": "image_generation"}], tool_choice={"type": "image_generation"}),
    "a search of the web": talk(HELLO, thought(), search("x"), answers(), HELLO, tools=[{"type": "web_search"}]),
    "a model that does not think": talk(HELLO, model="gpt-4.1", temperature=1.5),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_a_good_request_is_answered(server: ResponsesServer, client: httpx.Client, body: Json):
    answer = client.post(f"{server.url}/v1/responses", json=body)

    assert (answer.status_code, answer.json()["error"]) == (200, None)


BAD = {
    "a search without an action": (
        talk(HELLO, {key: value for key, value in search("x").items() if key != "action"}),
        "Missing required parameter: 'input[1].action'.",
    ),
    # shape
    "no model": ({"input": "x", "store": False}, "Missing required parameter: 'model'."),
    "no input": ({"model": "m", "store": False}, "Missing required parameter: 'input'."),
    "unknown key": (talk(HELLO, max_tokens=9), "Unknown parameter: 'max_tokens'."),
    "unknown key of an item": (talk(HELLO | {"name": "x"}), "Unknown parameter: 'input[0].name'."),
    "unknown key of a part": (talk(says(text() | {"detail": "x"})), "Unknown parameter: 'input[0].content[0].detail'."),
    "unknown key of a tool": (
        talk(HELLO, tools=[tool() | {"function": {}}]),
        "Unknown parameter: 'tools[0].function'.",
    ),
    "status of reasoning": (talk(HELLO, thought(status=None), answers()), "Unknown parameter: 'input[1].status'."),
    "unknown kind of item": (talk({"type": "tool_result"}), "Invalid value:"),
    "input text of the assistant": (talk(HELLO, says(text(), role="assistant")), "Invalid value:"),
    "output text of the user": (talk(says({"type": "output_text", "text": "x"})), "Invalid value:"),
    "an image of the assistant": (talk(HELLO, says(image(PNG), role="assistant")), "Invalid value:"),
    "a number as text": (talk(HELLO, max_output_tokens="16"), "Invalid type for 'max_output_tokens'"),
    "cap too small": (talk(HELLO, max_output_tokens=15), "Invalid type for 'max_output_tokens'"),
    "unknown effort": (talk(HELLO, reasoning={"effort": "lots"}), "Invalid value: 'lots'."),
    "unknown include": (talk(HELLO, include=["all"]), "Invalid value: 'all'."),
    "id of a message": (talk(HELLO, answers(id="a")), "Invalid type for 'input[1].id'"),
    "id of a call": (talk(HELLO, calls(id="a" * 65), output("a" * 65)), "Invalid type for 'input[1].call_id'"),
    "name of a call": (talk(HELLO, calls(name="a b"), output()), "Invalid type for 'input[1].name'"),
    "name of a tool": (talk(HELLO, tools=[tool("a b")]), "Invalid type for 'tools[0].name'"),
    "cache key too long": (talk(HELLO, prompt_cache_key="k" * 65), "Invalid type for 'prompt_cache_key'"),
    # items
    "no item": (talk(), 'One of "input"'),
    "blank text": (talk(says(text(" \n"))), "text content must contain non-whitespace text"),
    "blank answer": (talk(HELLO, answers("")), "text content must contain non-whitespace text"),
    "blank output": (talk(HELLO, calls(), output(value=" ")), "text content must contain non-whitespace text"),
    "blank instructions": (talk(HELLO, instructions=""), "text content must contain non-whitespace text"),
    "no content": (talk(says()), "text content must contain non-whitespace text"),
    "one item twice": (
        talk(HELLO, thought(), answers(), HELLO, thought(), answers()),
        "Duplicate item found with id rs_1. Remove duplicate items from your input and try again.",
    ),
    "one call id twice": (talk(HELLO, calls(), output(), calls(), output()), "ids of function calls must be unique"),
    "call without an output": (talk(HELLO, calls()), "No tool output found for function call a."),
    "output after the next user turn": (
        talk(HELLO, calls(), HELLO, output()),
        "No tool output found for function call a.",
    ),
    "output without a call": (talk(HELLO, output()), "No tool call found for function call output with call_id a."),
    "two outputs": (talk(HELLO, calls(), output(), output()), "No tool call found for function call output"),
    "arguments that are no object": (talk(HELLO, calls(arguments="[]"), output()), "expected a JSON object"),
    # reasoning
    "reasoning at the end": (talk(HELLO, thought()), "was provided without its required following item"),
    "reasoning before a user turn": (talk(HELLO, thought(), HELLO), "was provided without its required following item"),
    "reasoning that is stored nowhere": (
        talk(HELLO, thought(encrypted=None), answers()),
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
    ),
    "reasoning of others": (talk(HELLO, thought(encrypted=encrypt("x", "them")), answers()), "could not be verified."),
    "reasoning asked of a model that does not think": (
        talk(HELLO, model="gpt-4o", include=["reasoning.encrypted_content"]),
        "Encrypted content is not supported with this model.",
    ),
    "reasoning for a model that does not think": (
        talk(HELLO, thought(), answers(), HELLO, model="gpt-4.1"),
        "Reasoning input items can only be provided to a reasoning or computer use model.",
    ),
    "effort for a model that does not think": (
        talk(HELLO, model="gpt-4.1", reasoning={"effort": "low"}),
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    ),
    "temperature beside an effort": (
        talk(HELLO, model="gpt-5.4", temperature=0.5, reasoning={"effort": "low"}),
        "Unsupported parameter: 'temperature' is not supported with this model.",
    ),
    "temperature for a model that thinks": (
        talk(HELLO, model="gpt-5-mini", temperature=1),
        "Unsupported parameter: 'temperature' is not supported with this model.",
    ),
    # tools and settings
    "two tools of one name": (talk(HELLO, tools=[tool(), tool()]), "Tool names must be unique."),
    "parameters of no object": (talk(HELLO, tools=[tool(schema={})]), "Invalid schema for function 'find'"),
    "parameters that are no schema": (
        talk(HELLO, tools=[tool(schema={"type": "object", "required": 7})]),
        "Invalid schema for function 'find'",
    ),
    "open parameters in strict mode": (
        talk(HELLO, tools=[{"type": "function", "name": "find", "parameters": {"type": "object"}}]),
        "'additionalProperties' is required to be supplied and to be false.",
    ),
    "a forced tool without tools": (talk(HELLO, tool_choice="required"), "must be specified with 'tools' parameter."),
    "an image without its tool": (
        talk(HELLO, tools=[tool()], tool_choice={"type": "image_generation"}),
        "Tool choice 'image_generation' not found in 'tools' parameter.",
    ),
    "an unknown tool": (
        talk(HELLO, tools=[tool()], tool_choice={"type": "function", "name": "gone"}),
        "Tool choice 'function' not found in 'tools' parameter.",
    ),
    "an open schema": (talk(HELLO, text=schema({"type": "object"})), "'additionalProperties' is required"),
    "an optional property": (
        talk(HELLO, text=schema(CLOSED | {"required": []})),
        "'required' is required to be supplied and to be an array including every key in properties.",
    ),
    "an open schema inside": (
        talk(HELLO, text=schema(CLOSED | {"properties": {"a": {"anyOf": [{"type": ["object", "null"]}]}}})),
        "'additionalProperties' is required",
    ),
    "no schema": (talk(HELLO, text=schema({"type": "thing"})), "Invalid schema for response_format 'answer'"),
    "stored": (talk(HELLO) | {"store": True}, "`store` must be false"),
    "options without a stream": (talk(HELLO, stream_options={}), "'stream_options' parameter is only allowed"),
    # files
    "image of another type": (talk(says(image(JPEG))), "The image data you provided does not represent a valid image."),
    "image that is a document": (
        talk(says(image(PDF, "application/pdf"))),
        "The image data you provided does not represent a valid image.",
    ),
    "image without bytes": (talk(says(image(""))), "Expected a data URL with an image MIME type."),
    "document without a name": (
        talk(says(document(filename=None))),
        "Missing required parameter: 'input[0].content[0]",
    ),
    "document of another name": (
        talk(says(document(filename="a.txt"))),
        "Expected context stuffing file type to be a supported format: .pdf",
    ),
    "document that is an image": (talk(says(document(PNG))), "Expected a data URL with an application/pdf MIME type."),
}


@pytest.mark.parametrize(("body", "message"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(server: ResponsesServer, client: httpx.Client, body: Json, message: str):
    answer = client.post(f"{server.url}/v1/responses", json=body)

    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_each_rule_refuses_something(server: ResponsesServer, client: httpx.Client):
    from vendor.responses_request import Refused, read

    biting = set()
    for body, _ in BAD.values():
        try:
            request = read(body)
        except Refused:
            continue
        biting |= {rule for rule in RULES if list(rule(request))}

    assert biting == set(RULES)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/responses", {"authorization": "Bearer other"}, 401),
        ("/v1/responses", {"authorization": ""}, 401),
        ("/v1/chat/completions", {}, 404),
        ("/v1/responses", {"content-type": "text/plain"}, 400),
    ],
)
def test_a_call_of_something_else_is_refused(
    server: ResponsesServer, client: httpx.Client, path: str, headers: dict[str, str], status: int
):
    assert client.post(f"{server.url}{path}", headers=headers, json=talk(HELLO)).status_code == status


def test_a_body_that_is_no_json_is_refused(server: ResponsesServer, client: httpx.Client):
    for body in (b"{", b'{"model": NaN}', b'{"model": "\\ud83d"}'):
        answer = client.post(f"{server.url}/responses", headers={"content-type": "application/json"}, content=body)

        assert answer.json()["error"]["message"].startswith("We could not parse the JSON body of your request")


def test_parameters_can_be_refused_one_by_one(client: httpx.Client):
    with ResponsesServer(lambda _: reply("fine"), rejects=["temperature", "reasoning.summary"]) as picky:
        for more, status in (
            ({"temperature": 1}, 400),
            ({"reasoning": {"effort": "low", "summary": "auto"}}, 400),
            ({"reasoning": {"effort": "low"}}, 200),
        ):
            assert client.post(f"{picky.url}/responses", json=talk(HELLO, **more)).status_code == status


def test_reasoning_of_the_open_turn_comes_back_as_it_was(client: httpx.Client):
    with ResponsesServer([reply(thinking("so"), calls=[call("find", id="c")]), reply("one"), reply("two")]) as server:
        given, called = client.post(f"{server.url}/responses", json=talk(HELLO)).json()["output"]
        sent = {key: given[key] for key in ("type", "id", "summary", "encrypted_content")}
        plain = calls("c")

        for before in ([], [sent | {"summary": []}]):
            answer = client.post(f"{server.url}/responses", json=talk(HELLO, *before, plain, output("c")))
            assert "without its required 'reasoning' item" in answer.json()["error"]["message"]

        assert client.post(f"{server.url}/responses", json=talk(HELLO, sent, plain, output("c"))).status_code == 200
        done = [plain, output("c"), answers(), HELLO]
        assert client.post(f"{server.url}/responses", json=talk(HELLO, *done)).status_code == 200

    assert called["call_id"] == "c"
