"""octo/llm/wires/scripted.py: a model whose replies are written down."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import (
    AuthenticationFailed,
    BadRequest,
    ContextTooLong,
    ExpressionError,
    ProviderError,
    RateLimited,
)
from octo.llm.chat import (
    ChatMessage,
    ChatModel,
    ChatRequest,
    ChatResponse,
    Delta,
    File,
    Reasoning,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolDefinition,
    ToolInput,
    ToolReady,
    ToolResult,
    ToolStart,
    Usage,
    user,
)
from octo.llm.wires.scripted import Call, Failure, Reply, Rule, ScriptedModel

ASK = ChatRequest((user("hello"),))


async def ask(model: ChatModel, session: Any = None, request: ChatRequest = ASK) -> ChatResponse:
    return await model.complete(request, session={} if session is None else session)


async def listen(model: ChatModel, request: ChatRequest = ASK) -> tuple[ChatResponse, list[Delta]]:
    heard: list[Delta] = []

    async def on_delta(delta: Delta) -> None:
        heard.append(delta)

    return await model.complete(request, session={}, on_delta=on_delta), heard


# ---------------------------------------------------------------- the answer


async def test_a_reply_becomes_the_assistant_turn():
    picture = File("image/png", b"png", "p.png")
    model = ScriptedModel([Reply("hi", (Call("find", '{"id":7}'),), "hm", (picture,))])

    response = await ask(model)

    call = ToolCall("call_1", "find", '{"id":7}')
    turn = ChatMessage("assistant", (Reasoning("hm", {"wire": "scripted"}), Text("hi"), call, picture))
    usage = Usage(input_tokens=2, output_tokens=3, thinking_tokens=1, prompt_tokens=2)
    assert response == ChatResponse(turn, "tool_use", "scripted", usage, asked="scripted")


async def test_an_empty_reply_is_an_empty_turn():
    assert (await ask(ScriptedModel([Reply()]))).message == ChatMessage("assistant", ())


@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        (Reply("hi"), "end_turn"),
        (Reply(calls=(Call("find"),)), "tool_use"),
        (Reply("hi", calls=(Call("find"),), stop="max_tokens"), "max_tokens"),
        (Reply("no", stop="refusal"), "refusal"),
    ],
    ids=["text", "calls", "cut off", "refused"],
)
async def test_the_stop_reason_follows_the_reply(reply: Reply, stop: str):
    assert (await ask(ScriptedModel([reply]))).stop_reason == stop


async def test_the_model_of_the_request_is_the_one_that_served():
    model = ScriptedModel([Reply("a"), Reply("b")], model="fake-1")
    session: dict[object, Any] = {}

    assert (await ask(model, session)).model == "fake-1"
    assert (await ask(model, session, ChatRequest((user("x"),), model="fake-2"))).model == "fake-2"


def test_every_media_type_is_read():
    assert ScriptedModel([Reply()]).media_types is None


# ---------------------------------------------------------------- turns and runs


async def test_turns_answer_in_order_and_each_run_begins_at_the_first():
    model = ScriptedModel([Reply("one"), Reply("two")])
    first: dict[object, Any] = {}
    second: dict[object, Any] = {}

    texts = [(await ask(model, session)).text for session in (first, second, first, second)]

    assert texts == ["one", "one", "two", "two"]


async def test_two_models_share_a_run_but_not_their_turns():
    one, two = ScriptedModel([Reply("a"), Reply("b")]), ScriptedModel([Reply("a"), Reply("b")])
    session: dict[object, Any] = {}

    assert [(await ask(model, session)).text for model in (one, two, one)] == ["a", "a", "b"]


async def test_concurrent_calls_get_a_turn_each():
    model = ScriptedModel([Reply("one", delay=0.02), Reply("two"), Reply("three", delay=0.01)])
    session: dict[object, Any] = {}

    responses = await asyncio.gather(*(ask(model, session) for _ in range(3)))

    assert [response.text for response in responses] == ["one", "two", "three"]


async def test_calls_are_numbered_over_the_run():
    model = ScriptedModel([Reply(calls=(Call("a"), Call("b", id="mine"))), Reply(calls=(Call("a"),))])
    session: dict[object, Any] = {}

    ids = [[call.id for call in (await ask(model, session)).calls] for _ in range(2)]

    assert ids == [["call_1", "mine"], ["call_3"]]


async def test_used_up_turns_fail_the_call_and_show_the_final_message():
    model = ScriptedModel([Reply("one"), Reply("two")])
    session: dict[object, Any] = {}
    await ask(model, session)
    await ask(model, session)

    result = ToolResult("call_1", "find", "nothing", is_error=True)
    request = ChatRequest((user("hello"), ChatMessage("tool", (result,))))
    with pytest.raises(ProviderError) as caught:
        await ask(model, session, request)

    assert str(caught.value) == (
        "llm-scripted complete: no scripted reply is left: 2 calls were made before this one, whose final message is "
        '{"results":[{"id":"call_1","isError":true,"name":"find","text":"nothing"}],"role":"tool"}'
    )
    assert caught.value.hint == "add a reply to `turns`, or set `onExhausted: repeat`"
    assert not caught.value.retryable


async def test_a_long_final_message_is_cut():
    model = ScriptedModel([Reply("one")])
    session: dict[object, Any] = {}
    await ask(model, session)

    with pytest.raises(ProviderError, match="1 call was made before this one") as caught:
        await ask(model, session, ChatRequest((user("x" * 5000),)))

    assert len(str(caught.value)) < 700
    assert str(caught.value).endswith("x…")


async def test_used_up_turns_can_repeat_the_last():
    model = ScriptedModel([Reply("one"), Reply("two")], on_exhausted="repeat")
    session: dict[object, Any] = {}

    assert [(await ask(model, session)).text for _ in range(4)] == ["one", "two", "two", "two"]


async def test_without_turns_there_is_nothing_to_repeat():
    model = ScriptedModel(rules=[Rule(lambda _: False, Reply("never"))], on_exhausted="repeat")

    with pytest.raises(ProviderError, match="no scripted reply is left: 0 calls were made"):
        await ask(model)


# ---------------------------------------------------------------- rules


async def test_rules_are_asked_before_turns_and_use_none_of_them():
    greeted = Rule(lambda view: view["last"]["text"] == "hello", Reply("hi"))  # type: ignore[index]  # a message
    model = ScriptedModel([Reply("one"), Reply("two")], [greeted])
    session: dict[object, Any] = {}
    other = ChatRequest((user("go"),))

    texts = [(await ask(model, session, request)).text for request in (ASK, other, ASK, other)]

    assert texts == ["hi", "one", "hi", "two"]


async def test_a_rule_sees_the_request():
    seen: list[Any] = []
    model = ScriptedModel([Reply("one")], [Rule(lambda view: bool(seen.append(view)), Reply())])
    call, broken = ToolCall("c1", "find", '{"id": 7}'), ToolCall("c2", "find", '{"id"')
    request = ChatRequest(
        (
            user("look", File("image/png", b"..", "p.png")),
            ChatMessage("assistant", (Reasoning("hm"), Text("wait"), call, broken)),
            ChatMessage("tool", (ToolResult("c1", "find", "found"), ToolResult("c2", "find", "bad", is_error=True))),
        ),
        system="be brief",
        tools=(ToolDefinition("find", "Finds"),),
    )

    await ask(model, {}, request)

    results = [
        {"name": "find", "id": "c1", "text": "found", "isError": False},
        {"name": "find", "id": "c2", "text": "bad", "isError": True},
    ]
    last = {"role": "tool", "text": "", "calls": [], "results": results, "files": []}
    assert seen == [
        {
            "system": "be brief",
            "messages": [
                {
                    "role": "user",
                    "text": "look",
                    "calls": [],
                    "results": [],
                    "files": [{"mimeType": "image/png", "name": "p.png"}],
                },
                {
                    "role": "assistant",
                    "text": "wait",
                    "calls": [
                        {"name": "find", "args": {"id": 7.0}, "id": "c1"},
                        {"name": "find", "args": '{"id"', "id": "c2"},
                    ],
                    "results": [],
                    "files": [],
                },
                last,
            ],
            "last": last,
            "tools": ["find"],
            "call": 1,
        }
    ]


async def test_a_rule_knows_the_number_of_the_call():
    model = ScriptedModel([Reply("turn")] * 3, [Rule(lambda view: view["call"] == 2, Reply("rule"))])
    session: dict[object, Any] = {}

    assert [(await ask(model, session)).text for _ in range(3)] == ["turn", "rule", "turn"]


async def test_a_rule_that_cannot_be_evaluated_fails_the_call():
    def fail(_: object) -> bool:
        raise ExpressionError("no such key: a")

    model = ScriptedModel(rules=[Rule(lambda _: False, Reply()), Rule(fail, Reply())])

    with pytest.raises(ProviderError) as caught:
        await ask(model)
    assert str(caught.value) == "llm-scripted complete: rules[1].when: evaluate expression: no such key: a"


async def test_a_rule_must_be_true_or_false():
    with pytest.raises(ProviderError) as caught:
        await ask(ScriptedModel(rules=[Rule(lambda _: "yes", Reply())]))
    assert str(caught.value) == "llm-scripted complete: rules[0].when must evaluate to a bool, got text"


# ---------------------------------------------------------------- usage


async def test_usage_is_estimated_from_all_text_read_and_written():
    call = ToolCall("c1", "find", "1234")
    messages = (user("1234"), ChatMessage("assistant", (call,)), ChatMessage("tool", (ToolResult("c1", "find", "1"),)))

    response = await ask(ScriptedModel([Reply("12345")]), {}, ChatRequest(messages, system="1234"))

    assert response.usage == Usage(input_tokens=4, output_tokens=2, prompt_tokens=4)


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        (Usage(input_tokens=9, output_tokens=2), Usage(input_tokens=9, output_tokens=2, prompt_tokens=9)),
        (Usage(input_tokens=9, prompt_tokens=20), Usage(input_tokens=9, prompt_tokens=20)),
        (Usage(output_tokens=2), Usage(output_tokens=2)),
        (Usage(0, 0, reported_cost_usd=0.5), Usage(0, 0, prompt_tokens=0, reported_cost_usd=0.5)),
        (Usage(), None),
        (Usage(0, 0), None),
    ],
    ids=["prompt is input", "prompt given", "input unknown", "only a cost", "nothing", "zeros"],
)
async def test_a_written_usage_is_reported_as_it_is(written: Usage, reported: Usage | None):
    assert (await ask(ScriptedModel([Reply("hi", usage=written)]))).usage == reported


# ---------------------------------------------------------------- streaming


async def test_a_streamed_reply_is_heard_in_fragments():
    reply = Reply("hello you", (Call("find", '{"id":7}'), Call("stop", "{}", "c9")), "hmmm")

    response, heard = await listen(ScriptedModel([reply], chunk_size=5))

    find, stop = response.calls
    assert heard == [
        ThinkingDelta("hmmm"),
        TextDelta("hello"),
        TextDelta(" you"),
        ToolStart("call_1", "find", 0),
        ToolInput('{"id"', "call_1", "find", 0),
        ToolInput(":7}", "call_1", "find", 0),
        ToolReady(find),
        ToolStart("c9", "stop", 1),
        ToolInput("{}", "c9", "stop", 1),
        ToolReady(stop),
    ]


_replies = st.builds(
    Reply,
    text=st.text(max_size=30),
    calls=st.lists(st.builds(Call, st.just("find"), st.text(max_size=30)), max_size=3).map(tuple),
    thinking=st.text(max_size=30),
    files=st.sampled_from([(), (File("image/png", b"png"),)]),
)


@settings(max_examples=60, deadline=None)
@given(reply=_replies, chunk_size=st.integers(1, 9))
async def test_a_streamed_answer_equals_the_plain_one_and_its_fragments_add_up(reply: Reply, chunk_size: int):
    model = ScriptedModel([reply], chunk_size=chunk_size)

    response, heard = await listen(model)

    assert response == await ask(model)
    assert "".join(delta.text for delta in heard if isinstance(delta, TextDelta)) == reply.text
    assert "".join(delta.text for delta in heard if isinstance(delta, ThinkingDelta)) == reply.thinking
    for index, call in enumerate(response.calls):
        inputs = [delta.text for delta in heard if isinstance(delta, ToolInput) and delta.index == index]
        assert "".join(inputs) == call.arguments


async def test_a_slow_listener_slows_the_stream_and_may_end_it():
    heard: list[Delta] = []

    async def on_delta(delta: Delta) -> None:
        heard.append(delta)
        if len(heard) == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await ScriptedModel([Reply("abc")], chunk_size=1).complete(ASK, session={}, on_delta=on_delta)

    assert heard == [TextDelta("a"), TextDelta("b")]


async def test_a_reply_can_be_late():
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await ask(ScriptedModel([Reply("hi", delay=30)]))


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("failure", "kind", "text", "retryable"),
    [
        (Failure("no key", 401), AuthenticationFailed, "status 401: no key", False),
        (Failure("slow down", 429), RateLimited, "status 429: slow down", True),
        (Failure("prompt is too long", 400), ContextTooLong, "status 400: prompt is too long", False),
        (Failure("what?", 422), BadRequest, "status 422: what?", False),
        (Failure("overloaded", 529), ProviderError, "status 529: overloaded", True),
        (Failure("connection reset"), ProviderError, "connection reset", True),
    ],
    ids=["401", "429", "context", "422", "529", "no status"],
)
async def test_a_failure_is_the_error_of_such_an_answer(
    failure: Failure, kind: type[ProviderError], text: str, retryable: bool
):
    with pytest.raises(ProviderError) as caught:
        await ask(ScriptedModel([Reply(error=failure)]))

    error = caught.value
    assert type(error) is kind
    assert str(error) == f"llm-scripted complete: {text}"
    assert (error.provider, error.status, error.retryable) == ("scripted", failure.status, retryable)


async def test_a_failure_may_ask_for_a_wait():
    with pytest.raises(RateLimited) as caught:
        await ask(ScriptedModel([Reply(error=Failure("slow down", 429, retry_after=1.5))]))

    assert caught.value.retry_after == 1.5


async def test_a_failed_call_uses_up_its_turn():
    model = ScriptedModel([Reply(error=Failure("overloaded", 529)), Reply("hi")])
    session: dict[object, Any] = {}

    with pytest.raises(ProviderError):
        await ask(model, session)
    assert (await ask(model, session)).text == "hi"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure("overloaded", 529, after_text="half an"), "status 529 in the answer: overloaded"),
        (Failure("connection reset", after_text="half an"), "connection reset"),
        (Failure("overloaded", 529), "status 529: overloaded"),
    ],
    ids=["error event", "lost connection", "before any text"],
)
async def test_a_streamed_call_breaks_after_its_text(failure: Failure, text: str):
    heard: list[Delta] = []

    async def on_delta(delta: Delta) -> None:
        heard.append(delta)

    with pytest.raises(ProviderError) as caught:
        await ScriptedModel([Reply(error=failure)]).complete(ASK, session={}, on_delta=on_delta)

    assert str(caught.value) == f"llm-scripted stream: {text}"
    assert heard == ([TextDelta(failure.after_text)] if failure.after_text else [])


async def test_a_plain_call_fails_without_any_text():
    with pytest.raises(ProviderError) as caught:
        await ask(ScriptedModel([Reply(error=Failure("overloaded", 529, after_text="half an"))]))

    assert str(caught.value) == "llm-scripted complete: status 529: overloaded"
