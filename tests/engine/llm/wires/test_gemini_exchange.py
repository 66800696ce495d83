"""octo/llm/wires/gemini.py before a server as strict as the vendor's: whole conversations, faults, every history."""

import json
from collections.abc import Sequence

import pytest
from google.genai import types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo.errors import AuthenticationFailed, BadRequest, ProviderError, RateLimited
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Delta,
    File,
    Part,
    Reasoning,
    Retry,
    Text,
    TextDelta,
    ToolCall,
    ToolDefinition,
    ToolReady,
    ToolResult,
    Usage,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.facts import is_before_gemini_3
from octo.llm.framing import EventFraming
from octo.llm.model import HttpModel
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint, HttpCall
from octo.llm.wires import gemini
from octo.values import Json
from soaking import examples
from vendor import AnthropicServer, faults
from vendor import reply as claude_reply
from vendor.gemini import GeminiServer, Picture, Reply, Said, blocked, call, error, error_event, exhausted, reply
from vendor.gemini_rules import sign
from vendor.server import Answer, Request

EXAMPLES = examples(few=80, all=4000)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
LOOKUP = ToolDefinition("lookup", "Find it", {"type": "object", "properties": {"n": {"type": "number"}}})
MODELS = ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro", "gemini-3.5-flash")


class Waits(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def ignore(_: Delta) -> None:
    """A listener that does not care."""


def model(base_url: str, transport: Transport, name: str = "gemini-3.5-flash", **more: Json) -> HttpModel:
    credentials = Credentials("googleai", base_url, "x-goog-api-key", api_key="secret-key")
    return HttpModel(Endpoint(credentials, name, **more), transport)


async def ask(
    script: Sequence[Reply | Answer],
    *,
    stream: bool = True,
    request: ChatRequest | None = None,
    waits: Waits | None = None,
    spoil: Sequence[faults.Fault] = (),
) -> tuple[list[Delta], ChatResponse]:
    """Make one call; gives what a listener heard, and the answer."""
    deltas: list[Delta] = []

    async def listen(delta: Delta) -> None:
        deltas.append(delta)

    with GeminiServer(script, faults=spoil) as server:
        async with Transport({}, sleep=Waits() if waits is None else waits, random=lambda: 1.0) as transport:
            answer = await model(server.base_url, transport).complete(
                request or ChatRequest((user("hello"),), tools=(LOOKUP,)),
                session={},
                on_delta=listen if stream else None,
            )
    assert server.refusals == []
    return deltas, answer


async def converse(
    server: GeminiServer, rounds: int, name: str = "gemini-3.5-flash", **more: Json
) -> list[ChatMessage]:
    """Answer every call that the model makes, and every answer with a question."""
    turns: list[ChatMessage] = [user("go")]
    async with Transport({}) as transport:
        for _ in range(rounds):
            request = ChatRequest(tuple(turns), system="be brief", tools=(LOOKUP,))
            answer = await model(server.base_url, transport, name).complete(request, session={}, **more)
            turns.append(answer.message)
            results = tuple(ToolResult(one.id, one.name, f"result of {one.arguments}") for one in answer.calls)
            turns.append(ChatMessage("tool", results) if results else user("and now?"))
    return turns


async def test_text_that_comes_after_a_reason_to_end_is_taken():
    """Some servers give a reason in every event."""
    event = b'data: {"candidates":[{"content":{"parts":[{"text":"%s"}]},"finishReason":"STOP"}],"usageMetadata":{}}\n\n'
    pieces = tuple(event % text for text in (b"po", b"n", b"g"))
    answer = Answer(headers=(("content-type", "text/event-stream"),), pieces=pieces, streamed=True)

    deltas, response = await ask([answer])

    assert ([delta for delta in deltas if isinstance(delta, TextDelta)], response.text) == (
        [TextDelta("po", 0), TextDelta("n", 0), TextDelta("g", 0)],
        "pong",
    )


# ---------------------------------------------------------------- conversations


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("gives_ids", [False, True], ids=["without ids", "with ids"])
@pytest.mark.parametrize("name", MODELS)
async def test_a_conversation_with_tools_and_thoughts_is_taken_turn_by_turn(name: str, gives_ids: bool, stream: bool):
    script = [
        reply("I look.", thinking="first things first", calls=[call("lookup", {"n": 1}), call("lookup", {"n": 2})]),
        reply(thinking=Said("then\n", thought=True, signed=True), calls=[call("lookup", {"n": 3})]),
        reply(Said("done", signed=True), Picture(PNG)),
        reply("again"),
    ]
    with GeminiServer(script, gives_ids=gives_ids) as server:
        turns = await converse(server, 4, name, on_delta=ignore if stream else None)

    assert (turns[-2].text, server.refusals) == ("again", [])


SIGNED = {
    "on the first call": [reply(calls=[call("lookup", {"n": 1}), call("lookup", {"n": 1})])],
    "on every call": [reply(calls=[call("lookup", {"n": 1}), call("lookup", {"n": 2}, signed=True)])],
    "on a thought before it": [reply(thinking=Said("hm", thought=True, signed=True), calls=[call("lookup")])],
    "on the text before it": [reply(Said("I look.", signed=True), calls=[call("lookup")])],
    "on a part of its own after it": [
        reply("x", parts=[], calls=[call("lookup")]),
        reply(Said("", signed=True)),
    ],
    "on each of three rounds": [reply(calls=[call("lookup", {"n": n})]) for n in range(3)],
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("script", SIGNED.values(), ids=SIGNED)
async def test_signatures_come_back_on_their_parts(script: list[Reply], stream: bool):
    with GeminiServer([*script, reply("done")]) as server:
        await converse(server, len(script) + 1, on_delta=ignore if stream else None)

    sent = [
        part["thoughtSignature"]
        for content in server.requests[-1].json["contents"]
        for part in content["parts"]
        if "thoughtSignature" in part
    ]
    assert server.refusals == []
    assert len(sent) == sum(getattr(part, "signed", False) or False for one in script for part in one.parts)


@pytest.mark.parametrize("gives_ids", [False, True], ids=["without ids", "with ids"])
async def test_a_thread_goes_on_with_another_vendor_and_back(gives_ids: bool):
    first = [
        reply(calls=[call("lookup", {"n": 1}), call("lookup", {"n": 2})]),
        reply(thinking="hm", calls=[call("lookup", {"n": 1})]),
    ]
    with GeminiServer(first, gives_ids=gives_ids) as server:
        turns = await converse(server, 2)
    ids = [one.id for turn in turns for one in turn.calls]
    with AnthropicServer([claude_reply("it is 7")]) as other:
        async with Transport({}) as transport:
            credentials = Credentials("anthropic", other.url, "x-api-key", api_key="k")
            ask = HttpModel(Endpoint(credentials, "claude"), transport)
            answer = await ask.complete(ChatRequest(tuple(turns), tools=(LOOKUP,)), session={})
    with GeminiServer([reply("fine")]) as back:
        async with Transport({}) as transport:
            request = ChatRequest((*turns, answer.message, user("so?")), tools=(LOOKUP,))
            await model(back.base_url, transport).complete(request, session={})

    assert len(set(ids)) == 3
    assert [server.refusals, other.refusals, back.refusals] == [[], [], []]
    results = [
        block["content"]
        for turn in other.requests[0].json["messages"]
        for block in turn["content"]
        if "content" in block
    ]
    assert results == ['result of {"n":1}', 'result of {"n":2}', 'result of {"n":1}']


KEYWORDS = {
    "exclusiveMinimum": {"type": "number", "exclusiveMinimum": 1},
    "multipleOf": {"type": "integer", "multipleOf": 2},
    "const": {"const": 5},
    "null": {"type": ["string", "null"]},
    "reference": {"$ref": "#/$defs/t"},
    "recursion": {"$ref": "#/$defs/n"},
    "allOf": {"allOf": [{"type": "string"}, {"minLength": 2}]},
    "oneOf": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "patternProperties": {"type": "object", "patternProperties": {"^a": {}}},
    "format": {"type": "string", "format": "email"},
    "array": {"type": "array"},
    "default": {"type": "string", "default": "x"},
}


@pytest.mark.parametrize("name", MODELS)
async def test_no_keyword_of_one_tool_spoils_a_request(name: str):
    defs = {"t": {"type": "string"}, "n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}
    tools = tuple(
        ToolDefinition(word, "d", {"type": "object", "properties": {"default": schema}, "$defs": defs})
        for word, schema in KEYWORDS.items()
    )
    with GeminiServer([reply("fine")]) as server:
        async with Transport({}) as transport:
            await model(server.base_url, transport, name).complete(ChatRequest((user("x"),), tools=tools), session={})

    sent = server.requests[0].json["tools"][0]["functionDeclarations"]
    assert server.refusals == []
    assert all(tool["parameters"]["properties"].keys() == {"default"} for tool in sent)


# ---------------------------------------------------------------- answers

RICH = reply(
    Said("It is — 7 😀", signed=True),
    Picture(PNG),
    thinking="let me see",
    calls=[call("lookup", {"n": 1, "é": ["x"]}, "call_1"), call("lookup")],
    usage={"thoughtsTokenCount": 2, "cachedContentTokenCount": 4},
)


async def test_a_streamed_answer_equals_one_that_was_not():
    script = [RICH]
    _, whole = await ask(script, stream=False)
    deltas, streamed = await ask(script)

    assert streamed.message.parts[:-1] == whole.message.parts[:-1]
    assert (streamed.stop_reason, streamed.model, streamed.usage) == (whole.stop_reason, whole.model, whole.usage)
    assert streamed.usage == Usage(10, 7, 2, 4, prompt_tokens=10)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "It is — 7 😀"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_blocked_prompt_is_a_refusal(stream: bool):
    _, answer = await ask([blocked("PROHIBITED_CONTENT")], stream=stream)

    assert (answer.stop_reason, answer.text) == ("refusal", "")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_an_answer_without_content_is_a_refusal(stream: bool):
    _, answer = await ask([reply(finish="SAFETY")], stream=stream)

    assert (answer.stop_reason, answer.usage) == ("refusal", Usage(10, 5, prompt_tokens=10))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_call_that_the_cap_cut_off_says_so(stream: bool):
    _, answer = await ask([reply(calls=[call("lookup", {"path": "a"})], finish="MAX_TOKENS")], stream=stream)

    assert (answer.stop_reason, len(answer.calls)) == ("max_tokens", 1)


@pytest.mark.parametrize(
    "spoil",
    [
        [faults.comment(), faults.comment(2)],
        [faults.crlf(), faults.rechunk(1)],
        [faults.line_ends("\r"), faults.rechunk(3, 7)],
        [faults.gzipped()],
        [faults.unknown_event()],
        [faults.cut(14, "whole")],
    ],
    ids=["comments", "single bytes", "other line ends", "compressed", "an unknown event", "whole at its end"],
)
async def test_what_does_not_matter_on_the_way(spoil: list[faults.Fault]):
    _, answer = await ask([reply("It is — 7 😀", fragment=1)], spoil=spoil)

    assert answer.text == "It is — 7 😀"


@pytest.mark.parametrize("ending", ["close", "reset"])
async def test_a_connection_that_breaks_after_the_finish_reason_is_no_failure(ending: Json):
    deltas, answer = await ask([reply("done", faults=[faults.cut(2, ending)])])

    assert (answer.text, [delta for delta in deltas if isinstance(delta, Retry)]) == ("done", [])


# ---------------------------------------------------------------- failures

GOES_WRONG = {
    "error first": error_event(0),
    "error after three events": error_event(3),
    "error after a whole call": error_event(4),
    **{f"cut after {after}": faults.cut(after) for after in range(5)},
    "reset": faults.reset(2),
}


@pytest.mark.parametrize("fault", GOES_WRONG.values(), ids=GOES_WRONG)
async def test_a_stream_that_fails_is_tried_again_and_nothing_of_it_stays(fault: faults.Fault):
    first = reply("half of it", thinking="hm", calls=[call("lookup", {"n": 1})], faults=[fault], fragment=5)
    deltas, answer = await ask([first, reply("done")])
    after = deltas[[isinstance(delta, Retry) for delta in deltas].index(True) + 1 :]

    assert answer.message.parts == (Text("done"),)
    assert after == [TextDelta("done")]
    assert not any(isinstance(delta, ToolReady) for delta in deltas)


@pytest.mark.parametrize(
    ("answer", "waits"),
    [
        (exhausted(delay="7.5s"), [7.5]),
        (exhausted(), [1.0]),
        (error(503, "overloaded"), [1.0]),
        (error(500, "internal", retry_after="3"), [3.0]),
        (Answer(429, (), (b'[{"error": {"code": 429, "details": [{"retryDelay": "2s"}]}}]',)), [2.0]),
    ],
    ids=["a delay", "no delay", "overloaded", "a header", "a list of errors"],
)
async def test_what_is_tried_again_and_after_which_wait(answer: Answer, waits: list[float]):
    waited = Waits()
    await ask([answer, reply("done")], waits=waited)

    assert waited == waits


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (
            exhausted(delay="3s", quota="GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
            RateLimited,
            "llm-gemini stream: status 429: You exceeded your current quota",
        ),
        (
            exhausted(delay="61s"),
            RateLimited,
            "llm-gemini stream: status 429: You exceeded your current quota; the provider asks to wait 61 s, "
            "octo waits at most 60 s",
        ),
        (
            error(400, "API key not valid.", {"reason": "API_KEY_INVALID"}),
            AuthenticationFailed,
            "llm-gemini stream: status 400: API key not valid.",
        ),
        (
            Answer(400, (), (b'[{"error": {"code": 400, "message": "bad"}}]',)),
            BadRequest,
            "llm-gemini stream: status 400: bad",
        ),
    ],
    ids=["a quota of the day", "a long wait", "a wrong key", "a list of errors"],
)
async def test_what_is_not_tried_again(answer: Answer, kind: type[ProviderError], text: str):
    with pytest.raises(ProviderError) as caught:
        await ask([answer])

    assert (type(caught.value), str(caught.value), caught.value.provider) == (kind, text, "googleai")


@pytest.mark.parametrize(
    "body", [b"{}", b'{"candidates": []}', b'{"candidates": [{"content": {"parts": [{"text": "x"}]}}]}', b"[]"]
)
async def test_a_body_that_is_no_whole_answer_is_an_error(body: bytes):
    answer = Answer(200, (("content-type", "application/json"),), (body,))
    if body == b'{"candidates": []}':  # the prompt was refused without a word
        assert (await ask([answer], stream=False))[1].stop_reason == "refusal"
        return
    with pytest.raises(ProviderError, match="status 200 without a usable answer: expected a"):
        await ask([answer], stream=False)


# ---------------------------------------------------------------- whatever comes in, the vendor takes it

TEXTS = st.sampled_from(["", " ", "\n", "x", "x \n", "\ud83d"])
IDS = st.sampled_from(["", "a", "b", "a b", "ü", "toolu_" + "x" * 60])
NAMES = st.sampled_from(["t", "lookup", " ", "functions.t", "n" * 70])
ARGUMENTS = st.sampled_from(["", "{}", "[]", '{"a": 1}', '{"a":', "null", '{"a": NaN}'])
FOREIGN = st.sampled_from([None, {"wire": "anthropic", "signature": "x"}, {"wire": "chat_completions"}])
OWN = st.sampled_from(
    [
        ToolCall("t-1-1", "t", '{"a": 1}', {"wire": "gemini", "signature": sign({"name": "t", "args": {"a": 1}})}),
        Text("yes", {"wire": "gemini", "signature": sign("yes")}),
        Text("", {"wire": "gemini", "signature": sign("")}),
        Reasoning("hm", {"wire": "gemini", "signature": sign("hm")}),
        Reasoning(" ", {"wire": "gemini"}),
    ]
)
FILES = st.sampled_from(
    [File("image/jpeg", PNG), File("application/pdf", b"%PDF-1", "a.pdf"), File("audio/mpeg", b"ID3.")]
)


def turns_of(role: str, parts: st.SearchStrategy[Part]) -> st.SearchStrategy[ChatMessage]:
    return st.lists(parts, max_size=3).map(lambda found: ChatMessage(role, tuple(found)))  # type: ignore[arg-type]  # one of three


HISTORIES = st.lists(
    st.one_of(
        turns_of("user", st.one_of(st.builds(Text, TEXTS), FILES)),
        turns_of(
            "assistant",
            st.one_of(
                st.builds(Text, TEXTS),
                st.builds(ToolCall, IDS, NAMES, ARGUMENTS, FOREIGN),
                st.builds(Reasoning, TEXTS, FOREIGN),
                OWN,
                FILES,
            ),
        ),
        turns_of("tool", st.builds(ToolResult, IDS, NAMES, TEXTS, st.booleans())),
    ),
    max_size=7,
)
REQUESTS = st.builds(
    ChatRequest,
    messages=HISTORIES.map(lambda turns: (*turns, user("go on"))),
    system=TEXTS,
    tools=st.sampled_from([(), (LOOKUP,), (LOOKUP, ToolDefinition("t", "", {"oneOf": [{"minProperties": 1}]}))]),
    tool_choice=st.sampled_from(["auto", "any", "none"]),
    model=st.sampled_from(MODELS),
    max_tokens=st.sampled_from([None, 0, 9]),
    temperature=st.sampled_from([None, 0.0, 0.5]),
    reasoning_effort=st.sampled_from([None, "none", "low", "high"]),
    output_schema=st.sampled_from([None, {"type": "object", "properties": {"a": {"const": 1}}}]),
    web_search=st.booleans(),
    cache=st.booleans(),
).filter(lambda request: not (request.web_search and request.tools and is_before_gemini_3(request.model or "")))


class Strict(Transport):
    """Stands for the network: hands each call to the vendor's rules and to the types of its package at once."""

    def __init__(self) -> None:
        super().__init__({})
        self.refusals: list[str] = []

    async def send(self, call: HttpCall, *_: object) -> ChatResponse:  # type: ignore[override]  # nothing is decoded
        headers = {name.lower(): value for name, value in call.headers}
        path, _, query = call.url.removeprefix("http://unused").partition("?")
        request = Request("POST", path, query, headers, call.body, 1)
        if GeminiServer([]).refuse(request) is not None:
            self.refusals.append(str(request.refusal))
        self.refusals += strange(json.loads(call.body))
        return ChatResponse(ChatMessage("assistant", ()), "end_turn")


PUBLISHED = {
    "contents": list[types.Content],
    "systemInstruction": types.Content,
    "tools": list[types.Tool],
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
}


def strange(body: Json) -> list[str]:
    """What the vendor's own types do not know, and what they would send otherwise. They refuse unknown keys."""
    found = [f"unknown key {key}" for key in body.keys() - PUBLISHED.keys()]
    for key in body.keys() & PUBLISHED.keys():
        items, kind = (
            (body[key], PUBLISHED[key].__args__[0]) if isinstance(body[key], list) else ([body[key]], PUBLISHED[key])
        )
        for item in items:
            read = kind.model_validate_json(json.dumps(item))
            if not read.model_fields_set:
                found.append(f"nothing in {key}")
    return found


@given(request=REQUESTS, stream=st.booleans(), thinking=st.sampled_from(["off", "adaptive", "budgeted"]))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_the_vendor_takes_every_conversation(request: ChatRequest, stream: bool, thinking: Json):
    strict = Strict()
    ask = model("http://unused/v1beta", strict, thinking=thinking, thinking_budget=1024)
    await ask.complete(request, session={}, on_delta=ignore if stream else None)

    assert strict.refusals == []


STREAM = st.builds(
    reply,
    st.sampled_from(["", "It is — 7 😀"]),
    st.builds(Said, st.sampled_from(["", "yes"]), signed=st.booleans()),
    calls=st.lists(st.builds(call, st.sampled_from(["t", "u"]), st.sampled_from([{}, {"n": 1, "é": "x"}])), max_size=3),
    thinking=st.builds(Said, st.sampled_from(["", "hm — "]), thought=st.just(True), signed=st.booleans()),
    finish=st.sampled_from(["STOP", "MAX_TOKENS"]),
    fragment=st.integers(1, 9),
)


@given(
    said=STREAM, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=5), end=st.sampled_from(["\n", "\r\n", "\r"])
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_cut_of_a_stream_gives_the_same_answer(said: Reply, cuts: list[int], end: Json):
    server = GeminiServer([], gives_ids=False)
    rendered = server.render(said, Request("POST", "/v1beta/models/m:streamGenerateContent", "", {}, b"", 1))

    def response(*spoil: faults.Fault) -> tuple[list[Delta], ChatResponse]:
        answer = rendered
        for fault in spoil:
            answer = fault(answer)
        framing, decoder = EventFraming(), gemini.decoder()
        events = [event for piece in answer.pieces for event in framing.feed(piece)]
        deltas = [delta for data in events for delta in decoder.feed(json.loads(data))]
        return deltas, decoder.finish()

    assert response(faults.line_ends(end), faults.rechunk(*cuts)) == response()
