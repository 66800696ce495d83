"""vendor/bedrock_rules.py, vendor/bedrock_request.py, vendor/sigv4.py: the double refuses what AWS refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError
from botocore.session import Session

from vendor import sigv4
from vendor.anthropic import Redacted, call, reply
from vendor.bedrock import KEYS, REGION, BedrockServer, exception_after, unknown_frame
from vendor.server import Request

Json = Any

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
HEADERS = {"authorization": "Bearer k", "content-type": "application/json"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
PDF = base64.b64encode(b"%PDF-1.7 ....").decode()


@pytest.fixture(scope="module")
def server() -> Iterator[BedrockServer]:
    with BedrockServer(lambda _: reply("fine")) as server:
        yield server


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(headers=HEADERS) as client:
        yield client


def post(server: BedrockServer, client: httpx.Client, body: Json, model: str = CLAUDE) -> httpx.Response:
    return client.post(f"{server.url}/model/{quote(model, safe='')}/converse", json=body)


def asking(*content: Json, **more: Json) -> Json:
    """A good request with one user turn."""
    return {"messages": [{"role": "user", "content": list(content) or [text()]}], **more}


def talk(*turns: list[Json], **more: Json) -> Json:
    """A good request, of turns that alternate."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": content} for n, content in enumerate(turns)], **more}


def text(value: str = "hello") -> Json:
    return {"text": value}


def use(id: str = "a", name: str = "find") -> Json:
    return {"toolUse": {"toolUseId": id, "name": name, "input": {}}}


def result(id: str = "a", *content: Json) -> Json:
    return {"toolResult": {"toolUseId": id, "content": list(content) or [text("found")]}}


def tools(*names: str, **more: Json) -> Json:
    """A tool configuration, which goes into the request by its key."""
    specs = [tool(name) for name in names or ("find",)]
    return {"toolConfig": {"tools": specs, **more}}


def tool(name: str = "find", schema: Json = None) -> Json:
    return {"toolSpec": {"name": name, "inputSchema": {"json": schema or {"type": "object"}}}}


def image(format: str = "png", data: str = PNG) -> Json:
    return {"image": {"format": format, "source": {"bytes": data}}}


def document(name: str = "offer", format: str = "pdf", data: str = PDF) -> Json:
    return {"document": {"format": format, "name": name, "source": {"bytes": data}}}


def thinking(**fields: Json) -> Json:
    return {"additionalModelRequestFields": {"thinking": fields}}


POINT: Json = {"cachePoint": {"type": "default"}}
BUDGET = thinking(type="enabled", budget_tokens=1024)
ADAPTIVE = {
    "additionalModelRequestFields": {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
    }
}

