"""octo/llm/wires/chat_completions.py before servers as strict as those of the vendors: every dialect, every history.

Also octo/llm/providers.py, whose rows say how the dialects differ.
"""

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParams

from octo.errors import BadRequest, ProviderError
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
    ToolStart,
    Usage,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint, HttpCall
from octo.values import Json
from soaking import examples
from vendor import faults
from vendor.chat import ChatServer, Numbered, Reply, UsageIn, call, error, error_event, reply
from vendor.server import Answer, Request
from vendor.typed import mismatches

DIALECTS = {
    "mistral": "mistral",
    "deepseek": "deepseek",
    "groq": "groq",
    "openrouter": "openrouter",
    "togetherai": "together",
    "customai": "custom",
}
"""The double of each provider."""
EXAMPLES = examples(few=60, all=4000)

BEYOND_OPENAI = frozenset(
    {
        "usage",
        "thinking",
        "reasoning_content",
        "reasoning_details",
        "extra_content",
        "cache_control",
    }
)
"""Keys that OpenAI's types do not know; the doubles see to it that only their providers are sent them."""

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
LOOKUP = ToolDefinition("lookup", "Find it", {"type": "object", "properties": {"n": {"type": "number"}}})


async def instantly(_: float) -> None:
    """Waiting that takes no time."""


async def ignore(_: Delta) -> None:
    """A listener that does not care."""


def model(url: str, transport: Transport, provider: str = "customai", **more: Json) -> HttpModel:
    credentials = Credentials(provider, url, "authorization", api_key="secret-key")
    return HttpModel(Endpoint(credentials, "m", **more), transport)


async def ask(
    script: Sequence[Reply | Answer],
    *,
    stream: bool = True,
    request: ChatRequest | None = None,
    provider: str = "customai",
) -> tuple[list[Delta], ChatResponse]:
    """Make one call; gives what a listener heard, and the answer."""
    deltas: list[Delta] = []

    async def listen(delta: Delta) -> None:
        deltas.append(delta)

    with ChatServer(script, dialect=DIALECTS[provider]) as server:
        async with Transport({}, sleep=instantly) as transport:
            answer = await model(server.url, transport, provider).complete(
                request or ChatRequest((user("hello"),), tools=(LOOKUP,)),
                session={},
                on_delta=listen if stream else None,
            )
    assert server.refusals == []
    return deltas, answer


# ---------------------------------------------------------------- a conversation


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", DIALECTS)
async def test_a_conversation_with_tools_and_reasoning_is_taken_turn_by_turn(provider: str, stream: bool):
    script = [
        reply("I look.", reasoning="first things first", calls=[call("lookup", {"n": 1}), call("lookup", {"n": 2})]),
        reply(reasoning="then\n", calls=[call("lookup", {"n": 3}), call("look.up")]),
        reply("done"),
        reply("again"),
    ]
    turns: list[ChatMessage] = [user("go")]
    with ChatServer(script, dialect=DIALECTS[provider]) as server:
        async with Transport({}) as transport:
            for _ in script:
                answer = await model(server.url, transport, provider).complete(
                    ChatRequest(tuple(turns), system="be brief", tools=(LOOKUP,), max_tokens=9),
                    session={},
                    on_delta=ignore if stream else None,
                )
                turns.append(answer.message)
                results = tuple(ToolResult(one.id, one.name, "", is_error=True) for one in answer.calls)
                turns.append(ChatMessage("tool", results) if results else user("and now?"))

    assert (answer.text, server.refusals) == ("again", [])
    assert [request.path for request in server.requests] == ["/chat/completions"] * 4


@pytest.mark.parametrize("provider", ["openrouter", "deepseek"])
async def test_reasoning_goes_back_byte_for_byte_while_tools_run(provider: str):
    first = reply(reasoning=" so — \n", calls=[call("lookup", {"n": 1})])
    _, answer = await ask([first], provider=provider)
    _, whole = await ask([first], provider=provider, stream=False)

    assert answer.message.parts[0] == whole.message.parts[0]
    (reasoning,) = (part for part in answer.message.parts if isinstance(part, Reasoning))
    assert reasoning.text == " so — \n"


@pytest.mark.parametrize(
    ("provider", "alone", "with_tools"),
    [("deepseek", True, True), ("groq", False, True), ("mistral", False, False), ("openrouter", False, False)],
)
def test_who_answers_in_a_certain_form_by_a_tool(provider: str, alone: bool, with_tools: bool):
    asked = model("http://unused", Transport({}), provider)

    assert (asked.answers_by_tool("", with_tools=False), asked.answers_by_tool("", with_tools=True)) == (
        alone,
        with_tools,
    )


