"""vendor/chat_rules.py, vendor/chat_files.py, vendor/chat_request.py, vendor/chat.py: what is refused."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from vendor.chat import ChatServer, call, reply
from vendor.chat_request import DIALECTS

Json = Any

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0....").decode()
PDF = base64.b64encode(b"%PDF-1.7 ....").decode()
WAV = base64.b64encode(b"RIFF....WAVEfmt ").decode()


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, ChatServer]]:
    running = {dialect: ChatServer(lambda _: reply("fine"), dialect=dialect, api_key="k") for dialect in DIALECTS}
    for server in running.values():
        server.__enter__()
    yield running
    for server in running.values():
        server.__exit__(None, None, None)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(headers={"authorization": "Bearer k"}) as client:
        yield client


def asking(content: Json = "hello", **more: Json) -> Json:
    """A good request with one user turn."""
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}


def talk(*turns: Json, **more: Json) -> Json:
    """A request that begins with a user turn."""
    return {"model": "m", "messages": [{"role": "user", "content": "hello"}, *turns], **more}


def says(content: Json, **more: Json) -> Json:
    return {"role": "assistant", "content": content, **more}


def calls(*ids: str, name: str = "find", arguments: str = "{}") -> Json:
    function = {"name": name, "arguments": arguments}
    return says(None, tool_calls=[{"id": id, "type": "function", "function": function} for id in ids])


def result(id: str = "a", content: Json = "found") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


def tool(name: str = "find", **schema: Json) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}}


def text(value: str = "hello") -> Json:
    return {"type": "text", "text": value}


def image(data: str, kind: str = "image/png") -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}


def document(data: str = PDF, **file: Json) -> Json:
    url = f"data:application/pdf;base64,{data}"
    return {"type": "file", "file": {"filename": "a.pdf", "file_data": url, **file}}


def sound(data: Json, **form: str) -> Json:
    return {"type": "input_audio", "input_audio": {"data": data, **form} if form else data}


def strict(schema: Json, name: str = "answer") -> Json:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = {"role": "system", "content": "be brief"}

GOOD = {
    "plain text": ("openai", asking()),
    "a system text, tools, a forced one": (
        "openai",
        {
            "model": "m",
            "messages": [SYSTEM, {"role": "user", "content": "x"}],
            "tools": [tool()],
            "tool_choice": {"type": "function", "function": {"name": "find"}},
        },
    ),
    "a text of the developer": (
        "openai",
        {"model": "m", "messages": [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "x"}]},
    ),
    "files before the text": (
        "openai",
        asking([image(PNG), document(), sound(WAV, format="wav"), text()]),
    ),
    "calls and their results in any order": ("openai", talk(calls("a", "b"), result("b"), result("a"), says("so"))),
    "a user turn after results": ("openai", talk(calls("a"), result(), {"role": "user", "content": "x"})),
    "a reasoning model": ("openai", asking(model="gpt-5.4", max_completion_tokens=9, reasoning_effort="low")),
    "an older model": ("openai", asking(model="gpt-4o", max_tokens=9, temperature=0.2)),
    "a stream with usage": ("openai", asking(stream=True, stream_options={"include_usage": True})),
    "a closed schema": ("openai", asking(response_format=strict(CLOSED))),
    "everything else": ("openai", asking(prompt_cache_key="k", user="u", seed=1, stop=["x"], top_p=1.0)),
    "usage accounting and reasoning of OpenRouter": (
        "openrouter",
        talk(says("x", reasoning_details=[{"type": "reasoning.text"}]), usage={"include": True}),
    ),
    "marks for caching of OpenRouter": ("openrouter", asking([text(), text() | MARK])),
    "thinking of DeepSeek": ("deepseek", talk(says("x", reasoning_content="y"), thinking={"type": "disabled"})),
    "ids, documents and audio of Mistral": (
        "mistral",
        {
            "model": "m",
            "max_tokens": 9,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "document_url", "document_url": f"data:application/pdf;base64,{PDF}"},
                        sound(WAV),
                    ],
                },
                calls("abcdefgh1"),
                result("abcdefgh1"),
            ],
        },
    ),
}


@pytest.mark.parametrize(("dialect", "body"), GOOD.values(), ids=GOOD)
def test_a_good_request_is_answered(servers: dict[str, ChatServer], client: httpx.Client, dialect: str, body: Json):
    answer = client.post(f"{servers[dialect].url}/v1/chat/completions", json=body)

    assert (answer.status_code, answer.text.partition("error")[1]) == (200, "")


EMPTY = "text content blocks must be non-empty"
LONE = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
PATTERN = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
UNSUPPORTED = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png', 'jpeg', 'gif', 'webp']."
)
NO_PDF = "Invalid file data. Expected a base64-encoded data URL with an application/pdf MIME type."
OBJECT = "Invalid 'messages[1].tool_calls[0].function.arguments': expected a JSON object"
RESPONSE_FORMAT = "Invalid schema for response_format 'answer': In context=(), "
NOTHING = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."

BAD = {
    # shape
    "no model": ({"messages": []}, "Missing required parameter: 'model'."),
    "no messages": ({"model": "m"}, "Missing required parameter: 'messages'."),
    "unknown key": (asking(brand_new=1), "Unknown parameter: 'brand_new'."),
    "unknown key of a message": (
        talk(says("x", mood="calm")),
        "Unknown parameter: 'messages[1].mood'.",
    ),
    "unknown key of a part": (
        asking([{**text(), "brand_new": {}}]),
        "Unknown parameter: 'messages[0].content[0].brand_new'.",
    ),
    "key of another provider": (asking(usage={"include": True}), "Unknown parameter: 'usage'."),
    "reasoning of another provider": (
        talk(says("x", reasoning_content="y")),
        "Unknown parameter: 'messages[1].reasoning_content'.",
    ),
    "no calls in a list of calls": (
        talk(says("x", tool_calls=[])),
        "Invalid value for 'messages[1].tool_calls': List should have at least 1 item after validation, not 0.",
    ),
    "arguments as an object": (
        talk(says(None, tool_calls=[{"id": "a", "type": "function", "function": {"name": "t", "arguments": {}}}])),
        "Invalid value for 'messages[1].tool_calls[0].function.arguments': Input should be a valid string.",
    ),
    "cap of zero": (
        asking(max_completion_tokens=0),
        "Invalid value for 'max_completion_tokens': Input should be greater than or equal to 1.",
    ),
    "a cache key that is too long": (
        asking(prompt_cache_key="k" * 65),
        "Invalid value for 'prompt_cache_key': String should have at most 64 characters.",
    ),
    # messages
    "nothing said": ({"model": "m", "messages": [SYSTEM]}, NOTHING),
    "a late system text": (talk(SYSTEM), "System message must be at the beginning."),
    "two user turns": (
        talk({"role": "user", "content": "x"}),
        "Conversation roles must alternate user/assistant/user/assistant/...",
    ),
    "no content and no calls": (
        talk(says(None)),
        "Invalid value for 'content': expected a string, got null.",
    ),
    "blank text": (asking(" "), f"Invalid value for 'messages[0].content': {EMPTY}"),
    "blank part": (asking([text("\n")]), f"Invalid value for 'messages[0].content': {EMPTY}"),
    "no parts": (asking([]), f"Invalid value for 'messages[0].content': {EMPTY}"),
    "blank result": (talk(calls("a"), result(content="")), f"Invalid value for 'messages[2].content': {EMPTY}"),
    # calls
    "a call without a result": (talk(calls("a", "b"), result("a")), f"{UNANSWERED}b"),
    "a result after another turn": (
        talk(calls("a"), {"role": "user", "content": "x"}, result()),
        f"{UNANSWERED}a",
    ),
    "a result without a call": (talk(says("x"), result()), LONE),
    "a result twice": (talk(calls("a"), result(), result()), LONE),
    "an id twice": (
        talk(calls("a"), result(), calls("a"), result()),
        "Invalid 'messages': ids of tool calls must be unique",
    ),
    "a long id": (
        talk(calls("a" * 41), result("a" * 41)),
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a "
        "string with length 41 instead.",
    ),
    "the name of a call": (
        talk(calls("a", name="no dots."), result()),
        f"Invalid 'messages[1].tool_calls[0].function.name': {PATTERN}",
    ),
    "arguments that are cut": (talk(calls("a", arguments='{"a":'), result()), OBJECT),
    "arguments that are a list": (talk(calls("a", arguments="[]"), result()), OBJECT),
    "arguments that are no JSON": (talk(calls("a", arguments='{"a": NaN}'), result()), OBJECT),
    # tools and settings
    "the name of a tool": (asking(tools=[tool("é")]), f"Invalid 'tools[0].function.name': {PATTERN}"),
    "a tool twice": (asking(tools=[tool(), tool()]), "Tool names must be unique."),
    "parameters of another kind": (
        asking(tools=[tool(type="array")]),
        "Invalid schema for function 'find': schema must be a JSON Schema of 'type: \"object\"', "
        "got 'type: \"array\"'.",
    ),
    "parameters that are no schema": (
        asking(tools=[tool(properties={"a": {"type": "nonsense"}})]),
        "Invalid schema for function 'find'",
    ),
    "a choice without tools": (
        asking(tool_choice="required"),
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    ),
    "a choice that is not there": (
        asking(tools=[tool()], tool_choice={"type": "function", "function": {"name": "other"}}),
        "Tool choice 'other' not found in 'tools' parameter.",
    ),
    "stream options without a stream": (
        asking(stream_options={"include_usage": True}),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    ),
    "two caps": (
        asking(max_tokens=1, max_completion_tokens=1),
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
    ),
    "the old cap on a reasoning model": (
        asking(model="o3", max_tokens=1),
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ),
    "an effort on an older model": (
        asking(model="gpt-4.1", reasoning_effort="none"),
        "Unrecognized request argument supplied: reasoning_effort",
    ),
    "a temperature beside an effort": (
        asking(model="gpt-5.4", temperature=0.5, reasoning_effort="low"),
        "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is "
        "supported.",
    ),
    "a temperature on a reasoning model": (
        asking(model="gpt-5-mini", temperature=0.5),
        "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is "
        "supported.",
    ),
    "an effort beside tools": (
        asking(model="gpt-5.4", tools=[tool()], reasoning_effort="low"),
        "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use "
        "/v1/responses instead.",
    ),
    "an open object": (
        asking(response_format=strict({**CLOSED, "additionalProperties": True})),
        f"{RESPONSE_FORMAT}'additionalProperties' is required to be supplied and to be false.",
    ),
    "an optional property": (
        asking(response_format=strict({**CLOSED, "required": []})),
        f"{RESPONSE_FORMAT}'required' is required to be supplied and to be an array including every key in properties.",
    ),
    "an answer that is no schema": (
        asking(response_format=strict({"type": "nonsense"})),
        f"{RESPONSE_FORMAT}it is no JSON Schema.",
    ),
    "the name of an answer": (
        asking(response_format=strict(CLOSED, name="é")),
        "Invalid 'response_format.json_schema.name': string does not match pattern.",
    ),
    # files
    "an image of another kind": (asking([image(JPEG)]), UNSUPPORTED),
    "a document as an image": (asking([image(PDF, "application/pdf")]), UNSUPPORTED),
    "broken base64": (asking([image("###")]), "Invalid base64 image_url."),
    "base64 of URLs": (asking([image("_-_-")]), "Invalid base64 image_url."),
    "no image data": (asking([image("")]), "Invalid base64 image_url."),
    "a document of another name": (
        asking([document(filename="a.txt")]),
        "Expected context stuffing file type to be a supported format: .pdf",
    ),
    "a document without a name": (asking([document(filename=None)]), "Missing required parameter: 'file.filename'."),
    "a document that is none": (asking([document(PNG)]), NO_PDF),
    "audio that is none": (
        asking([sound(PNG, format="wav")]),
        "The data provided for 'input_audio' is not of valid wav format.",
    ),
    "audio of another format": (
        asking([sound(WAV, format="mp3")]),
        "The data provided for 'input_audio' is not of valid mp3 format.",
    ),
}


@pytest.mark.parametrize(("body", "message"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(servers: dict[str, ChatServer], client: httpx.Client, body: Json, message: str):
    answer = client.post(f"{servers['openai'].url}/v1/chat/completions", json=body)

    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


OF_ONE = {
    "parts at DeepSeek": ("deepseek", asking([text()]), "messages[0]: invalid type: sequence, expected a string"),
    "the new cap at Mistral": (
        "mistral",
        asking(max_completion_tokens=1),
        "Unknown parameter: 'max_completion_tokens'.",
    ),
    "another id at Mistral": (
        "mistral",
        talk(calls("call_1"), result("call_1")),
        "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
    ),
    "a user turn after results at Mistral": (
        "mistral",
        talk(calls("abcdefgh1"), result("abcdefgh1"), {"role": "user", "content": "x"}),
        "Unexpected role 'user' after role 'tool'",
    ),
    "the model speaks last at Mistral": (
        "mistral",
        talk(says("x")),
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    ),
    "the new cap at DeepSeek": (
        "deepseek",
        asking(max_completion_tokens=1),
        "Unknown parameter: 'max_completion_tokens'.",
    ),
    "a schema at DeepSeek": (
        "deepseek",
        asking(response_format=strict(CLOSED)),
        "This response_format type is unavailable now",
    ),
    "a schema beside tools at Groq": (
        "groq",
        asking(response_format=strict(CLOSED), tools=[tool()]),
        "json mode cannot be combined with tool/function calling",
    ),
    "a document at Groq": (
        "groq",
        asking([text(), document()]),
        "unknown type of content `file`, expected `text` or `image_url`",
    ),
    "a document at Together AI": (
        "together",
        asking([text(), document()]),
        "unknown type of content `file`, expected `text` or `image_url`",
    ),
    "a schema of a stream at Groq": (
        "groq",
        asking(response_format=strict(CLOSED), stream=True),
        "json mode cannot be combined with streaming",
    ),
    "marks for caching of others": (
        "openai",
        asking([text() | MARK]),
        "Unknown parameter: 'messages[0].content[0].cache_control'.",
    ),
    "five marks": (
        "openrouter",
        asking([text() | MARK] * 5),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "thinking before a forced tool at OpenRouter": (
        "openrouter",
        asking(model="anthropic/claude-x", tools=[tool()], tool_choice="required", reasoning_effort="low"),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "thinking before a forced tool at DeepSeek": (
        "deepseek",
        asking(model="deepseek-reasoner", tools=[tool()], tool_choice="required", reasoning_effort="low"),
        "deepseek-reasoner does not support this tool_choice",
    ),
    "thinking at OpenRouter": (
        "openrouter",
        asking(thinking={"type": "disabled"}),
        "Unknown parameter: 'thinking'.",
    ),
}


@pytest.mark.parametrize(("dialect", "body", "message"), OF_ONE.values(), ids=OF_ONE)
def test_one_provider_refuses(
    servers: dict[str, ChatServer], client: httpx.Client, dialect: str, body: Json, message: str
):
    answer = client.post(f"{servers[dialect].url}/v1/chat/completions", json=body)

    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize("dialect", ["openrouter", "deepseek"])
def test_reasoning_of_the_open_turn_must_come_back(client: httpx.Client, dialect: str):
    with ChatServer([reply(reasoning="hm", calls=[call("find")]), reply("done")], dialect=dialect) as server:
        url = f"{server.url}/chat/completions"
        message = client.post(url, json=asking()).json()["choices"][0]["message"]
        turn = {key: message[key] for key in ("role", "content", "tool_calls", server.dialect.echoes)}
        answered = result(message["tool_calls"][0]["id"])
        kept = client.post(url, json=talk(turn, answered))
        del turn[server.dialect.echoes]
        lost = client.post(url, json=talk(turn, answered))

    assert kept.status_code == 200
    assert lost.json()["error"]["message"] == (
        f"messages[1].{server.dialect.echoes}: reasoning of a turn with tool calls must be passed back unmodified"
    )


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({"authorization": "Bearer other"}, 401, "Incorrect API key provided."),
        ({"content-type": "text/plain"}, 400, "you must provide a JSON body with content-type application/json"),
    ],
    ids=["wrong key", "wrong type"],
)
def test_headers_are_checked(
    servers: dict[str, ChatServer], client: httpx.Client, headers: dict[str, str], status: int, message: str
):
    answer = client.post(f"{servers['openai'].url}/chat/completions", json=asking(), headers=headers)

    assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)


def test_another_address_is_refused(servers: dict[str, ChatServer], client: httpx.Client):
    answer = client.post(f"{servers['openai'].url}/v1/completions", json=asking())

    assert answer.json()["error"]["message"] == "Invalid URL (POST /v1/completions)"


def test_half_a_character_is_no_json(servers: dict[str, ChatServer], client: httpx.Client):
    headers = {"content-type": "application/json"}
    answer = client.post(f"{servers['openai'].url}/chat/completions", content=b'{"a":"\\ud83d"}', headers=headers)

    assert answer.json()["error"]["message"].startswith("We could not parse the JSON body of your request: ")


def test_a_parameter_can_be_rejected(client: httpx.Client):
    with ChatServer([reply("fine")], rejects=["temperature"]) as server:
        answer = client.post(f"{server.url}/chat/completions", json=asking(temperature=0.5))

    assert answer.json()["error"] == {
        "message": "Unsupported parameter: 'temperature' is not supported with this model.",
        "type": "invalid_request_error",
        "param": "temperature",
        "code": None,
    }