GOOD = {
    "plain text": asking(),
    "system text, tools, a forced one": asking(
        system=[text("be brief")], **tools("find", toolChoice={"tool": {"name": "find"}})
    ),
    "files before the text": asking(image(), document(), document("offer (2)"), text()),
    "calls and their results, then text": talk(
        [text()], [text("wait"), use("a"), use("b")], [result("b"), result("a"), text("go on")], **tools()
    ),
    "a turn to be continued": talk([text()], [text("I am not done")]),
    "cache points": asking(text(), POINT, system=[text(), POINT], toolConfig={"tools": [tool(), POINT]}),
    "thinking with a budget": asking(**BUDGET, **tools(), inferenceConfig={"maxTokens": 4096}),
    "a user to be told of": asking(requestMetadata={"user": "someone"}),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_a_good_request_is_answered(server: BedrockServer, client: httpx.Client, body: Json) -> None:
    answer = post(server, client, body)

    assert (answer.status_code, answer.json().get("message")) == (200, None)


BAD = {
    # shape
    "unknown key": (asking(seed=1), "seed: extraneous key [seed] is not permitted"),
    "unknown key of a message": (
        {"messages": [{"role": "user", "content": [text()], "name": "eve"}]},
        "messages.0.name: extraneous key [name] is not permitted",
    ),
    "unknown kind of block": (asking({"txt": "hello"}), "messages.0.content.0.txt: extraneous key [txt]"),
    "a block of no kind": (asking({}), "exactly one of text, image"),
    "two kinds in one block": (asking({**text(), **POINT}), "found text, cachePoint"),
    "no role": ({"messages": [{"content": [text()]}]}, "messages.0.role: Member must not be null"),
    "a number as text": (asking(text(7)), "messages.0.content.0.text: Member must be a string"),
    "no whole number": (asking(inferenceConfig={"maxTokens": 1.5}), "maxTokens: Member must be a integer"),
    "max tokens of zero": (
        asking(inferenceConfig={"maxTokens": 0}),
        "maxTokens: Member must have a length or value of",
    ),
    "temperature above one": (asking(inferenceConfig={"temperature": 1.5}), "of at most 1"),
    "an unknown format": (asking(image("bmp")), "Member must satisfy enum value set"),
    "an id with odd letters": (talk([text()], [use("ü")], [result("ü")], **tools()), "must satisfy regular expression"),
    "a name that is too long": (asking(**tools("x" * 65)), "of at most 64"),
    "an empty description": (
        asking(toolConfig={"tools": [{"toolSpec": {**tool()["toolSpec"], "description": ""}}]}),
        "description: Member must have a length or value of at least 1",
    ),
    "no tools": (
        asking(toolConfig={"tools": []}),
        "toolConfig.tools: Member must have a length or value of at least 1",
    ),
    "bytes that are no base64": (
        asking(image(data="!")),
        "messages.0.content.0.image.source.bytes: Member must be base64",
    ),
    "an empty file": (asking(image(data="")), "bytes: Member must have a length or value of at least 1"),
    "no object": ([], "Member must be a structure"),
    "an odd user": (asking(requestMetadata={"user": "a'b"}), "requestMetadata.user: Member must satisfy regular"),
    "the model in the body": (asking(modelId=CLAUDE), "modelId: is a part of the path"),
    # roles and content
    "no turn at all": (talk(), "A conversation must start with a user message"),
    "an assistant turn first": (
        {"messages": [{"role": "assistant", "content": [text()]}]},
        "A conversation must start with a user message",
    ),
    "two user turns in a row": (
        {"messages": [{"role": "user", "content": [text()]}] * 2},
        "A conversation must alternate between user and assistant roles",
    ),
    "an empty turn": (talk([text()], [], [text()]), "The content field in the Message object at messages.1 is empty"),
    "blank text": (asking(text(" \n")), "The text field in the ContentBlock object at messages.0.content.0 is blank"),
    "a blank result": (
        talk([text()], [use()], [result("a", text(" "))], **tools()),
        "The text field in the ContentBlock object at messages.2.content.0 is blank",
    ),
    "a result that is empty": (
        {**talk([text()], [use()], [{"toolResult": {"toolUseId": "a", "content": []}}]), **tools()},
        "The content field in the ToolResultBlock object at messages.2.content.0 is empty",
    ),
    "a blank system text": (asking(system=[text(" ")]), "The text field in the SystemContentBlock object"),
    "space after the last answer": (talk([text()], [text("so ")]), "cannot end with trailing whitespace"),
    "an image of the assistant": (talk([text()], [image()], [text()]), "image blocks can only be in user messages"),
    "a call of the user": (asking(use(), **tools()), "toolUse blocks can only be in assistant messages"),
    # calls and results
    "a call twice": (
        talk([text()], [use(), use()], [result()], **tools()),
        "`tool_use` ids must be unique",
    ),
    "a call without its result": (
        talk([text()], [use("a"), use("b")], [result("a")], **tools()),
        "Expected toolResult blocks at messages.2.content for the following Ids: b",
    ),
    "a last call without its result": (talk([text()], [use()], **tools()), "Expected toolResult blocks at messages.2"),
    "a result without its call": (
        talk([result()], **tools()),
        "The number of toolResult blocks at messages.0.content exceeds the number of toolUse blocks",
    ),
    "a result twice": (
        talk([text()], [use()], [result(), result()], **tools()),
        "The number of toolResult blocks at messages.2.content exceeds",
    ),
    "text before a result": (talk([text()], [use()], [text(), result()], **tools()), "must come first in the content"),
    # tools
    "calls without any tool": (talk([text()], [use()], [result()]), "The toolConfig field must be defined when using"),
    "a tool twice": (asking(**tools("find", "find")), "Tool names must be unique"),
    "a schema without a type": (
        asking(toolConfig={"tools": [tool("find", {"properties": {}})]}),
        "toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object",
    ),
    "a schema that is none": (
        asking(toolConfig={"tools": [tool("find", {"type": "object", "properties": 7})]}),
        "JSON schema is invalid",
    ),
    "a forced tool that is not there": (
        asking(**tools("find", toolChoice={"tool": {"name": "other"}})),
        "the tool `other` is not defined",
    ),
    # files
    "another format than the bytes": (asking(image("jpeg")), "does not match the specified image format"),
    "no PDF": (asking(document(data=PNG), text()), "The PDF specified was not valid"),
    "a dot in a name": (asking(document("offer.pdf"), text()), "The format of the document file name"),
    "two spaces in a name": (asking(document("my  offer"), text()), "The format of the document file name"),
    "a name twice": (asking(document(), document(), text()), "duplicate document names"),
    "a document alone": (asking(document()), "A text block must be included when using documents"),
    # caching
    "a cache point after nothing": (asking(POINT, text()), "a cache point must follow content"),
    "five cache points": (
        asking(*[text(), POINT] * 4, system=[text(), POINT]),
        "A maximum of 4 cache points may be provided. Found 5",
    ),
    # thinking
    "a field of nobody": (
        asking(additionalModelRequestFields={"reasoning": 1}),
        "The model returned the following errors: reasoning: Extra inputs are not permitted",
    ),
    "a budget that is too small": (
        asking(**thinking(type="enabled", budget_tokens=9)),
        "greater than or equal to 1024",
    ),
    "a budget above the cap": (
        asking(**BUDGET, inferenceConfig={"maxTokens": 1024}),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    "thinking and a temperature": (
        asking(**BUDGET, inferenceConfig={"temperature": 0.5}),
        "`temperature` may only be set to 1 when thinking is enabled",
    ),
    "thinking and a forced tool": (
        asking(**BUDGET, **tools("find", toolChoice={"any": {}})),
        "Thinking may not be enabled when tool_choice forces tool use",
    ),
    "reasoning that nobody signed": (
        talk([text()], [{"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}}, text()], [text()]),
        "Invalid `signature` in `thinking` block",
    ),
    "redacted reasoning that nobody made": (
        talk([text()], [{"reasoningContent": {"redactedContent": PNG}}, text()], [text()]),
        "Invalid `data` in `redacted_thinking` block",
    ),
}


@pytest.mark.parametrize(("body", "message"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(server: BedrockServer, client: httpx.Client, body: Json, message: str) -> None:
    answer = post(server, client, body)

    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (400, "ValidationException:")
    assert message in answer.json()["message"]
    assert server.requests[-1].refusal == answer.json()["message"]


@pytest.mark.parametrize(
    ("model", "body", "message"),
    [
        ("meta.llama3-3-70b-instruct-v1:0", asking(text(), POINT), "did not allow prompt caching"),
        ("anthropic.claude-3-haiku-20240307-v1:0", asking(text(), POINT), "did not allow prompt caching"),
        ("us.amazon.nova-pro-v1:0", asking(toolConfig={"tools": [tool(), POINT]}), "caching. See the documentation"),
        ("us.amazon.nova-pro-v1:0", asking(text(), POINT), None),
        ("meta.llama3-3-70b-instruct-v1:0", asking(**thinking(type="disabled")), "Extra inputs are not permitted"),
        ("openai.gpt-oss-120b-1:0", asking(additionalModelRequestFields={"reasoning_effort": "low"}), None),
        (
            "openai.gpt-oss-120b-1:0",
            asking(additionalModelRequestFields={"reasoning_effort": "max"}),
            "reasoning_effort",
        ),
        ("anthropic.claude-opus-4-7", asking(inferenceConfig={"temperature": 0.5}), "is deprecated for this model"),
        ("us.anthropic.claude-sonnet-4-6", asking(**ADAPTIVE), None),
        (CLAUDE, asking(**ADAPTIVE), "adaptive thinking is not supported on this model"),
        ("anthropic.claude-opus-4-7", asking(**BUDGET), '"thinking.type.enabled" is not supported for this model'),
        ("meta.llama3-3-70b-instruct-v1:0", asking(**tools("find")), None),
        (
            "us.meta.llama3-3-70b-instruct-v1:0",
            asking(**tools("find", toolChoice={"any": {}})),
            "This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try",
        ),
        ("no model", asking(), "modelId: Member must satisfy regular expression pattern"),
    ],
)
def test_what_a_model_takes(
    server: BedrockServer, client: httpx.Client, model: str, body: Json, message: str | None
) -> None:
    found = post(server, client, body, model).json().get("message")

    assert found is None if message is None else message in found


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"{", "Malformed input request"), (b'{"a": NaN}', "NaN is no JSON number"), (b'{"a": "\\ud83d"}', "surrogates")],
    ids=["broken", "not a number", "half an emoji"],
)
def test_a_body_that_is_no_json_is_refused(
    server: BedrockServer, client: httpx.Client, body: bytes, message: str
) -> None:
    answer = client.post(f"{server.url}/model/{CLAUDE}/converse", content=body)

    assert answer.status_code == 400
    assert message in answer.json()["message"]


@pytest.mark.parametrize(
    "path", ["/converse", f"/model/{CLAUDE}/invoke", f"/model/a/{CLAUDE}/converse"], ids=["no model", "other", "slash"]
)
def test_another_path_is_not_found(server: BedrockServer, client: httpx.Client, path: str) -> None:
    assert client.post(f"{server.url}{path}", json=asking()).status_code == 404


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({"authorization": ""}, 403, "Missing Authentication Token"),
        ({"authorization": "Bearer other"}, 403, "Please make sure your API Key is valid"),
        ({"authorization": "AWS4-HMAC-SHA256 nonsense"}, 403, "Authorization header requires"),
        ({"content-type": "text/plain"}, 400, "The content type of the request must be application/json"),
    ],
    ids=["no key", "another key", "no signature", "no JSON"],
)
def test_headers_are_checked(headers: dict[str, str], status: int, message: str) -> None:
    with BedrockServer([], api_key="k") as server:
        answer = httpx.post(f"{server.url}/model/{CLAUDE}/converse", headers=HEADERS | headers, content=b"{}")

    assert answer.status_code == status
    assert message in answer.json()["message"]


# ---------------------------------------------------------------- signatures


def test_signatures_are_those_of_the_published_example():
    """The first of the examples that AWS publishes for implementers, `get-vanilla`."""
    stamp = "20150830T123600Z"
    request = Request("GET", "/", "", {"host": "example.amazonaws.com", "x-amz-date": stamp}, b"", 1)
    found = sigv4.signature(
        request,
        ["host", "x-amz-date"],
        stamp,
        "20150830/us-east-1/service/aws4_request",
        "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    )

    assert found == "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"


# ---------------------------------------------------------------- reasoning in the open turn


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda turn: turn, None),
        (lambda turn: turn[1:], "blocks in the latest assistant message cannot be modified"),
        (lambda turn: turn[2:], "blocks in the latest assistant message cannot be modified"),
        (lambda turn: [turn[1], turn[0], *turn[2:]], "cannot be modified"),
        (lambda turn: [*turn[2:], *turn[:2]], "any thinking blocks, they come first"),
    ],
    ids=["untouched", "one left out", "all left out", "swapped", "last"],
)
def test_reasoning_of_the_open_turn_comes_back_untouched(
    spoil: Callable[[list[Json]], list[Json]], message: str | None
) -> None:
    script = [reply("wait", thinking=["hmm \n", Redacted()], calls=[call("find")]), reply("done")]
    with BedrockServer(script) as server, httpx.Client(headers=HEADERS) as client:
        turn = post(server, client, talk([text()], **BUDGET)).json()["output"]["message"]["content"]
        results = [result(turn[-1]["toolUse"]["toolUseId"])]
        answer = post(server, client, talk([text()], spoil(turn), results, **BUDGET, **tools())).json()

    if message is None:
        assert answer["output"]["message"]["content"] == [text("done")]
    else:
        assert message in answer["message"]


