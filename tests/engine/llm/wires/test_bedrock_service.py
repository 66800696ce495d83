"""octo/llm/wires/bedrock.py, octo/llm/aws.py before a service as strict as that of AWS: all histories, all faults."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import BadRequest, NotAnAnswer, ProviderError, RateLimited, Truncated
from octo.llm.aws import Chain, Frames, Keys, Signer
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Delta,
    File,
    NamedTool,
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
from octo.llm.model import HttpModel
from octo.llm.reading import UNREADABLE_IN_A_ROW
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint
from octo.llm.wires import bedrock
from octo.values import Json
from soaking import examples
from vendor import faults
from vendor.anthropic import Redacted, Reply, call, reply
from vendor.bedrock import (
    KEYS,
    REGION,
    BedrockServer,
    corrupted,
    error,
    event,
    exception,
    exception_after,
    frame,
    redact,
    sign,
    unknown_frame,
)
from vendor.server import Answer, Request

EXAMPLES = examples(few=150, all=20_000)
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
MODELS = [CLAUDE, "amazon.nova-pro-v1:0", "meta.llama3-3-70b-instruct-v1:0", "anthropic.claude-3-haiku-20240307-v1:0"]
LOOKUP = ToolDefinition("lookup", "Find it", {"type": "object", "properties": {"n": {"type": "number"}}})
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


class Waits(list[float]):
    """Stands for the clock: remembers how long it was asked to wait, and does not."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def ignore(_: Delta) -> None:
    """A listener that does not care."""


def model(url: str, transport: Transport, **more: Json) -> HttpModel:
    credentials = Credentials("aws_bedrock", url, "authorization")
    return HttpModel(Endpoint(credentials, CLAUDE, **more), transport, "models")


def signing(waits: Waits | None = None) -> Transport:
    signer = Signer(REGION, Keys(KEYS.id, KEYS.secret), Chain({}))
    return Transport({}, mask=signer.mask, sign=signer, sleep=Waits() if waits is None else waits, random=lambda: 1.0)


async def ask(
    script: Sequence[Reply | Answer], waits: Waits | None = None, *, stream: bool = True
) -> tuple[list[Delta], ChatResponse]:
    """Make one call; gives what a listener heard, and the answer."""
    deltas: list[Delta] = []

    async def listen(delta: Delta) -> None:
        deltas.append(delta)

    with BedrockServer(script) as server:
        async with signing(waits) as transport:
            request = ChatRequest((user("hello"),), tools=(LOOKUP,))
            answer = await model(server.url, transport).complete(
                request, session={}, on_delta=listen if stream else None
            )
    assert server.refusals == []
    return deltas, answer


async def failure(script: Sequence[Reply | Answer], *, stream: bool = True) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(script, stream=stream)
    return caught.value