# ---------------------------------------------------------------- answers

RICH = reply(
    "It is — 7 😀",
    reasoning="let me see",
    calls=[call("lookup", {"n": 1, "é": ["x"]}, "call_1"), call("lookup", "", "call_2")],
    usage={"prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}},
)


@pytest.mark.parametrize("usage_in", ["last", "each", "finish"])
@pytest.mark.parametrize("provider", [provider for provider in DIALECTS if provider != "mistral"])
async def test_a_streamed_answer_equals_one_that_was_not(provider: str, usage_in: UsageIn):
    script = [replace(RICH, usage_in=usage_in)]
    _, whole = await ask(script, provider=provider, stream=False)
    deltas, streamed = await ask(script, provider=provider)

    assert streamed == whole
    assert streamed.usage == Usage(10, 5, 2, 4, prompt_tokens=10)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "It is — 7 😀"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_usage_that_is_not_reported_stays_unknown(stream: bool):
    _, answer = await ask([reply("x", usage=False)], stream=stream)

    assert answer.usage is None


async def test_openrouter_says_what_a_call_cost():
    usage = {"cost": 0.0125}

    for stream in (False, True):
        _, answer = await ask([reply("x", usage=usage)], provider="openrouter", stream=stream)
        assert answer.usage == Usage(10, 5, prompt_tokens=10, reported_cost_usd=0.0125)


WIRE_FAULTS = {
    "single bytes": [faults.rechunk(1)],
    "odd cuts": [faults.rechunk(1, 7, 64, 3)],
    "CRLF": [faults.crlf(), faults.rechunk(5)],
    "CR": [faults.line_ends("\r"), faults.rechunk(1)],
    "comments": [faults.comment(0, "OPENROUTER PROCESSING"), faults.comment(3)],
    "unknown event": [faults.unknown_event()],
    "compressed": [faults.gzipped(), faults.rechunk(11)],
    "a connection that is not closed": [faults.cut(99, "hang")],
    "a connection that breaks after the end": [faults.cut(99, "reset")],
}


@pytest.mark.parametrize("spoil", WIRE_FAULTS.values(), ids=WIRE_FAULTS)
async def test_what_does_not_matter_on_the_way(spoil: list[faults.Fault]):
    expected = await ask([RICH])

    assert await ask([replace(RICH, faults=tuple(spoil))]) == expected


async def test_a_stream_may_end_without_its_mark():
    assert await ask([replace(RICH, done=False)]) == await ask([RICH])


@pytest.mark.parametrize("ending", ["whole", "close", "reset"])
async def test_a_connection_that_breaks_after_the_finish_reason_is_no_failure(ending: str):
    short = reply("x", usage=False)  # role, text, finish reason, mark
    deltas, answer = await ask([replace(short, faults=(faults.cut(3, ending),))])  # type: ignore[arg-type]  # a table

    assert (answer.text, deltas) == ("x", [TextDelta("x")])


@pytest.mark.parametrize("seconds", [20, 1], ids=["a moment later", "when the time of the call is over"])
async def test_an_answer_is_taken_though_neither_usage_nor_mark_nor_end_comes_after_it(seconds: int):
    silent = reply("x", calls=[call("lookup", "{}", "a")], usage=False, done=False, faults=[faults.cut(99, "hang")])
    deltas: list[Delta] = []

    async def listen(delta: Delta) -> None:
        deltas.append(delta)

    began = time.monotonic()
    with ChatServer([silent], dialect="custom") as server:
        async with Transport({"OCTO_AI_TIMEOUT_SECONDS": str(seconds)}) as transport:
            answer = await model(server.url, transport).complete(
                ChatRequest((user("hello"),), tools=(LOOKUP,)), session={}, on_delta=listen
            )

    assert (answer.text, answer.calls, answer.usage) == ("x", (ToolCall("a", "lookup", "{}"),), None)
    assert (deltas[-1], len(server.requests)) == (ToolReady(answer.calls[0]), 1)
    assert time.monotonic() - began < 6


@pytest.mark.parametrize("numbered", ["yes", "all zero", "by id", "by name"])
async def test_parallel_calls_stay_apart_in_single_bytes(numbered: Numbered):
    calls = [call("lookup", {"n": 1}, "a"), call("other", {"m": "2"}, "b"), call("lookup", {"n": 3}, "c")]
    script = [reply(calls=calls, numbered=numbered, fragment=3, faults=[faults.rechunk(1)])]
    deltas, answer = await ask(script)

    found = [(one.name, one.arguments) for one in answer.calls]
    assert found == [("lookup", '{"n": 1}'), ("other", '{"m": "2"}'), ("lookup", '{"n": 3}')]
    assert [delta.call for delta in deltas if isinstance(delta, ToolReady)] == list(answer.calls)
    ids = [delta.id for delta in deltas if isinstance(delta, ToolStart)]
    assert ids == [one.id for one in answer.calls] and len(set(ids)) == 3
    assert numbered == "by name" or ids == ["a", "b", "c"]


# ---------------------------------------------------------------- streams that fail


BROKEN = {
    "error first": error_event(0),
    "error after three deltas": error_event(4),
    "error after a complete call": error_event(5),
    "an error of the upstream": error_event(2, code="502", kind="provider_error"),
    "a limit": error_event(2, "slow down", code="rate_limit_exceeded", kind="tokens"),
    "connection reset": faults.reset(3),
    "connection closed": faults.cut(3, "close"),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
async def test_a_stream_that_fails_is_tried_again_and_nothing_of_it_stays(fault: faults.Fault):
    first = reply("half an answer", calls=[call("lookup", {"n": 1})], faults=[fault])
    deltas, answer = await ask([first, RICH])

    assert answer == (await ask([RICH]))[1]
    (place,) = (place for place, delta in enumerate(deltas) if isinstance(delta, Retry))
    assert deltas[place + 1 :] == (await ask([RICH]))[0]


DELTAS = 9
"""Of the stream below, before its finish reason."""


@pytest.mark.parametrize("after", range(DELTAS + 1))
async def test_a_stream_that_is_cut_at_any_event_is_no_answer(after: int):
    first = reply("half", calls=[call("lookup", {"n": 123})], fragment=2, faults=[faults.cut(after)])
    deltas, answer = await ask([first, reply("done")])

    assert answer.text == "done"
    assert sum(isinstance(delta, Retry) for delta in deltas) == 1


async def test_an_error_that_cannot_be_mended_is_not_tried_again():
    broken = reply("half", faults=[error_event(2, "no such tool", code=None, kind="invalid_request_error")])

    with pytest.raises(BadRequest) as caught:
        await ask([broken])

    assert str(caught.value) == "llm-custom stream: status 400 in the answer: no such tool"


async def test_after_three_more_tries_the_last_failure_is_the_error():
    script = [reply("half", faults=[error_event(2, f"try {number}")]) for number in range(4)]

    with pytest.raises(ProviderError, match="llm-custom stream: status 503 in the answer: try 3"):
        await ask(script)


async def test_a_call_that_the_cap_cut_off_says_so():
    script = [reply(calls=[call("lookup", '{"n": 1')], finish_reason="length")]

    for stream in (False, True):
        _, answer = await ask(script, stream=stream)
        assert (answer.stop_reason, answer.calls[0].arguments) == ("max_tokens", '{"n": 1')


# ---------------------------------------------------------------- requests in another shape

SETTINGS = ChatRequest((user("hello"),), max_tokens=9, temperature=0.5)


def no(message: str, status: int = 400) -> Answer:
    return error(status, message)


@pytest.mark.parametrize(
    ("rejects", "last"),
    [
        (["max_completion_tokens"], {"max_tokens": 9, "temperature": 0.5, "stream_options": {"include_usage": True}}),
        (["temperature"], {"max_completion_tokens": 9, "stream_options": {"include_usage": True}}),
        (["max_completion_tokens", "temperature"], {"max_tokens": 9, "stream_options": {"include_usage": True}}),
        (["stream_options"], {"max_completion_tokens": 9, "temperature": 0.5}),
        (["stream_options", "max_completion_tokens", "temperature"], {"max_tokens": 9}),
    ],
    ids=["cap", "temperature", "both", "usage", "all"],
)
async def test_what_a_server_refuses_is_left_out_for_the_rest_of_the_session(rejects: list[str], last: Json):
    session: dict[object, Json] = {}
    with ChatServer(lambda _: reply("fine"), dialect="custom", rejects=rejects) as server:
        async with Transport({}) as transport:
            ask = model(server.url, transport)
            first = await ask.complete(SETTINGS, session=session, on_delta=ignore)
            again = await ask.complete(SETTINGS, session=session, on_delta=ignore)

    assert (first.text, again.text) == ("fine", "fine")
    assert len(server.requests) == len(rejects) + 2
    for request in server.requests[-2:]:
        assert {key: request.json[key] for key in request.json.keys() - {"model", "messages", "stream"}} == last


async def test_another_session_and_another_model_learn_for_themselves():
    with ChatServer(lambda _: reply("fine"), dialect="custom", rejects=["temperature"]) as server:
        async with Transport({}) as transport:
            ask = model(server.url, transport)
            session: dict[object, Json] = {}
            await ask.complete(SETTINGS, session=session)
            await ask.complete(replace(SETTINGS, model="other"), session=session)
            await ask.complete(SETTINGS, session={})

    assert ["temperature" in request.json for request in server.requests] == [True, False] * 3


async def test_one_refusal_that_names_two_things_is_answered_by_one_repeat(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    with ChatServer([no("unknown: max_tokens and temperature"), reply("fine")]) as server:
        async with Transport({}) as transport:
            await model(server.url, transport).complete(SETTINGS, session={})

    assert server.requests[-1].json.keys() - {"model", "messages"} == {"max_tokens"}
    assert caplog.messages == [
        "a model call is made again in another shape: status 400: unknown: max_tokens and temperature"
    ]


@pytest.mark.parametrize(
    ("script", "calls", "text"),
    [
        ([no("unknown max_tokens"), no("unknown temperature"), no("no max_tokens")], 3, "no max_tokens"),
        ([no("unknown temperature"), no("your plan is too small")], 2, "your plan is too small"),
        ([no("unknown max_tokens"), no("max_tokens is unknown")], 2, "max_tokens is unknown"),
        ([no("max_tokens is too large")], 1, "max_tokens is too large"),
        ([no("no such model")], 1, "no such model"),
        ([no("unknown include_usage")], 1, "unknown include_usage"),
        ([no("unknown temperature", 422), no("no", 422)], 2, "no"),
    ],
    ids=[
        "both, then again",
        "then something else",
        "not the name",
        "the value",
        "something else",
        "what was not sent",
        "422",
    ],
)
async def test_the_last_refusal_is_the_error(script: list[Answer], calls: int, text: str):
    with ChatServer(script) as server, pytest.raises(ProviderError) as caught:
        async with Transport({}, sleep=instantly) as transport:
            await model(server.url, transport).complete(SETTINGS, session={})

    assert len(server.requests) == calls
    assert str(caught.value) == f"llm-custom complete: status {caught.value.status}: {text}"


# ---------------------------------------------------------------- whatever comes in, the vendors take it

TEXTS = st.sampled_from(["", " ", "\n", "x", "x \n", "\ud83d"])
IDS = st.sampled_from(["", "a", "b", "a b", "ü", "abcdefgh1", "toolu_" + "x" * 60])
NAMES = st.sampled_from(["t", "lookup", " ", "functions.t", "n" * 70])
ARGUMENTS = st.sampled_from(["", "{}", "[]", '{"a": 1}', '{"a":', "null", '{"a": NaN}'])
OWN = {"wire": "chat_completions"}
DETAILS = [{"type": "reasoning.text", "text": "x", "signature": "s"}]
REPLAYS = st.sampled_from(
    [
        None,
        {"wire": "gemini", "signature": "x"},
        {"wire": "anthropic", "signature": "x"},
        *({**OWN, "dialect": dialect, "details": DETAILS} for dialect in DIALECTS),
        {**OWN, "dialect": "deepseek"},
    ]
)
CALL_REPLAYS = st.sampled_from([None, {"wire": "gemini"}, {**OWN, "dialect": "customai", "extra_content": {"a": {}}}])
FILES = st.sampled_from(
    [
        File("image/jpeg", PNG),
        File("application/pdf", b"%PDF-1", "a.pdf"),
        File("application/pdf", b"%PDF-1", "a.txt"),
        File("application/pdf", b"%PDF-1", " "),
        File("audio/wav", b"RIFF....WAVE"),
        File("audio/mpeg", b"ID3...."),
    ]
)


def turns_of(role: str, parts: st.SearchStrategy[Part]) -> st.SearchStrategy[ChatMessage]:
    return st.lists(parts, max_size=3).map(lambda found: ChatMessage(role, tuple(found)))  # type: ignore[arg-type]  # one of three


SAID = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(ToolCall, IDS, NAMES, ARGUMENTS, CALL_REPLAYS),
    st.builds(Reasoning, TEXTS, REPLAYS),
    FILES,
)
HISTORIES = st.lists(
    st.one_of(
        turns_of("user", st.one_of(st.builds(Text, TEXTS), FILES)),
        turns_of("assistant", SAID),
        turns_of("tool", st.builds(ToolResult, IDS, NAMES, TEXTS, st.booleans())),
    ),
    max_size=7,
)
REQUESTS = st.builds(
    ChatRequest,
    messages=HISTORIES.map(lambda turns: (*turns, user("go on"))),
    system=TEXTS,
    tools=st.sampled_from([(), (LOOKUP,), (LOOKUP, ToolDefinition("t", "", {}))]),
    tool_choice=st.sampled_from(["auto", "any", "none"]),
    max_tokens=st.sampled_from([None, 0, 9]),
    temperature=st.sampled_from([None, 0.0, 0.5]),
    reasoning_effort=st.sampled_from([None, "none", "low"]),
    model=st.sampled_from([None, "anthropic/claude-sonnet-4.5", "deepseek-reasoner"]),
    may_think_first=st.booleans(),
    output_schema=st.sampled_from([None, {"type": "object", "properties": {"a": {"type": "string"}}}]),
    cache=st.booleans(),
    cache_key=st.just("service/flow.block"),
)


class Strict(Transport):
    """Stands for the network: hands each call to the vendor's rules and to OpenAI's types at once."""

    def __init__(self, provider: str) -> None:
        super().__init__({})
        self._server = ChatServer([], dialect=DIALECTS[provider])
        self.refusals: list[str] = []

    async def send(self, call: HttpCall, *_: object) -> ChatResponse:  # type: ignore[override]  # nothing is decoded
        headers = {name.lower(): value for name, value in call.headers}
        request = Request("POST", "/v1/chat/completions", "", headers, call.body, 1)
        if self._server.refuse(request) is not None:
            self.refusals.append(str(request.refusal))
        strange = mismatches(json.loads(call.body), CompletionCreateParams, beyond=BEYOND_OPENAI)
        if self._server.dialect.nine_letter_ids:  # Mistral has its own parts for files
            strange = [fault for fault in strange if "content" not in fault]
        self.refusals += strange
        return ChatResponse(ChatMessage("assistant", ()), "end_turn")


def with_files_of(types: frozenset[str] | None, request: ChatRequest) -> ChatRequest:
    """The request without the files that the model does not read."""

    def kept(turn: ChatMessage) -> ChatMessage:
        parts = (part for part in turn.parts if not isinstance(part, File) or types is None or part.mime_type in types)
        return replace(turn, parts=tuple(parts))

    return replace(request, messages=tuple(map(kept, request.messages)))


@pytest.mark.parametrize("provider", DIALECTS)
@given(request=REQUESTS, stream=st.booleans(), refused=st.sampled_from([(), ("max_completion_tokens", "temperature")]))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_every_vendor_takes_every_conversation(
    provider: str, request: ChatRequest, stream: bool, refused: tuple[str, ...]
):
    strict = Strict(provider)
    ask = model("http://unused", strict, provider, refused=frozenset(refused) if provider != "mistral" else frozenset())
    await ask.complete(with_files_of(ask.media_types, request), session={}, on_delta=ignore if stream else None)

    assert strict.refusals == []


STREAM = st.builds(
    reply,
    st.sampled_from([None, "", "It is — 7 😀"]),
    calls=st.lists(
        st.builds(call, st.sampled_from(["t", "u"]), st.sampled_from([{}, {"n": 1, "é": "x"}, '{"n":'])), max_size=3
    ),
    reasoning=st.sampled_from(["", "hm — "]),
    fragment=st.integers(1, 9),
    usage_in=st.sampled_from(["last", "each", "finish"]),
)


@given(
    said=STREAM, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=5), end=st.sampled_from(["\n", "\r\n", "\r"])
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_cut_of_a_stream_gives_the_same_answer_as_no_stream(said: Reply, cuts: list[int], end: str):
    from octo.llm.framing import DONE, EventFraming
    from octo.llm.wires.chat_completions import ChatCompletions

    wire, asked = ChatCompletions("customai"), ChatRequest((user("x"),))
    server = ChatServer([])
    said = replace(said, calls=tuple(replace(one, id=f"call_{n}") for n, one in enumerate(said.calls)))

    def response(body: Json, *spoil: faults.Fault) -> tuple[list[Delta], ChatResponse]:
        answer = server.render(said, Request("POST", "", "", {}, json.dumps(body).encode(), 1))
        for fault in spoil:
            answer = fault(answer)
        framing, decoder = EventFraming(), wire.decoder(asked)
        whole = answer.body.decode() if not body.get("stream") else None
        events = [whole] if whole else [event for piece in answer.pieces for event in framing.feed(piece)]
        deltas = [delta for data in events for delta in decoder.feed(DONE if data == DONE else json.loads(data))]
        return deltas, decoder.finish()

    streamed = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    expected = response(streamed)

    assert response(streamed, faults.line_ends(end), faults.rechunk(*cuts)) == expected  # type: ignore[arg-type]  # a table
    assert response({"model": "m"})[1] == expected[1]
