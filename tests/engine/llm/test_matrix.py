"""octo/llm/providers.py: what every wire can do, tried out against the double of its vendor.

The page `docs/providers.md` is made of what these tests found; with OCTO_UPDATE=1 it is written anew.
"""

import asyncio
import base64
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from octo.errors import BadRequest
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    File,
    Reasoning,
    Retry,
    TextDelta,
    ToolCall,
    ToolDefinition,
    ToolResult,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.providers import PROVIDERS
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint
from octo.models import known
from vendor.doubles import DOUBLES, KEY, PAGES, Double, Offline, Said

PAGE = Path(__file__).parents[3] / "docs" / "providers.md"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
PDF = b"%PDF-1.4 x"
LOOKUP = ToolDefinition("lookup", "Find it", {"type": "object", "properties": {"n": {"type": "number"}}})
SCHEMA = {"type": "object", "properties": {"tier": {"type": "string"}}, "required": ["tier"]}
HELLO = ChatRequest((user("hello"),))
CALLED = Said(calls=(("lookup", {"n": 1}), ("lookup", {"n": 2})))


async def talk(double: Double, request: ChatRequest, said: Said, *, stream: bool = False, **settings: Any):
    """One call without a network: the answer, the body of the request, and what a listener heard."""
    server = double.serve([double.say(said)])
    heard: list[Any] = []

    async def listen(delta: Any) -> None:
        heard.append(delta)

    model = double.asked("http://double", Offline(server), **settings)
    answer = await model.complete(request, session={}, on_delta=listen if stream else None)
    return answer, server.requests[0].json, heard


async def over_http(double: Double, *script: Any) -> tuple[ChatResponse, list[Any], list[float]]:
    """One streamed call over a real connection: the answer, what a listener heard, and the waits."""
    heard: list[Any] = []
    waits: list[float] = []

    async def listen(delta: Any) -> None:
        heard.append(delta)

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    with double.serve(script) as server:
        async with Transport({}, sleep=wait, random=lambda: 1.0) as transport:
            answer = await double.asked(server.url, transport).complete(HELLO, session={}, on_delta=listen)
    return answer, heard, waits