def texts(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


# ---------------------------------------------------------------- a conversation


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_with_tools_and_reasoning_is_taken_turn_by_turn(stream: bool):
    script = [
        reply("I look.", thinking=["first ", Redacted()], calls=[call("lookup", {"n": 1}), call("lookup", {"n": 2})]),
        reply(thinking="then\n", calls=[call("lookup", {"n": 3})]),
        reply("done"),
        reply("again"),
    ]
    turns: list[ChatMessage] = [user("", File("application/pdf", b"%PDF-1", "a.pdf"), File("image/jpeg", PNG))]
    with BedrockServer(script) as server:
        async with signing() as transport:
            ask = model(server.url, transport, thinking="budgeted", thinking_budget=2048)
            for _ in script:
                request = ChatRequest(tuple(turns), system="be brief", tools=(LOOKUP,), max_tokens=9000, cache=True)
                answer = await ask.complete(request, session={}, on_delta=ignore if stream else None)
                turns.append(answer.message)
                results = tuple(ToolResult(one.id, one.name, "", is_error=True) for one in answer.calls)
                turns.append(ChatMessage("tool", results) if results else user("and now?"))

    assert (answer.text, server.refusals) == ("again", [])
    operation = "converse-stream" if stream else "converse"
    path = f"/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/{operation}"
    assert [request.path for request in server.requests] == [path] * 4
    assert len({request.headers["authorization"] for request in server.requests}) == 4


async def test_the_prompt_up_to_the_last_cache_point_is_the_same_in_every_run():
    bodies = []
    for question in ("one", "another"):
        request = ChatRequest((user(question),), system="be brief", tools=(LOOKUP,), cache=True)
        endpoint = Endpoint(Credentials("aws_bedrock", "http://x", "authorization"), CLAUDE)
        bodies.append(bedrock.encode(request, endpoint, stream=True).body.partition(b'"messages"')[0])

    assert bodies[0] == bodies[1]
    assert bodies[0].count(b"cachePoint") == 2


# ---------------------------------------------------------------- answers

RICH = reply(
    "It is — 7 😀",
    thinking="let me see",
    calls=[call("lookup", {"n": 1, "é": ["x"]}, "call_1"), call("lookup", "", "call_2")],
    usage={"cacheReadInputTokens": 4, "cacheWriteInputTokens": 2},
)


async def test_a_streamed_answer_equals_one_that_was_not():
    _, whole = await ask([RICH], stream=False)
    deltas, streamed = await ask([RICH])

    assert streamed == whole
    assert streamed.usage == Usage(10, 5, None, 4, 2, prompt_tokens=16)
    assert streamed.text == texts(deltas) == "It is — 7 😀"


WIRE_FAULTS = {
    "single bytes": [faults.rechunk(1)],
    "odd cuts": [faults.rechunk(1, 7, 64, 3)],
    "unknown event": [unknown_frame(), faults.rechunk(5)],
    "an event of a later kind": [faults.insert(2, frame(b"{}", message_type="later"))],
    "an event that is no JSON": [faults.insert(2, frame(b"{", message_type="event", event_type="metadata"))],
    "a second start": [faults.duplicate(0)],
    "compressed": [faults.gzipped(), faults.rechunk(11)],
    "a connection that is not closed": [faults.cut(99, "hang")],
    "a connection that breaks after the end": [faults.cut(99, "reset")],
    "an end that is damaged": [corrupted(-1), faults.cut(99)],
    "no end but its mark": [lambda answer: replace(answer, pieces=answer.pieces[:-1])],
}


@pytest.mark.parametrize("spoil", WIRE_FAULTS.values(), ids=WIRE_FAULTS)
async def test_what_does_not_matter_on_the_way(spoil: list[faults.Fault]):
    waits = Waits()
    _, expected = await ask([RICH])
    deltas, response = await ask([replace(RICH, faults=tuple(spoil))], waits)

    same = replace(expected, message=response.message, usage=response.usage)
    assert (response, waits) == (same, [])
    assert [part for part in response.message.parts if not isinstance(part, Reasoning)] == [
        part for part in expected.message.parts if not isinstance(part, Reasoning)
    ]
    assert response.text == texts(deltas) == expected.text


PIECES = BedrockServer([]).render(RICH, Request("POST", "/model/m/converse-stream", "", {}, b"", 1)).pieces


@given(cuts=st.lists(st.integers(0, len(b"".join(PIECES))), max_size=30))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_cut_of_a_stream_gives_the_same_deltas(cuts: list[int]):
    stream = b"".join(PIECES)
    places = [0, *sorted(cuts), len(stream)]

    assert decoded(stream[a:b] for a, b in pairwise(places)) == decoded(PIECES)


def decoded(chunks: Sequence[bytes]) -> tuple[list[Delta], ChatResponse]:
    import json

    framing, decoder = Frames(), bedrock.decoder(ChatRequest(()))
    events = [json.loads(data) for chunk in chunks for data in framing.feed(chunk)]
    return [delta for one in events for delta in decoder.feed(one)], decoder.finish()


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("after", range(len(PIECES) - 1))
async def test_a_cut_anywhere_before_the_end_mark_is_tried_again(after: int):
    """Nothing of the failed try is in the answer, and no call of it counts."""
    waits = Waits()
    deltas, answer = await ask([replace(RICH, faults=(faults.cut(after),)), reply("second")], waits)

    if after == len(PIECES) - 2:
        last = max(place for place, delta in enumerate(deltas) if isinstance(delta, ToolReady))
        assert last < len(deltas) - 1
    assert (answer.text, answer.calls, waits) == ("second", (), [1.0])
    (again,) = (place for place, delta in enumerate(deltas) if isinstance(delta, Retry))
    assert deltas[again + 1 :] == [TextDelta("second")]


IN_STREAM = {
    "throttled at once": exception_after(0),
    "throttled after three events": exception_after(3),
    "throttled after the calls": exception_after(len(PIECES) - 2),
    "out of service": exception_after(2, "serviceUnavailableException"),
    "the model broke off": exception_after(2, "modelStreamErrorException"),
    "a fault inside": exception_after(2, "internalServerException"),
    "a bit that changed": corrupted(3),
    "a length that changed": corrupted(3, 1),
    "a reset": faults.reset(3),
    "an error that is no exception": lambda answer: replace(
        answer,
        pieces=(answer.pieces[0], frame(b"", message_type="error", error_code="InternalError", error_message="no")),
    ),
}


@pytest.mark.parametrize("spoil", IN_STREAM.values(), ids=IN_STREAM)
async def test_a_failure_inside_the_stream_is_tried_again(spoil: faults.Fault):
    waits = Waits()
    deltas, answer = await ask([replace(RICH, faults=(spoil,)), reply("second")], waits)

    assert (answer.text, waits) == ("second", [1.0])
    assert texts(deltas).endswith("second")


async def test_a_request_that_the_model_refuses_inside_the_stream_is_not_tried_again():
    found = await failure([reply("x", faults=(exception_after(1, "validationException", "no such thing"),))])

    assert type(found) is BadRequest
    assert str(found) == 'llm-bedrock stream: connector "models": status 400 in the answer: no such thing'


async def test_damage_that_does_not_end_is_told_truthfully():
    found = await failure([reply("x", faults=(corrupted(1),))] * 4)

    assert type(found) is Truncated
    assert ": status 200, but a frame of it is damaged: checksum mismatch: expected 0x" in str(found)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (faults.html(200), "expected JSON, found an HTML page: 502 Bad Gateway"),
        (
            Answer(200, (("content-type", "text/plain"),), (b"welcome to this proxy",)),
            "expected a stream of events, found `welcome to this proxy`",
        ),
        (
            Answer(200, (("content-type", "application/vnd.amazon.eventstream"),), (event("new", {}),) * 2),
            None,
        ),
        (
            Answer(200, (), (frame(b"{", message_type="event", event_type="metadata"),) * UNREADABLE_IN_A_ROW),
            f"{UNREADABLE_IN_A_ROW} unreadable events in a row, the last: expected JSON",
        ),
    ],
    ids=["page", "words", "no end", "unreadable"],
)
async def test_what_is_no_answer_is_told_as_what_it_is(answer: Answer, text: str | None):
    found = await failure([answer] * 4)

    assert type(found) is (Truncated if text is None else NotAnAnswer)
    assert (text or "the answer broke off before its end") in str(found)


