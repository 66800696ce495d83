"""octo/llm/wires/responses.py before a server as strict as OpenAI's: every history, every way that an answer comes."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.responses.response_create_params import ResponseCreateParams

from histories import TOOLS, requests
from octo.errors import BadRequest, ProviderError
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Delta,
    Reasoning,
    Retry,
    TextDelta,
    ToolReady,
    ToolResult,
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
from vendor.responses import Refusal, Reply, ResponsesServer, call, error, error_event, failed_event, reply, thinking
from vendor.responses_rules import encrypt
from vendor.server import Answer, Request
from vendor.typed import mismatches

EXAMPLES = examples(few=100, all=20_000)


async def instantly(_: float) -> None:
    """Waiting that takes no time."""


async def ignore(_: Delta) -> None:
    """A listener that does not care."""


def model(url: str, transport: Transport, **more: Json) -> HttpModel:
    credentials = Credentials("openai", url, "authorization", api_key="secret-key")
    return HttpModel(Endpoint(credentials, **{"model": "gpt-5.4", **more}), transport)


async def ask(script: Sequence[Reply | Answer], *, stream: bool = True) -> tuple[list[Delta], ChatResponse]:
    """Make one call; gives what a listener heard, and the answer."""
    deltas: list[Delta] = []

    async def listen(delta: Delta) -> None:
        deltas.append(delta)

    with ResponsesServer(script) as server:
        async with Transport({}, sleep=instantly) as transport:
            answer = await model(server.url, transport).complete(
                ChatRequest((user("hello"),), tools=TOOLS), session={}, on_delta=listen if stream else None
            )
    assert server.refusals == []
    return deltas, answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_with_tools_and_reasoning_is_taken_turn_by_turn(stream: bool):
    script = [
        reply(thinking("first"), "I look.", thinking("so", "then"), calls=[call("t", {"n": 1}), call("t", {"n": 2})]),
        reply(thinking(), calls=[call("t", {"n": 3})]),
        reply("done"),
        reply("again"),
    ]
    turns: list[ChatMessage] = [user("go")]
    with ResponsesServer(script, api_key="secret-key") as server:
        async with Transport({}) as transport:
            for _ in script:
                answer = await model(server.url, transport, reasoning="low").complete(
                    ChatRequest(tuple(turns), system="be brief", tools=TOOLS, max_tokens=99, cache=True, cache_key="k"),
                    session={},
                    on_delta=ignore if stream else None,
                )
                turns.append(answer.message)
                results = tuple(ToolResult(one.id, one.name, "", is_error=True) for one in answer.calls)
                turns.append(ChatMessage("tool", results) if results else user("and now?"))

    assert (answer.text, server.refusals) == ("again", [])
    assert [request.path for request in server.requests] == ["/responses"] * 4


# ---------------------------------------------------------------- answers

RICH = reply(
    thinking("let me", "see — 😀"),
    "It is — 7 😀",
    calls=[call("lookup", {"n": 1, "é": ["x"]}, "call_1"), call("t", "", "call_2")],
    usage={"input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2}},
)


def known(answer: ChatResponse) -> ChatResponse:
    """An answer without what a server makes anew for each, which are the marks of reasoning."""
    parts = (replace(part, replay=None) if isinstance(part, Reasoning) else part for part in answer.message.parts)
    return replace(answer, message=replace(answer.message, parts=tuple(parts)))


@pytest.mark.parametrize(
    "script",
    [RICH, reply("x", Refusal("no")), reply("x", cut_by="max_output_tokens"), reply(usage={"input_tokens": 0})],
    ids=["rich", "refused", "cut off", "empty"],
)
async def test_a_streamed_answer_equals_one_that_was_not(script: Reply):
    _, whole = await ask([script], stream=False)
    deltas, streamed = await ask([script])

    assert known(streamed) == known(whole)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) in (streamed.text, "x")
    assert [delta.call for delta in deltas if isinstance(delta, ToolReady)] == list(streamed.calls)


async def test_usage_is_counted():
    _, answer = await ask([RICH])

    assert answer.usage == Usage(10, 5, thinking_tokens=2, cached_tokens=4, prompt_tokens=10)


WIRE_FAULTS = {
    "single bytes": [faults.rechunk(1)],
    "odd cuts": [faults.rechunk(1, 7, 64, 3)],
    "CRLF": [faults.crlf(), faults.rechunk(5)],
    "CR": [faults.line_ends("\r"), faults.rechunk(1)],
    "comments": [faults.comment(0), faults.comment(3)],
    "unknown event": [faults.unknown_event()],
    "an announcement twice": [faults.duplicate(2)],
    "the end of an item twice": [faults.duplicate(-2)],
    "compressed": [faults.gzipped(), faults.rechunk(11)],
    "a connection that is not closed": [faults.cut(99, "hang")],
    "a connection that breaks after the end": [faults.cut(99, "reset")],
}


@pytest.mark.parametrize("spoil", WIRE_FAULTS.values(), ids=WIRE_FAULTS)
async def test_what_does_not_matter_on_the_way(spoil: list[faults.Fault]):
    deltas, answer = await ask([RICH])
    spoilt_deltas, spoilt = await ask([replace(RICH, faults=tuple(spoil))])

    assert (spoilt_deltas, known(spoilt)) == (deltas, known(answer))


BROKEN = {
    "error first": error_event(0),
    "error after some deltas": error_event(6),
    "failed after some deltas": failed_event(8),
    "a limit": error_event(4, "slow down", "rate_limit_exceeded"),
    "connection reset": faults.reset(5),
    "connection closed": faults.cut(5, "close"),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
async def test_a_stream_that_fails_is_tried_again_and_nothing_of_it_stays(fault: faults.Fault):
    expected = await ask([RICH])
    deltas, answer = await ask([reply("half an answer", calls=[call("t", {"n": 1})], faults=[fault]), RICH])

    (place,) = (place for place, delta in enumerate(deltas) if isinstance(delta, Retry))
    assert (deltas[place + 1 :], known(answer)) == (expected[0], known(expected[1]))


EVENTS = 12
"""Of the stream below, before the one that ends it."""


@pytest.mark.parametrize("after", range(EVENTS + 1))
async def test_a_stream_that_is_cut_at_any_event_is_no_answer(after: int):
    deltas, answer = await ask([reply("half", calls=[call("t", "{}")], faults=[faults.cut(after)]), reply("done")])

    assert answer.text == "done"
    assert sum(isinstance(delta, Retry) for delta in deltas) == 1


async def test_the_stream_that_is_cut_has_so_many_events():
    _, answer = await ask([reply("half", calls=[call("t", "{}")], faults=[faults.cut(EVENTS + 1)])])

    assert answer.text == "half"


async def test_an_error_that_cannot_be_mended_is_not_tried_again():
    with pytest.raises(BadRequest) as caught:
        await ask([reply("half", faults=[error_event(4, "no such tool", "invalid_prompt")])])

    assert str(caught.value) == "llm-openai stream: status 400 in the answer: no such tool"


async def test_after_three_more_tries_the_last_failure_is_the_error():
    script = [reply("half", faults=[failed_event(4, f"try {number}")]) for number in range(4)]

    with pytest.raises(ProviderError, match="llm-openai stream: status 500 in the answer: try 3"):
        await ask(script)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_call_that_the_cap_cut_off_says_so(stream: bool):
    _, answer = await ask([reply(calls=[call("t", '{"n": 1')], cut_by="max_output_tokens")], stream=stream)

    assert (answer.stop_reason, answer.calls[0].arguments) == ("max_tokens", '{"n": 1')


# ---------------------------------------------------------------- requests in another shape

ASKED = ChatRequest((user("hello"),), max_tokens=99, temperature=0.5, reasoning_effort="low", cache=True, cache_key="k")


@pytest.mark.parametrize(
    "rejects",
    [["temperature"], ["prompt_cache_key"], ["reasoning.summary"], ["temperature", "prompt_cache_key"]],
    ids=["temperature", "cache key", "summary", "two things"],
)
async def test_what_a_server_refuses_is_left_out_for_the_rest_of_the_session(rejects: list[str]):
    session: dict[object, Json] = {}
    with ResponsesServer(lambda _: reply("fine"), rejects=rejects) as server:
        async with Transport({}) as transport:
            ask = model(server.url, transport)
            request = replace(ASKED, reasoning_effort=None if "temperature" in rejects else "low")
            answers = [await ask.complete(request, session=session, on_delta=ignore) for _ in range(2)]

    assert [answer.text for answer in answers] == ["fine", "fine"]
    assert len(server.requests) == len(rejects) + 2


async def test_a_refused_summary_is_not_asked_for_again_in_any_session():
    refusal = error(403, "Your organization must be verified to generate reasoning summaries.")
    with ResponsesServer([refusal, reply("one"), reply("two"), reply("three")]) as server:
        async with Transport({}) as transport:
            ask = model(server.url, transport)
            await ask.complete(ASKED, session={})
            await ask.complete(ASKED, session={})
            await ask.complete(replace(ASKED, model="gpt-5.5"), session={})

    sent = [(request.json["model"], "summary" in request.json["reasoning"]) for request in server.requests]
    assert sent == [("gpt-5.4", True), ("gpt-5.4", False), ("gpt-5.4", False), ("gpt-5.5", True)]


async def test_reasoning_of_another_account_does_not_brick_a_thread():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypt("x", "them")}
    thought = Reasoning("so", {"wire": "responses", "dialect": "openai", "item": item})
    turns = (user("x"), ChatMessage("assistant", (thought,)), user("y"))
    with ResponsesServer([reply("fine")]) as server:
        async with Transport({}) as transport:
            answer = await model(server.url, transport).complete(ChatRequest(turns), session={})

    assert answer.text == "fine"
    assert ["include" in request.json for request in server.requests] == [True, False]


# ---------------------------------------------------------------- whatever comes in, the vendor takes it

MARK = {"wire": "responses", "dialect": "openai"}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypt("x")}
OWN = [
    MARK,
    {**MARK, "phase": "commentary"},
    {**MARK, "item": ITEM},
    {**MARK, "item": {**ITEM, "id": "rs_2", "summary": [{"type": "summary_text", "text": "so"}]}},
]


class Strict(Transport):
    """Stands for the network: hands each call to the vendor's rules and to its published types at once."""

    def __init__(self) -> None:
        super().__init__({})
        self._server = ResponsesServer([])
        self.refusals: list[str] = []

    async def send(self, call: HttpCall, *_: object) -> ChatResponse:  # type: ignore[override]  # of one kind only
        headers = {name.lower(): value for name, value in call.headers}
        request = Request("POST", "/v1/responses", "", headers, call.body, 1)
        if self._server.refuse(request) is not None:
            self.refusals.append(str(request.refusal))
        self.refusals += mismatches(json.loads(call.body), ResponseCreateParams)
        return ChatResponse(ChatMessage("assistant", ()), "end_turn")