async def after_calls(double: Double, said: Said, **settings: Any) -> tuple[ChatResponse, Any]:
    """What the model said first, and the body of the request that gives it the results of its calls."""
    server = double.serve([double.say(said), double.say(Said("done"))])
    model = double.asked("http://double", Offline(server), **settings)
    first = await model.complete(replace(HELLO, tools=(LOOKUP,)), session={})
    results = tuple(ToolResult(call.id, call.name, f"result of {call.arguments}") for call in first.calls)
    turns = (*HELLO.messages, first.message, ChatMessage("tool", results))
    await model.complete(ChatRequest(turns, tools=(LOOKUP,)), session={})
    return first, server.requests[1].json


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """All texts of a body, each with the keys that lead to it."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from texts(inner, f"{path}.{key}" if path else key)
        case list():
            for inner in value:
                yield from texts(inner, path)
        case str():
            yield path, value


def place(body: Any, text: str) -> str:
    """The keys that lead to the one place of a text in a body, as a cell shows them."""
    (found,) = {path for path, value in texts(body) if text in value}
    return f"`{found}`"


# ---------------------------------------------------------------- the features, one function each


async def text(double: Double) -> str:
    answer, _, _ = await talk(double, HELLO, Said("hi"))

    assert (answer.text, answer.stop_reason) == ("hi", "end_turn")
    return "yes"


async def system(double: Double) -> str:
    _, body, _ = await talk(double, replace(HELLO, system="be brief"), Said("hi"))

    return place(body, "be brief")


async def tools(double: Double) -> str:
    first, body = await after_calls(double, Said(calls=(("lookup", {"n": 1}),)))

    assert [(call.name, json.loads(call.arguments)) for call in first.calls] == [("lookup", {"n": 1})]
    assert first.stop_reason == "tool_use"
    return f"yes, results in {place(body, 'result of')}"


async def parallel_tools(double: Double) -> str:
    first, body = await after_calls(double, CALLED)

    assert [json.loads(call.arguments) for call in first.calls] == [{"n": 1}, {"n": 2}]
    sent = [value for _, value in texts(body) if value.startswith("result of")]
    assert [json.loads(value.removeprefix("result of ")) for value in sent] == [{"n": 1}, {"n": 2}]
    return "yes"


async def images(double: Double) -> str:
    _, body, _ = await talk(double, ChatRequest((user("look", File("image/png", PNG)),)), Said("hi"))

    return place(body, base64.b64encode(PNG).decode())


async def documents(double: Double) -> str:
    _, body, _ = await talk(double, ChatRequest((user("look", File("application/pdf", PDF, "a.pdf")),)), Said("hi"))

    return place(body, base64.b64encode(PDF).decode())


async def structured_output(double: Double) -> str:
    model = double.asked("http://double", Offline(double.serve([])))
    if model.answers_by_tool("", with_tools=False):
        tool = ToolDefinition("structured_output", "", SCHEMA)
        request = replace(HELLO, tools=(tool,), tool_choice="any")
        answer, _, _ = await talk(double, request, Said(calls=(("structured_output", {"tier": "smb"}),)))
        assert json.loads(answer.calls[0].arguments) == {"tier": "smb"}
        return "by a tool that must be called"
    answer, body, _ = await talk(double, replace(HELLO, output_schema=SCHEMA), Said('{"tier": "smb"}'))
    assert answer.text == '{"tier": "smb"}'
    (where,) = {path.split(".properties")[0] for path, _ in texts(body) if ".properties.tier" in path}
    return f"`{where}`"


async def reasoning_replay(double: Double) -> str:
    first, body = await after_calls(double, replace(CALLED, thinking="let me see"), **double.settings)

    assert "let me see" in "".join(part.text for part in first.message.parts if isinstance(part, Reasoning))
    marks = [
        value
        for part in first.message.parts
        if isinstance(part, Reasoning | ToolCall)
        for path, value in texts(part.replay)
        if path not in ("wire", "dialect") and value
    ]
    assert marks
    assert all(any(mark in value for _, value in texts(body)) for mark in marks)
    return "yes"


async def caching_marks(double: Double) -> str:
    """Chat Completions takes a key at OpenAI and Azure; other providers cache by themselves."""
    request = replace(HELLO, system="be brief", cache=True, cache_key="shop/f.ag")
    if double.name == "Chat Completions":
        wire = PROVIDERS["openai"].chat
        assert wire is not None
        endpoint = Endpoint(Credentials("openai", "https://api.openai.com/v1", "authorization", api_key=KEY), "gpt-4.1")
        body = json.loads(wire.encode(request, endpoint, stream=False).body)
    else:
        _, body, _ = await talk(double, request, Said("hi"))
    words = [word for word in ("cache_control", "cachePoint", "prompt_cache_key") if f'"{word}"' in json.dumps(body)]
    return "".join(f"`{word}`" for word in words) or "none: the vendor caches by itself"


async def usage(double: Double) -> str:
    answer, _, _ = await talk(double, HELLO, Said("hi"))

    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.output_tokens) == (10, 5)
    return "yes"


async def refusal(double: Double) -> str:
    answer, _, _ = await talk(double, HELLO, Said(refuses=True))

    assert (answer.stop_reason, answer.calls) == ("refusal", ())
    return "yes"


async def cut_off(double: Double) -> str:
    answer, _, _ = await talk(double, replace(HELLO, tools=(LOOKUP,)), replace(CALLED, cut_off=True))

    assert (answer.stop_reason, len(answer.calls)) == ("max_tokens", 2)
    return "yes"


async def stream(double: Double) -> str:
    answer, _, heard = await talk(double, HELLO, Said("It is — 7 😀 and more of it"), stream=True)
    whole, _, _ = await talk(double, HELLO, Said("It is — 7 😀 and more of it"))

    fragments = [delta.text for delta in heard if isinstance(delta, TextDelta)]
    assert ("".join(fragments), answer.text) == (whole.text, whole.text)
    assert len(fragments) > 1
    return "yes"


async def stream_error(double: Double) -> str:
    broken = replace(double.say(Said("It breaks.")), faults=(double.stream_error(2),))
    answer, heard, waits = await over_http(double, broken, double.say(Said("fine")))

    assert (answer.text, len(waits), sum(isinstance(delta, Retry) for delta in heard)) == ("fine", 1, 1)
    return "tried again"


async def retry(double: Double) -> str:
    answer, _, waits = await over_http(
        double, double.error(429, "slow down", retry_after="2"), double.say(Said("fine"))
    )

    assert (answer.text, waits) == ("fine", [2.0])
    return "waits as told"


async def web_search(double: Double) -> str:
    request = replace(HELLO, web_search=True)
    try:
        answer, body, _ = await talk(double, request, Said("It is dry.", searched="weather"))
    except BadRequest:
        return "not offered"
    assert answer.searched
    assert [(page.url, page.title) for page in answer.citations] == list(PAGES)
    (tool,) = body["tools"]
    return f"`{tool.get('type') or next(iter(tool))}`"


async def empty(double: Double) -> str:
    answer, _, _ = await talk(double, HELLO, Said())

    assert (answer.text, answer.calls, answer.stop_reason) == ("", (), "end_turn")
    return "yes"


FEATURES = {
    "text": text,
    "system text": system,
    "tools": tools,
    "parallel tools": parallel_tools,
    "images": images,
    "documents": documents,
    "structured output": structured_output,
    "reasoning replay": reasoning_replay,
    "caching marks": caching_marks,
    "usage": usage,
    "refusal": refusal,
    "cut-off": cut_off,
    "stream": stream,
    "error in a stream": stream_error,
    "retry": retry,
    "empty answer": empty,
    "web search": web_search,
}


@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
@pytest.mark.parametrize("feature", FEATURES)
async def test_a_wire_has_the_feature(feature: str, double: Double):
    assert await FEATURES[feature](double) != ""


# ---------------------------------------------------------------- the page

HEAD = """\
# Providers