@pytest.mark.parametrize(
    ("first", "waits"),
    [
        (error(429), [1.0]),
        (error(429, retry_after="7"), [7.0]),
        (error(503), [1.0]),
        (error(500), [1.0]),
        (error(408), [1.0]),
        (faults.html(502), [1.0]),
    ],
    ids=["429", "429 with a wait", "503", "500", "408", "page"],
)
async def test_a_failed_call_is_tried_again_with_a_signature_of_its_own(first: Answer, waits: list[float]):
    found = Waits()
    _, answer = await ask([first, reply("second")], found)

    assert (answer.text, found) == ("second", waits)


async def test_an_error_carries_the_words_and_the_request_id_of_the_vendor():
    found = await failure([error(400, "Input is too long for requested model.", x_amzn_requestid="req-7")])

    assert str(found) == ('llm-bedrock stream: connector "models": status 400: Input is too long for requested model.')
    assert found.request_id == "req-7"


async def test_words_under_a_capital_letter_count_too():
    body = b'{"Message":"Authentication failed: Please make sure your API Key is valid."}'
    found = await failure([Answer(403, (("content-type", "application/json"),), (body,))])

    assert "status 403: Authentication failed: Please make sure your API Key is valid." in str(found)


async def test_a_limit_that_stays_is_the_error():
    found = await failure([error(429, "Too many tokens")] * 4)

    assert (type(found), found.status) == (RateLimited, 429)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_keys_show_in_no_error_and_in_no_log(stream: bool, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "octo")
    keys = Keys("AKIDCANARY", "canary/secret+key", "canary-session-token")
    signer = Signer(REGION, keys, Chain({}))
    with BedrockServer([]) as server:
        async with Transport({}, mask=signer.mask, sign=signer) as transport:
            with pytest.raises(ProviderError) as caught:
                request = ChatRequest((user("x"),))
                await model(server.url, transport).complete(request, session={}, on_delta=ignore if stream else None)

    shown = f"{caught.value} {caught.value!r} {caught.value.hint} {caplog.text} {signer!r} {keys!r}"
    assert not [secret for secret in (keys.secret, keys.token) if secret in shown]


async def test_a_wrong_signature_is_told_without_the_keys_that_the_vendor_quotes():
    keys = Keys(KEYS.id, "another secret", "canary-session-token")
    signer = Signer(REGION, keys, Chain({}))
    with BedrockServer([], keys=replace(KEYS, token=keys.token)) as server:
        async with Transport({}, mask=signer.mask, sign=signer) as transport:
            with pytest.raises(ProviderError) as caught:
                await model(server.url, transport).complete(ChatRequest((user("x"),)), session={})

    assert "The request signature we calculated does not match" in str(caught.value)
    assert "x-amz-security-token:***" in str(caught.value)


