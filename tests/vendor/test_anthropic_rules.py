"""vendor/anthropic_rules.py, vendor/anthropic_files.py, vendor/anthropic_request.py: what the double refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from vendor import AnthropicServer, Redacted, call, reply
from vendor.anthropic import search
from vendor.anthropic_rules import redact

Json = Any

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0....").decode()
PDF = base64.b64encode(b"%PDF-1.7 ....").decode()


@pytest.fixture(scope="module")
def server() -> Iterator[AnthropicServer]:
    with AnthropicServer(lambda _: reply("fine")) as server:
        yield server


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client() as client:
        yield client


def asking(*content: Json, **more: Json) -> Json:
    """A good request with one user turn."""
    turn = {"role": "user", "content": list(content) or "hello"}
    return {"model": "claude", "max_tokens": 4096, "messages": [turn], **more}


def talk(*turns: Json, **more: Json) -> Json:
    """A good request, of turns that alternate."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": content} for n, content in enumerate(turns)]
    return {"model": "claude", "max_tokens": 4096, "messages": messages, **more}


def text(value: str = "hello", **more: Json) -> Json:
    return {"type": "text", "text": value, **more}


def use(id: str = "a", name: str = "find", input: Json = None) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": {} if input is None else input}


def result(id: str = "a", content: Json = "found") -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def tool(name: str = "find", **schema: Json) -> Json:
    return {"name": name, "input_schema": {"type": "object", **schema}}


def file(type: str, media_type: str, data: str) -> Json:
    return {"type": type, "source": {"type": "base64", "media_type": media_type, "data": data}}


MARK: Json = {"cache_control": {"type": "ephemeral"}}
DEFS: Json = {"$defs": {"x": {"type": "string"}}}
THINKING = {"type": "enabled", "budget_tokens": 1024}

