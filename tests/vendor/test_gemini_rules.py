"""vendor/gemini_rules.py, vendor/gemini_request.py, vendor/gemini.py: the double refuses what the vendor refuses."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from vendor.gemini import GeminiServer, call, reply
from vendor.gemini_rules import SKIP, sign

Json = Any

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
JSON = "application/json"


@pytest.fixture(scope="module")
def server() -> Iterator[GeminiServer]:
    with GeminiServer(lambda _: reply("fine")) as server:
        yield server


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(headers={"x-goog-api-key": "k"}) as client:
        yield client


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def said(*parts: Json) -> Json:
    return user(*parts) | {"role": "model"}


def talk(*contents: Json, **more: Json) -> Json:
    """A request that begins with a user turn."""
    return {"contents": [user("hello"), *contents], **more}


def use(name: str = "find", signature: str | None = SKIP, **more: Json) -> Json:
    part: Json = {"functionCall": {"name": name, "args": {}, **more}}
    return part | {"thoughtSignature": signature} if signature else part


def result(name: str = "find", response: Json = None, **more: Json) -> Json:
    return {"functionResponse": {"name": name, "response": response or {"result": "found"}, **more}}


def tool(parameters: Json = None, name: str = "find") -> Json:
    return {"name": name, "description": "d"} | ({"parameters": parameters} if parameters else {})


def tools(*declarations: Json, **more: Json) -> Json:
    return talk(tools=[{"functionDeclarations": list(declarations)}], **more)


def field(**schema: Json) -> Json:
    """A request with a tool that has one parameter of a schema."""
    return tools(tool({"type": "object", "properties": {"a": schema}}))


def config(**fields: Json) -> Json:
    return talk(generationConfig=fields)


def thinks(**fields: Json) -> Json:
    return config(thinkingConfig=fields)


def choice(*declarations: Json, **config: Json) -> Json:
    return tools(*declarations, toolConfig={"functionCallingConfig": config})


def file(mime_type: str, data: str) -> Json:
    return talk(user({"inlineData": {"mimeType": mime_type, "data": data}}))


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}

GOOD = {
    "a search": talk(tools=[{"googleSearch": {}}]),
    "a search beside tools": talk(
        tools=[{"functionDeclarations": [tool()]}, {"googleSearch": {}}],
        toolConfig={"includeServerSideToolInvocations": True},
    ),
    "plain text": talk(),
    "a system text": talk(systemInstruction={"parts": [{"text": "be brief"}]}),
    "calls and their responses, then text": talk(
        said("wait", use(), use("look", None)), user(result(), result("look")), user("x")
    ),
    "ids of calls": talk(said(use(id="1"), use(id="2")), user(result(id="1"), result(id="2"))),
    "unsigned calls of a turn that is over": talk(said(use(signature=None)), user(result()), user("go on")),
    "a signed thought": talk(said({"text": "hm", "thought": True, "thoughtSignature": sign("hm")}, "yes")),
    "an empty part with a signature": talk(said("yes", {"text": "", "thoughtSignature": sign("")})),
    "a tool without parameters": tools(tool()),
    "every keyword": tools(
        tool(
            {
                "type": "OBJECT",
                "title": "t",
                "description": "d",
                "nullable": True,
                "required": ["s"],
                "propertyOrdering": ["s", "n"],
                "minProperties": 1,
                "maxProperties": 4,
                "properties": {
                    "s": {
                        "type": "string",
                        "format": "enum",
                        "enum": ["x"],
                        "minLength": 1,
                        "maxLength": 2,
                        "pattern": "x",
                    },
                    "n": {"type": "number", "format": "float", "minimum": 0, "maximum": 1},
                    "i": {"type": "integer", "format": "int64"},
                    "l": {
                        "type": "array",
                        "items": {"type": "string", "format": "date-time"},
                        "minItems": 1,
                        "maxItems": 2,
                    },
                    "u": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "boolean"}]},
                },
            }
        )
    ),
    "a forced tool": choice(tool(), mode="ANY", allowedFunctionNames=["find"]),
    "a picture": file("image/png", PNG),
    "a level of thinking": thinks(thinkingLevel="low", includeThoughts=True),
    "json": config(responseMimeType=JSON, responseSchema=OBJECT, maxOutputTokens=9, temperature=2),
    "json beside tools": tools(tool(), generationConfig={"responseMimeType": JSON}),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_a_good_request_is_answered(server: GeminiServer, client: httpx.Client, body: Json) -> None:
    answer = client.post(f"{server.base_url}/models/gemini-3-flash:generateContent", json=body)

    assert (answer.status_code, answer.json().get("error")) == (200, None)


BAD = {
    # shape
    "unknown key": (talk(model="m"), 'Unknown name "model": Cannot find field.'),
    "unknown key of a part": (
        talk(said({"text": "x", "replay": 1})),
        "Unknown name \"replay\" at 'contents[1].parts[0]'",
    ),
    "another role": ({"contents": [{**user("x"), "role": "tool"}]}, "Invalid value at 'contents[0].role'"),
    "a number as text": (config(maxOutputTokens="9"), "Invalid value at 'generationConfig.maxOutputTokens'"),
    "arguments as text": (
        talk(said({"functionCall": {"name": "find", "args": "{}"}}), user(result())),
        "Invalid value at 'contents[1].parts[0].functionCall.args'",
    ),
    "a temperature above two": (config(temperature=2.1), "Invalid value at 'generationConfig.temperature'"),
    "an answer without tokens": (config(maxOutputTokens=0), "Invalid value at 'generationConfig.maxOutputTokens'"),
    "an unknown level": (
        thinks(thinkingLevel="lots"),
        "Invalid value at 'generationConfig.thinkingConfig.thinkingLevel'",
    ),
    # contents
    "no contents": ({"contents": []}, "contents is not specified"),
    "a model turn first": ({"contents": [said("x")]}, "Please ensure that multiturn requests start with a user turn"),
    "no parts": (talk(said()), "contents.parts must not be empty."),
    "a part of nothing": (talk(said({"thoughtSignature": "x"})), "required oneof field 'data'"),
    "a part of two things": (talk(said(use() | {"text": "x"}), user(result())), "required oneof field 'data'"),
    "blank text": (talk(said(" ")), "it has an empty text parameter."),
    "blank system text": (talk(systemInstruction={"parts": [{"text": ""}]}), "it has an empty text parameter."),
    "a call of the user": (talk(user(use()), user(result())), "a user turn has no calls and no thoughts"),
    "a result of the model": (talk(said(use()), said(result())), "a model turn has no function responses"),
    # calls and responses
    "a call after a model turn": (
        talk(said("x"), said(use()), user(result())),
        "function call turn comes immediately after a user turn",
    ),
    "a call without a result": (talk(said(use())), "the number of function response parts is equal"),
    "one result of two": (
        talk(said(use(), use("look")), user(result())),
        "the number of function response parts is equal",
    ),
    "a result without a call": (talk(said("x"), user(result())), "the number of function response parts is equal"),
    "a result first of all": ({"contents": [user(result())]}, "function response turn comes immediately after"),
    "a result of another call": (talk(said(use()), user(result("look"))), "does not match the function call"),
    "a result with another id": (talk(said(use(id="1")), user(result(id="2"))), "does not match the function call"),
    "a result beside text": (talk(said(use()), user(result(), "go on")), "function responses stand beside other parts"),
    "a result spread as an object": (
        talk(said(use()), user(result(response={"a": 1}))),
        "must be a `result` or an `error`",
    ),
    "a result that is no text": (
        talk(said(use()), user(result(response={"result": {}}))),
        "must be text that is not blank",
    ),
    "an id that is used twice": (
        talk(said(use(id="1"), use(id="1")), user(result(id="1"), result(id="1"))),
        "The ids of function calls must be unique",
    ),
    # tools
    "a name that begins with a digit": (tools(tool(name="1st")), "Invalid function name. Must start with a letter"),
    "a long name": (tools(tool(name="n" * 65)), "Invalid function name."),
    "two of a name": (tools(tool(), tool()), "Duplicate function declaration found: find"),
    "parameters of a list": (tools(tool({"type": "array", "items": {"type": "string"}})), "should be of type OBJECT"),
    "parameters without properties": (tools(tool({"type": "object"})), "should be non-empty for OBJECT type"),
    "a choice without tools": (
        talk(toolConfig={"functionCallingConfig": {"mode": "ANY"}}),
        "Function calling config is set without function_declarations.",
    ),
    "a named tool without force": (choice(tool(), allowedFunctionNames=["find"]), "only when the mode is ANY"),
    "a named tool that is none": (choice(tool(), mode="ANY", allowedFunctionNames=["x"]), "`x`, which is not declared"),
    # schemas
    **{
        f"the keyword {key}": (field(type="string", **{key: value}), f'Unknown name "{key}"')
        for key, value in {
            "$ref": "#",
            "$defs": {},
            "const": "x",
            "oneOf": [],
            "allOf": [],
            "not": {},
            "default": "x",
            "exclusiveMinimum": 1,
            "multipleOf": 2,
            "additionalProperties": False,
            "patternProperties": {},
        }.items()
    },
    "several types": (field(type=["string", "null"]), "properties.a.type"),
    "an unknown type": (field(type="text"), "properties.a.type"),
    "no type": (field(description="d"), "schema didn't specify the schema type field."),
    "a list of anything": (field(type="array"), "properties[a].items: missing field."),
    "a keyword of another type": (
        field(type="string", minimum=1),
        "properties[a].minimum: not allowed for STRING type",
    ),
    "a format of another kind": (field(type="string", format="email"), "format: `email` is not supported for STRING"),
    "an enumeration of numbers": (field(type="integer", enum=[1]), "properties.a.enum[0]"),
    "an enumeration beside another type": (
        field(type="integer", enum=["1"]),
        "properties[a].enum: not allowed for INTEGER",
    ),
    "an empty text to choose": (field(type="string", enum=[""]), "properties[a].enum: cannot be empty"),
    "nothing to choose": (field(type="string", enum=[]), "properties[a].enum: should be non-empty"),
    "alternatives beside a type": (field(type="string", anyOf=[{"type": "string"}]), "other fields alongside any_of."),
    "no alternatives": (field(anyOf=[]), "any_of: should be non-empty"),
    "required without a property": (
        tools(tool({**OBJECT, "required": ["b"]})),
        "parameters.required[0]: property is not defined",
    ),
    "a fault deep inside": (
        field(anyOf=[{"type": "array", "items": {"type": "object", "properties": {"b": {"type": "array"}}}}]),
        "properties[a].any_of[0].items.properties[b].items: missing field.",
    ),
    "a schema of an answer that is no JSON": (config(responseSchema=OBJECT), "must be set with response_schema"),
    "a fault in the schema of an answer": (
        config(responseMimeType=JSON, responseSchema={"type": "array"}),
        "generation_config.response_schema.items: missing field.",
    ),
    # files
    "base64 of the URL alphabet": (file("image/png", "__-_"), "Base64 decoding failed"),
    "a type that is not read": (file("image/gif", PNG), "Unsupported MIME type: image/gif"),
    "bytes of another type": (file("image/jpeg", PNG), "Unable to process input image."),
    "no bytes": (file("text/plain", ""), "Unable to process input image."),
    # thinking
    "budget and level": (
        thinks(thinkingBudget=-1, thinkingLevel="low"),
        "only one of thinking budget and thinking level.",
    ),
    "a budget that is too small": (thinks(thinkingBudget=5), "The thinking budget 5 is invalid."),
    "thoughts without thinking": (thinks(thinkingBudget=0, includeThoughts=True), "include_thoughts is only enabled"),
    # signatures
    "a call that is not signed": (talk(said(use(signature=None)), user(result())), "is missing a thought_signature"),
    "a signature of another call": (
        talk(said(use(signature=sign({"name": "look"}))), user(result())),
        "Thought signature is not valid.",
    ),
    "a signature of another text": (
        talk(said({"text": "yes", "thoughtSignature": sign("no")})),
        "Thought signature is not valid.",
    ),
    "the skip value on a text": (
        talk(said({"text": "x", "thoughtSignature": SKIP})),
        "Thought signature is not valid.",
    ),
    "a signature that is none": (talk(said(use(signature="??")), user(result())), "Thought signature is not valid."),
}


@pytest.mark.parametrize(("body", "text"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(server: GeminiServer, client: httpx.Client, body: Json, text: str) -> None:
    answer = client.post(f"{server.base_url}/models/gemini-3-flash:generateContent", json=body)

    assert answer.status_code == 400
    assert text in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("model", "body", "text"),
    [
        ("gemini-2.5-pro", thinks(thinkingLevel="low"), "Thinking level is not supported for this model."),
        ("gemini-3-pro", thinks(thinkingLevel="minimal"), "Thinking level MINIMAL is not supported for this model."),
        ("gemini-2.5-pro", thinks(thinkingBudget=0), "Budget 0 is invalid. This model only works in thinking mode."),
        ("gemini-2.5-flash", GOOD["json beside tools"], "'application/json' is unsupported"),
        ("gemini-2.5-flash", GOOD["a search beside tools"], "Tool use with function calling is unsupported"),
        (
            "gemini-2.5-flash",
            config(responseMimeType=JSON) | {"tools": [{"googleSearch": {}}]},
            "Tool use with a response mime type: 'application/json' is unsupported",
        ),
        (
            "gemini-3-flash",
            {key: value for key, value in GOOD["a search beside tools"].items() if key != "toolConfig"},
            "Please enable tool_config.include_server_side_tool_invocations",
        ),
    ],
    ids=["level", "minimal level", "no budget", "json beside tools", "search", "search and json", "search alone"],
)
def test_what_a_model_does_not_take(
    server: GeminiServer, client: httpx.Client, model: str, body: Json, text: str
) -> None:
    answer = client.post(f"{server.base_url}/models/{model}:generateContent", json=body)

    assert answer.status_code == 400
    assert text in answer.json()["error"]["message"]


def test_calls_of_earlier_models_need_no_signature(server: GeminiServer, client: httpx.Client) -> None:
    body = talk(said(use(signature=None)), user(result()))

    assert client.post(f"{server.base_url}/models/gemini-2.5-pro:generateContent", json=body).status_code == 200


@pytest.mark.parametrize("signature", [None, SKIP, "b64"], ids=["none", "skip value", "of another call"])
def test_a_signature_that_was_given_must_come_back(client: httpx.Client, signature: str | None) -> None:
    with GeminiServer([reply(calls=[call("find", id="1"), call("find", id="2")])] * 2) as server:
        address = f"{server.base_url}/models/gemini-3-flash:generateContent"
        parts = client.post(address, json=talk()).json()["candidates"][0]["content"]["parts"]
        results = user(result(id="1"), result(id="2"))
        untouched = client.post(address, json=talk(said(*parts), results))
        wrong = sign(parts[0]["functionCall"], 99) if signature == "b64" else signature
        parts[0] = {"functionCall": parts[0]["functionCall"]} | ({"thoughtSignature": wrong} if wrong else {})
        changed = client.post(address, json=talk(said(*parts), results, user("go on")))

    assert (untouched.status_code, changed.status_code) == (200, 400)
    assert "is not the one that was given" in changed.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1beta/models/m:generateContent", {}, 403),
        ("/v1beta/models/m:generateContent", {"authorization": "Bearer k"}, 403),
        ("/v1beta/models/m:generateContent", {"x-goog-api-key": "k", "authorization": "Bearer k"}, 400),
        ("/v1beta/models/m:generateContent", {"x-goog-api-key": "wrong"}, 400),
        ("/v1beta/models/models/m:generateContent", {"x-goog-api-key": "k"}, 404),
        ("/v1beta/models/m:streamGenerateContent", {"x-goog-api-key": "k"}, 400),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", {"x-goog-api-key": "k"}, 200),
        ("/v1beta/models/m:generateContent?alt=sse", {"x-goog-api-key": "k"}, 400),
    ],
    ids=["no key", "a token", "both", "another key", "address", "stream of another form", "stream", "no stream"],
)
def test_address_and_key(path: str, headers: dict[str, str], status: int) -> None:
    with GeminiServer([reply("x")], key="k") as server:
        assert httpx.post(f"{server.url}{path}", headers=headers, json=talk()).status_code == status


def test_on_vertex_a_token_is_wanted_and_no_key() -> None:
    with GeminiServer([reply("x")], platform="vertex") as server:
        answers = [
            httpx.post(f"{server.base_url}/m:generateContent", headers=headers, json=talk()).status_code
            for headers in ({"authorization": "Bearer t"}, {"x-goog-api-key": "k"})
        ]

    assert answers == [200, 403]