def test_an_exception_frame_says_so():
    (data,) = Frames().feed(exception("throttlingException", "slow down"))

    assert data == '{"exception":"throttlingException","payload":{"message": "slow down"}}'


# ---------------------------------------------------------------- whatever comes in, the vendor takes it

TEXTS = st.sampled_from(["", " ", "\n", "x", "x \n", "\ud83d", "\0"])
IDS = st.sampled_from(["", "a", "b", "a b", "ü", "x" * 70, "x" * 71])
NAMES = st.sampled_from(["t", "lookup", " ", "look.up", "n" * 70])
ARGUMENTS = st.sampled_from(["", "{}", "[]", '{"a": 1}', '{"a":', "null", '{"a": NaN}'])
SIGNED = [Reasoning(text, {"wire": "bedrock", "signature": sign(text)}) for text in ("hm", " hm \n", "")]
REASONING = st.one_of(
    st.sampled_from(SIGNED),
    st.just(Reasoning("", {"wire": "bedrock", "data": redact()})),
    st.builds(
        Reasoning,
        TEXTS,
        st.sampled_from([None, {"wire": "bedrock"}, {"wire": "anthropic", "signature": "x"}, {"wire": "gemini"}]),
    ),
)
FILES = st.builds(
    File,
    st.sampled_from(["image/jpeg", "application/pdf", "text/plain", "text/csv"]),
    st.sampled_from([PNG, b"%PDF-1", b"a,b"]),
    st.sampled_from(["", "a.pdf", "a  b", "été", "a-pdf", "a-pdf (2)"]),
).filter(lambda file: file.mime_type in {"text/plain", "text/csv"} or file.data in {PNG, b"%PDF-1"})


def turns_of(role: str, parts: st.SearchStrategy[Part]) -> st.SearchStrategy[ChatMessage]:
    return st.lists(parts, max_size=3).map(lambda found: ChatMessage(role, tuple(found)))  # type: ignore[arg-type]  # one of three


HISTORIES = st.lists(
    st.one_of(
        turns_of("user", st.one_of(st.builds(Text, TEXTS), FILES)),
        turns_of(
            "assistant",
            st.one_of(st.builds(Text, TEXTS), st.builds(ToolCall, IDS, NAMES, ARGUMENTS), REASONING, FILES),
        ),
        turns_of("tool", st.builds(ToolResult, IDS, NAMES, TEXTS, st.booleans())),
    ),
    max_size=8,
)
REQUESTS = st.builds(
    ChatRequest,
    HISTORIES.map(tuple),
    system=st.sampled_from(["", " ", "be brief"]),
    tools=st.sampled_from([(), (LOOKUP,), (LOOKUP, ToolDefinition("t", " ", {}))]),
    tool_choice=st.sampled_from(["auto", "any", "none", NamedTool("lookup")]),
    model=st.sampled_from(MODELS),
    max_tokens=st.sampled_from([None, 100, 9000]),
    temperature=st.sampled_from([None, 0.5]),
    reasoning_effort=st.sampled_from([None, "none", "high"]),
    cache=st.booleans(),
)
ENDPOINTS = st.builds(
    Endpoint,
    st.builds(Credentials, st.just("aws_bedrock"), st.just("http://x"), st.just("authorization"), st.just("k")),
    st.just(CLAUDE),
    thinking=st.sampled_from(["off", "adaptive", "budgeted"]),
    thinking_budget=st.just(1024),
)


@given(request=REQUESTS, endpoint=ENDPOINTS, stream=st.booleans(), with_question=st.booleans())
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_vendor_takes_every_history(request: ChatRequest, endpoint: Endpoint, stream: bool, with_question: bool):
    """Random, broken off anywhere, and taken over from other vendors; the last turn may be one of any role."""
    from octo.llm import media

    messages = media.with_true_types(request.messages, bedrock.MEDIA_TYPES)
    request = replace(request, messages=(*messages, user("go on")) if with_question else messages)
    try:
        call = bedrock.encode(request, endpoint, stream=stream)
    except BadRequest as error:
        assert str(error) == "the conversation has no user turn"
        return
    path = call.url.removeprefix("http://x")
    sent = Request("POST", path, "", {name.lower(): value for name, value in call.headers}, call.body, 1)

    assert BedrockServer([]).refuse(sent) is None, sent.refusal