GOOD = {
    "plain text": asking(),
    "system text, tools, a forced one": asking(
        system="be brief", tools=[tool()], tool_choice={"type": "tool", "name": "find"}
    ),
    "files before the text": asking(file("image", "image/png", PNG), file("document", "application/pdf", PDF), text()),
    "calls and their results, then text": talk(
        "hello", [text("wait"), use("a"), use("b")], [result("b"), result("a"), text("go on")]
    ),
    "a turn to be continued": talk("hello", [text("I am not done")]),
    "four cache marks": asking(text(**MARK), text(**MARK), system=[text(**MARK)], tools=[{**tool(), **MARK}]),
    "thinking with a budget": asking(thinking=THINKING, temperature=1, tools=[tool()]),
    "adaptive thinking with an effort": asking(
        model="claude-sonnet-4-6",
        thinking={"type": "adaptive", "display": "summarized"},
        output_config={"effort": "high"},
    ),
    "thinking off and a temperature": asking(thinking={"type": "disabled"}, temperature=0.2),
    "a search and what it found": talk("hello", [*search("a"), text("dry")], "thanks"),
    "thinking after a search": talk(
        "hello", [*search("a"), {"type": "redacted_thinking", "data": redact(1)}, text("dry")], "thanks"
    ),
    "a search at the end of a paused turn": talk("hello", [text("wait"), search("a")[0]]),
    "the web search tool": asking(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "a schema with references": asking(tools=[tool(properties={"a": {"$ref": "#/$defs/x"}}, **DEFS)]),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_a_good_request_is_answered(server: AnthropicServer, client: httpx.Client, body: Json) -> None:
    answer = client.post(f"{server.url}/v1/messages", headers=HEADERS, json=body)

    assert (answer.status_code, answer.json().get("error")) == (200, None)


def without(key: str) -> Json:
    return {name: value for name, value in asking().items() if name != key}


BAD = {
    "adaptive thinking of an earlier model": (
        asking(model="claude-sonnet-4-5", thinking={"type": "adaptive"}),
        "adaptive thinking is not supported on this model",
    ),
    "an effort of an earlier model": (
        asking(model="claude-opus-4-1", output_config={"effort": "low"}),
        "This model does not support the effort parameter.",
    ),
    "an effort that only later models know": (
        asking(model="claude-sonnet-4-6", output_config={"effort": "xhigh"}),
        "This model does not support effort level 'xhigh'.",
    ),
    "a budget of the newest models": (
        asking(model="claude-opus-4-7", thinking=THINKING),
        '"thinking.type.enabled" is not supported for this model.',
    ),
    "a search without what it found": (
        talk("hello", [text("wait"), search("a")[0]], "thanks"),
        "was found without a corresponding `web_search_tool_result` block",
    ),
    "what was found without a search": (
        talk("hello", [text("wait"), search("a")[1]], "thanks"),
        "unexpected `tool_use_id` found in `web_search_tool_result` blocks",
    ),
    # shape
    "no model": (without("model"), "model: Field required"),
    "no max_tokens": (without("max_tokens"), "max_tokens: Field required"),
    "no messages": (without("messages"), "messages: Field required"),
    "max_tokens of zero": (
        asking(max_tokens=0),
        "max_tokens: Input should be greater than or equal to 1",
    ),
    "a number as text": (asking(max_tokens="9"), "max_tokens: Input should be a valid integer"),
    "unknown key": (asking(seed=1), "seed: Extra inputs are not permitted"),
    "unknown key of a message": (
        {**asking(), "messages": [{"role": "user", "content": "hello", "name": "eve"}]},
        "messages.0.name: Extra inputs are not permitted",
    ),
    "unknown key of a block": (
        asking(text(replay=1)),
        "messages.0.content.0.text.replay: Extra inputs are not permitted",
    ),
    "unknown key of a tool": (
        asking(tools=[{**tool(), "parameters": {}}]),
        "tools.0.custom.parameters: Extra inputs are not permitted",
    ),
    "unknown kind of block": (asking({"type": "input_text", "text": "x"}), "does not match any of the expected"),
    "null where nothing was meant": (
        asking(stop_sequences=None),
        "stop_sequences: Input should be a valid list",
    ),
    "temperature above one": (
        asking(temperature=1.5),
        "temperature: Input should be less than or equal to 1",
    ),
    "unknown effort": (asking(output_config={"effort": "extreme"}), "output_config.effort: Input should be"),
    # roles and content
    "no turn at all": (talk(), "messages: at least one message is required"),
    "an assistant turn first": (
        {**asking(), "messages": [{"role": "assistant", "content": "hello"}]},
        'messages: first message must use the "user" role',
    ),
    "a role of another wire": (
        {**asking(), "messages": [{"role": "system", "content": "be brief"}]},
        "messages.0.role: Input should be 'user' or 'assistant'",
    ),
    "two user turns in a row": (
        {**asking(), "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
        'roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
    ),
    "an empty list of blocks": (talk([]), "messages.0: all messages must have non-empty content"),
    "an empty text as content": (talk(""), "messages.0: all messages must have non-empty content"),
    "an empty text block": (asking(text("")), "messages: text content blocks must be non-empty"),
    "a blank text block": (asking(text(" \n")), "messages: text content blocks must contain non-whitespace text"),
    "blank text as content": (talk("\t"), "messages: text content blocks must contain non-whitespace text"),
    "a blank system text": (asking(system=" "), "system: text content blocks must contain non-whitespace text"),
    "a blank tool result": (
        talk("hello", [use()], [result(content=" ")]),
        "messages: text content blocks must contain non-whitespace text",
    ),
    "a space at the end of the last answer": (
        talk("hello", "and "),
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "a call in a user turn": (asking(use()), "messages.0: `tool_use` blocks can only be in `assistant` messages"),
    "a result in an assistant turn": (
        talk("hello", [result()]),
        "messages.1: `tool_result` blocks can only be in `user` messages",
    ),
    "an image in an assistant turn": (
        talk("hello", [file("image", "image/png", PNG)]),
        "messages.1: `image` blocks can only be in `user` messages",
    ),
    # calls and results
    "an id with other characters": (
        talk("hello", [use("a.1")], [result("a.1")]),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "an id used again later": (
        talk("hello", [use()], [result()], [use()], [result()]),
        "messages: `tool_use` ids must be unique",
    ),
    "a call without a result": (
        talk("hello", [use("a"), use("b")], [result("a")]),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b.",
    ),
    "a call at the end": (
        talk("hello", [use()]),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a.",
    ),
    "a result one turn too late": (
        talk("hello", [use()], "wait", "well", [result()]),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a.",
    ),
    "a result after text": (
        talk("hello", [use()], [text("here"), result()]),
        "messages.2: `tool_result` blocks must come first in the content of a message",
    ),
    "a result without a call": (
        asking(result()),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a.",
    ),
    "two results of one call": (
        talk("hello", [use()], [result(), result()]),
        "messages.2.content.1: each tool_use must have a single result.",
    ),
    "input that is no object": (
        talk("hello", [use(input="{}")], [result()]),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    # tools
    "a tool name with a dot": (
        asking(tools=[tool("a.b")]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
    ),
    "a tool name of 65 characters": (
        asking(tools=[tool("n" * 65)]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
    ),
    "two tools of one name": (asking(tools=[tool(), tool()]), "tools: Tool names must be unique."),
    "a schema without a type": (
        asking(tools=[{"name": "find", "input_schema": {}}]),
        "tools.0.custom.input_schema.type: Field required",
    ),
    "a schema of a list": (
        asking(tools=[{"name": "find", "input_schema": {"type": "array"}}]),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    "a schema that is none": (
        asking(tools=[tool(properties={"a": {"type": "text"}})]),
        "tools.0.custom.input_schema: JSON schema is invalid.",
    ),
    "a schema with a dangling reference": (
        asking(tools=[tool(properties={"a": {"$ref": "#/$defs/gone"}})]),
        "tools.0.custom.input_schema: JSON schema is invalid.",
    ),
    "a schema with a union on top": (
        asking(tools=[tool(anyOf=[{"required": ["a"]}])]),
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    "a choice without tools": (
        asking(tool_choice={"type": "any"}),
        "tool_choice: tool_choice may only be specified while providing tools",
    ),
    "a choice of an unknown tool": (
        asking(tools=[tool()], tool_choice={"type": "tool", "name": "lose"}),
        "tool_choice: Tool 'lose' not found in provided tools",
    ),
    # files
    "an image type that is not read": (
        asking(file("image", "image/bmp", PNG)),
        "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png'",
    ),
    "an image of another type than stated": (
        asking(file("image", "image/png", JPEG)),
        "specified using the image/png media type, but the image appears to be a image/jpeg image",
    ),
    "bytes that are no image": (asking(file("image", "image/png", PDF)), "Could not process image"),
    "an empty image": (asking(file("image", "image/png", "")), "image cannot be empty"),
    "base64 without padding": (
        asking(file("image", "image/jpeg", JPEG.rstrip("="))),
        "image.source.base64.data: invalid base64 data",
    ),
    "base64 of the URL alphabet": (
        asking(file("image", "image/jpeg", JPEG.replace("/", "_"))),
        "image.source.base64.data: invalid base64 data",
    ),
    "base64 with a line break": (
        asking(file("image", "image/png", f"{PNG[:4]}\n{PNG[4:]}")),
        "image.source.base64.data: invalid base64 data",
    ),
    "an image in a tool result": (
        talk("hello", [use()], [result(content=[file("image", "image/png", JPEG)])]),
        "the image appears to be a image/jpeg image",
    ),
    "a document that is no PDF": (
        asking(file("document", "application/pdf", PNG)),
        "The PDF specified was not valid.",
    ),
    "a document with broken base64": (
        asking(file("document", "application/pdf", "%%")),
        "document.source.base64.data: invalid base64 data",
    ),
    # thinking
    "a budget that is too small": (
        asking(thinking={"type": "enabled", "budget_tokens": 1023}),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    "a budget as large as max_tokens": (
        asking(thinking={"type": "enabled", "budget_tokens": 4096}),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    "thinking with a temperature": (
        asking(thinking=THINKING, temperature=0.5),
        "`temperature` may only be set to 1 when thinking is enabled",
    ),
    "adaptive thinking with a temperature": (
        asking(thinking={"type": "adaptive"}, temperature=0),
        "`temperature` may only be set to 1 when thinking is enabled",
    ),
    "temperature and top_p": (
        asking(temperature=0.5, top_p=0.9),
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    ),
    "a temperature for a late model": (
        asking(model="claude-opus-4-7", temperature=0.5),
        "`temperature` is deprecated for this model.",
    ),
    "thinking with top_k": (asking(thinking=THINKING, top_k=5), "`top_k` must be unset"),
    "thinking with a low top_p": (asking(thinking=THINKING, top_p=0.5), "`top_p` must be greater than or equal to"),
    "thinking with any tool forced": (
        asking(thinking=THINKING, tools=[tool()], tool_choice={"type": "any"}),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "adaptive thinking with one tool forced": (
        asking(thinking={"type": "adaptive"}, tools=[tool()], tool_choice={"type": "tool", "name": "find"}),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "a signature of somebody else": (
        talk("hello", [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, text()], "and"),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    "redacted data of somebody else": (
        talk("hello", [{"type": "redacted_thinking", "data": "ZGF0YQ=="}, text()], "and"),
        "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
    ),
    "a call of an unsigned turn, with a budget": (
        talk("hello", [use()], [result()], thinking=THINKING),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
    # the rest
    "five cache marks": (
        asking(*[text(**MARK) for _ in range(5)]),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "a cache mark of another kind": (
        asking(text(cache_control={"type": "persistent"})),
        "messages.0.content.0.text.cache_control.type: Input should be 'ephemeral'",
    ),
    "a blank stop sequence": (
        asking(stop_sequences=[" "]),
        "stop_sequences: each stop sequence must contain non-whitespace",
    ),
}


@pytest.mark.parametrize(("body", "message"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(server: AnthropicServer, client: httpx.Client, body: Json, message: str) -> None:
    answer = client.post(f"{server.url}/v1/messages", headers=HEADERS, json=body)

    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert message in error["message"]
    assert server.requests[-1].refusal == error["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not valid JSON"),
        (b'{"max_tokens": NaN}', "NaN is no JSON number"),
        (b'{"model": "\xff"}', "not valid JSON"),
        (b'{"model": "\\ud83d"}', "surrogates not allowed"),
    ],
    ids=["broken", "not a number", "not UTF-8", "half an emoji"],
)
def test_a_body_that_is_no_json_is_refused(
    server: AnthropicServer, client: httpx.Client, body: bytes, message: str
) -> None:
    answer = client.post(f"{server.url}/v1/messages", headers=HEADERS, content=body)

    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "status", "kind", "message"),
    [
        ({"x-api-key": ""}, 401, "authentication_error", "x-api-key header is required"),
        ({"x-api-key": "other"}, 401, "authentication_error", "invalid x-api-key"),
        ({"anthropic-version": ""}, 400, "invalid_request_error", "anthropic-version: header is required"),
        (
            {"anthropic-version": "1.0"},
            400,
            "invalid_request_error",
            'anthropic-version: "1.0" is not a valid version',
        ),
        (
            {"content-type": "text/plain"},
            400,
            "invalid_request_error",
            "content-type: must be application/json",
        ),
    ],
    ids=["no key", "another key", "no version", "unknown version", "no JSON"],
)
def test_headers_are_checked(headers: dict[str, str], status: int, kind: str, message: str) -> None:
    with AnthropicServer([], api_key="k") as server:
        answer = httpx.post(f"{server.url}/v1/messages", headers=HEADERS | headers, json=asking())

    assert answer.status_code == status
    assert answer.json()["error"] == {"type": kind, "message": message}


def test_another_path_is_not_found() -> None:
    with AnthropicServer([]) as server:
        answer = httpx.post(f"{server.url}/v1/v1/messages", headers=HEADERS, json=asking())

    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")


def test_a_request_of_more_than_32_mb_is_refused() -> None:
    with AnthropicServer([]) as server:
        answer = httpx.post(f"{server.url}/v1/messages", headers=HEADERS, content=b" " * (32 * 1024 * 1024 + 1))

    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "request_too_large"


# ---------------------------------------------------------------- thinking in the open turn


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda turn: turn, None),
        (lambda turn: turn[1:], "blocks in the latest assistant message cannot be modified"),
        (lambda turn: turn[2:], "blocks in the latest assistant message cannot be modified"),
        (lambda turn: [turn[1], turn[0], *turn[2:]], "cannot be modified"),
        (lambda turn: [{**turn[0], "thinking": "hmm"}, *turn[1:]], "Invalid `signature` in `thinking` block"),
        (lambda turn: [{**turn[0], "cache_control": MARK["cache_control"]}, *turn[1:]], "Extra inputs"),
        (lambda turn: [*turn[2:], *turn[:2]], "the first block must be `thinking` or `redacted_thinking`"),
    ],
    ids=["untouched", "one left out", "all left out", "swapped", "trimmed", "marked", "last"],
)
def test_thinking_of_the_open_turn_comes_back_untouched(
    spoil: Callable[[list[Json]], list[Json]], message: str | None
) -> None:
    script = [reply("wait", thinking=["hmm \n", Redacted()], calls=[call("find")]), reply("done")]
    with AnthropicServer(script) as server, httpx.Client(headers=HEADERS) as client:
        turn = client.post(f"{server.url}/v1/messages", json=talk("hello", thinking=THINKING)).json()
        results = [result(turn["content"][-1]["id"])]
        body = talk("hello", spoil(turn["content"]), results, thinking=THINKING, tools=[tool()])
        answer = client.post(f"{server.url}/v1/messages", json=body).json()

    if message is None:
        assert answer["content"] == [text("done")]
    else:
        assert message in answer["error"]["message"]


def test_thinking_of_an_older_turn_may_be_left_out() -> None:
    script = [reply(thinking="hm", calls=[call("find")]), reply("done")]
    with AnthropicServer(script) as server, httpx.Client(headers=HEADERS) as client:
        turn = client.post(f"{server.url}/v1/messages", json=talk("hello", thinking=THINKING)).json()
        made = turn["content"][1]
        body = talk("hello", [made], [result(made["id"])], "found", "and now?", thinking=THINKING)
        answer = client.post(f"{server.url}/v1/messages", json=body).json()

    assert answer["content"] == [text("done")]


def test_signatures_hold_with_a_later_server() -> None:
    with AnthropicServer([reply("first", thinking="hm")]) as server:
        turn = httpx.post(f"{server.url}/v1/messages", headers=HEADERS, json=asking()).json()
    with AnthropicServer([reply("second")]) as server:
        body = talk("hello", turn["content"], "go on", thinking=THINKING)
        answer = httpx.post(f"{server.url}/v1/messages", headers=HEADERS, content=json.dumps(body))

    assert answer.json()["content"] == [text("second")]