Every LLM connector leads to one of five wires. A flow does not notice which: messages, tools, files, events and
errors are the same for all. Settings of each connector stand in the [reference](reference/connectors.md); `octo models`
prints what is listed here, and says which connectors of a config can be used now.

## What the wires do

Each cell was tried out against a server that checks requests as strictly as the vendor does. A cell that shows keys
tells where the thing stands in the request.
"""

KINDS = """
What the features mean: *system text* reaches the model once; *parallel tools* are several calls of one turn, each
with its own arguments; *structured output* is how an answer is held to `outputSchema`; *reasoning replay* returns what
the model thought while its tools run, as the vendor wants it; *caching marks* are what a prompt carries under
`promptCache`; *cut-off* means that an answer which reached `maxTokens` is told from a whole one; *web search* is one
that the provider makes by itself, and whose pages the answer cites.

## Providers and their connectors

*Vectors* are embeddings. A provider without a default model needs `model`.
"""

FILES = """
## Attachments

What kind of file a model reads goes by its MIME type, and that by its bytes where they are recognised. A file may have
30 MiB. One that the provider does not take is refused before anything is sent. Not every model of a provider reads
what the provider takes; then the provider refuses it.
"""


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([row(head), row(["---"] * len(head)), *map(row, rows)]) + "\n"


async def page() -> str:
    matrix = [[name, *[await feature(double) for double in DOUBLES]] for name, feature in FEATURES.items()]
    types = known()
    providers = [
        [f"`{one.type}`", one.api, f"`{one.model}`" if one.model else "none", ", ".join(one.gives)] for one in types
    ]
    kinds = sorted({kind for one in types for kind in one.reads or ()})
    readers = [one for one in types if one.reads is not None]
    files = [
        [f"`{kind}`", ", ".join(f"`{one.type}`" for one in readers if kind in (one.reads or ()))] for kind in kinds
    ]
    silent = ", ".join(f"`{one.type}`" for one in readers if not one.reads)
    return "\n".join(
        [
            HEAD,
            table(["", *(double.name for double in DOUBLES)], matrix) + KINDS,
            table(["Connector", "Wire", "Default model", "Gives"], providers) + FILES,
            table(["Type", "Taken by"], files),
            f"Text only: {silent}. Every type: `llm-scripted`.\n",
        ]
    )


def test_the_page_shows_what_was_found():
    found = asyncio.run(page())
    if os.environ.get("OCTO_UPDATE"):
        PAGE.write_text(found, encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == found, "OCTO_UPDATE=1 writes docs/providers.md anew"


def test_no_key_stands_in_a_body():
    assert all(KEY not in json.dumps(asyncio.run(talk(double, HELLO, Said("x")))[1]) for double in DOUBLES)