@given(
    request=requests(OWN),
    stream=st.booleans(),
    refused=st.sampled_from([(), ("temperature", "reasoning.summary"), ("include", "prompt_cache_key")]),
    name=st.sampled_from(["gpt-5.4", "my-deployment"]),
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_vendor_takes_every_conversation(request: ChatRequest, stream: bool, refused: tuple[str, ...], name: str):
    strict = Strict()
    ask = model("http://unused", strict, model=name, refused=frozenset(refused))
    asyncio.run(ask.complete(request, session={}, on_delta=ignore if stream else None))

    assert strict.refusals == []


async def test_the_published_types_know_an_image():
    strict = Strict()
    await model("http://unused", strict).complete(ChatRequest((user("a cat"),), output_type="image"), session={})

    assert strict.refusals == []


TEXTS = st.sampled_from(["x", "It is — 7 😀", "\n", "a\r\nb", "data: x\n\n"])
REPLIES = st.builds(
    lambda items, calls, cut_by, fragment: reply(*items, calls=calls, cut_by=cut_by, fragment=fragment),
    st.lists(st.one_of(TEXTS, st.builds(thinking, TEXTS, TEXTS), st.builds(Refusal, TEXTS)), max_size=3),
    st.lists(
        st.builds(call, st.sampled_from(["t", "lookup"]), st.sampled_from([{}, {"é": "😀"}, '{"a', ""])), max_size=3
    ),
    st.sampled_from([None, "max_output_tokens", "content_filter"]),
    st.integers(1, 9),
)


@given(
    answer=REPLIES,
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_cut_of_a_stream_gives_the_same_events_and_the_answer_that_was_not_streamed(
    answer: Reply, sizes: list[int], end: str
):
    from octo.llm.framing import EventFraming
    from octo.llm.wires.responses import Responses

    server = ResponsesServer([])
    request = Request("POST", "/responses", "", {}, b'{"model": "m", "stream": true}', 1)
    streamed = server.render(answer, request)
    completed = json.loads(streamed.pieces[-1].decode().partition("data: ")[2])["response"]

    def read(pieces: Sequence[bytes]) -> tuple[list[Delta], ChatResponse]:
        framing, decoder = EventFraming(), Responses("openai").decoder()
        events = [data for piece in pieces for data in framing.feed(piece)] + framing.finish()
        return [delta for data in events for delta in decoder.feed(json.loads(data))], decoder.finish()

    spoilt = faults.rechunk(*sizes)(faults.line_ends(end)(streamed))  # type: ignore[arg-type]  # one of three
    whole = Responses("openai").decoder()
    whole.feed(completed)

    assert read(spoilt.pieces) == read(streamed.pieces)
    assert read(streamed.pieces)[1] == whole.finish()