def test_an_answer_does_not_end_with_reasoning() -> None:
    with BedrockServer([reply(thinking="hm")]) as server, httpx.Client(headers=HEADERS) as client:
        turn = post(server, client, asking()).json()["output"]["message"]["content"]
        answer = post(server, client, talk([text()], turn, [text()])).json()

    assert "The final block in an assistant message cannot be thinking" in answer["message"]


def test_a_budget_does_not_start_in_the_middle_of_a_turn() -> None:
    body = talk([text()], [use()], [result()], **BUDGET, **tools())
    with BedrockServer([]) as server, httpx.Client(headers=HEADERS) as client:
        answer = post(server, client, body).json()

    assert "Expected `thinking` or `redacted_thinking`, but found `tool_use`" in answer["message"]


def test_signatures_of_reasoning_hold_with_a_later_server() -> None:
    with BedrockServer([reply("first", thinking="hm")]) as server, httpx.Client(headers=HEADERS) as client:
        turn = post(server, client, asking()).json()["output"]["message"]["content"]
    with BedrockServer([reply("second")]) as server, httpx.Client(headers=HEADERS) as client:
        answer = post(server, client, json.loads(json.dumps(talk([text()], turn, [text("go on")], **BUDGET)))).json()

    assert answer["output"]["message"]["content"] == [text("second")]


# ---------------------------------------------------------------- the vendor's own client

RICH = reply("I — look", thinking=["hm", Redacted()], calls=[call("find", {"n": 1}, "c1")], usage={"inputTokens": 3})


@contextmanager
def vendors_client(server: BedrockServer) -> Iterator[Any]:
    client = Session().create_client(
        "bedrock-runtime",
        region_name=REGION,
        endpoint_url=server.url,
        aws_access_key_id=KEYS.id,
        aws_secret_access_key=KEYS.secret,
        config=Config(retries={"total_max_attempts": 1}),
    )
    with closing(client):
        yield client


def spoken(words: str) -> Json:
    return {"modelId": CLAUDE, "messages": [{"role": "user", "content": [{"text": words}]}]}


def test_the_vendors_own_client_is_taken_and_understands_the_answer(server: BedrockServer) -> None:
    with vendors_client(server) as client:
        answer = client.converse(**spoken("hello"))

    assert answer["output"] == {"message": {"role": "assistant", "content": [{"text": "fine"}]}}
    assert answer["usage"] == {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 15,
        "cacheReadInputTokens": 0,
        "cacheWriteInputTokens": 0,
    }


def test_the_vendors_own_client_understands_the_stream() -> None:
    script = [replace(RICH, faults=(fault,)) for fault in (unknown_frame(), exception_after(3))]
    with BedrockServer(script) as server, vendors_client(server) as client:
        with closing(client.converse_stream(**spoken("hello"))["stream"]) as stream:
            events = list(stream)
        broken = pytest.raises(EventStreamError, match="Too many requests")
        with closing(client.converse_stream(**spoken("hello"))["stream"]) as stream, broken:
            list(stream)

    kinds = [kind for event in events for kind in event]
    assert (kinds[0], kinds[-2:]) == ("messageStart", ["messageStop", "metadata"])
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    assert "".join(delta["text"] for delta in deltas if "text" in delta) == "I — look"
    assert "".join(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta) == '{"n": 1}'
    assert events[-1]["metadata"]["usage"]["inputTokens"] == 3


def test_errors_are_what_the_vendors_own_client_expects(server: BedrockServer) -> None:
    with vendors_client(server) as client, pytest.raises(ClientError) as caught:
        client.converse(**spoken(" "))

    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert "is blank" in caught.value.response["Error"]["Message"]
