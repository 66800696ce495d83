"""octo/llm/wires/chat_completions_answer.py: Chat Completions, answers."""

import json
from base64 import b64encode
from dataclasses import replace
from itertools import count

import pytest

from octo.errors import ProviderError, RateLimited, Truncated
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    CustomDelta,
    Delta,
    File,
    Part,
    Reasoning,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolInput,
    ToolReady,
    ToolStart,
    Usage,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.framing import DONE
from octo.llm.wire import Endpoint, Unreadable
from octo.llm.wires.chat_completions import ChatCompletions
from octo.values import Json

WIRE = ChatCompletions("customai")
OPENROUTER = ChatCompletions("openrouter", usage_accounting=True, echo="reasoning_details")

CREDENTIALS = Credentials("customai", "http://localhost:8080/v1", "authorization", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, "qwen3")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def body(
    request: ChatRequest, endpoint: Endpoint = ENDPOINT, wire: ChatCompletions = WIRE, *, stream: bool = False
) -> Json:
    return json.loads(wire.encode(request, endpoint, stream=stream).body)


def messages(*turns: ChatMessage, wire: ChatCompletions = WIRE) -> Json:
    return body(ChatRequest(turns), wire=wire)["messages"]


def says(text: str | None, **more: Json) -> Json:
    return {"role": "assistant", "content": text, **more}


def called(id: str = "a", name: str = "t", arguments: str = "{}") -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def thought(text: str, dialect: str, **more: Json) -> Reasoning:
    return Reasoning(text, {"wire": "chat_completions", "dialect": dialect, **more})


def chunk(finish_reason: str | None = None, usage: Json = None, **delta: Json) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"object": "chat.completion.chunk", "model": "m-1", "choices": [choice], "usage": usage}


def end(reason: str = "stop") -> list[Json]:
    return [chunk(reason), DONE]


def whole(message: Json, finish_reason: str | None = "stop", **more: Json) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {"object": "chat.completion", "model": "m-1", "choices": [choice], **more}


def decode(*events: Json, wire: ChatCompletions = WIRE) -> tuple[list[Delta], ChatResponse]:
    ids = count(1)
    decoder = replace(wire, new_id=lambda: f"made-{next(ids)}").decoder()
    deltas = [delta for event in events for delta in decoder.feed(event)]
    return deltas, decoder.finish()


def parts(*events: Json, wire: ChatCompletions = WIRE) -> tuple[Part, ...]:
    return decode(*events, *end(), wire=wire)[1].message.parts


USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 20,
    "total_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 7},
}


def test_a_streamed_answer():
    deltas, response = decode(
        chunk(role="assistant", content=""),
        chunk(reasoning_content="let me "),
        chunk(reasoning_content="see "),
        chunk(content="I look"),
        chunk(content=""),
        chunk(content=" it up"),
        chunk(tool_calls=[{"index": 0, "id": "call_1", "function": {"name": "lookup", "arguments": ""}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"n":'}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": " 1}"}}]),
        chunk("tool_calls"),
        {"object": "chat.completion.chunk", "model": "m-1", "choices": [], "usage": USAGE},
        DONE,
    )
    ready = ToolCall("call_1", "lookup", '{"n": 1}')

    assert deltas == [
        ThinkingDelta("let me "),
        ThinkingDelta("see "),
        TextDelta("I look"),
        TextDelta(" it up"),
        ToolStart("call_1", "lookup"),
        ToolInput('{"n":', "call_1", "lookup"),
        ToolInput(" 1}", "call_1", "lookup"),
        ToolReady(ready),
    ]
    assert response == ChatResponse(
        ChatMessage("assistant", (thought("let me see ", "customai"), Text("I look it up"), ready)),
        "tool_use",
        "m-1",
        Usage(input_tokens=10, output_tokens=20, thinking_tokens=7, cached_tokens=4, prompt_tokens=10),
    )


def test_an_answer_that_was_not_streamed_gives_the_same_response():
    calls = [called("a", "lookup", '{"name": "Añe",  "n": 1.50}'), called("b", "lookup", "")]
    streamed = [
        chunk(reasoning="hm"),
        chunk(content="It is"),
        chunk(content=" 7"),
        chunk(tool_calls=[{"index": 0, **calls[0]}, {"index": 1, **calls[1]}]),
        chunk("tool_calls", USAGE),
        DONE,
    ]
    message = {"content": "It is 7", "reasoning": "hm", "tool_calls": calls}

    assert decode(whole(message, "tool_calls", usage=USAGE))[1] == decode(*streamed)[1]


def test_an_answer_can_be_sent_back_as_it_came():
    _, response = decode(whole({"content": None, "tool_calls": [called("a", "t", '{"n":  1}')]}, "tool_calls"))

    assert messages(user("q"), response.message)[1] == says(None, tool_calls=[called("a", "t", '{"n":  1}')])


def pieces(*fragments: Json) -> list[Json]:
    return [chunk(tool_calls=[fragment]) for fragment in fragments]


def fragment(text: str = "", name: str | None = None, **more: Json) -> Json:
    return {**more, "function": {"name": name, "arguments": text} if name else {"arguments": text}}


THREE = {
    "distinct indices, interleaved": pieces(
        fragment("", "t", index=0, id="a"),
        fragment("", "t", index=1, id="b"),
        fragment('{"n":', index=0),
        fragment("", "u", index=2, id="c"),
        fragment('{"n":', index=1),
        fragment("1}", index=0),
        fragment("2}", index=1),
        fragment('{"n":3}', index=2),
    ),
    "all index 0, a new id starts a call": pieces(
        fragment('{"n":', "t", index=0, id="a"),
        fragment("1}", index=0, id="a"),
        fragment("", "t", index=0, id="b"),
        fragment('{"n":2}', index=0),
        fragment('{"n":3}', "u", index=0, id="c"),
    ),
    "no index, the id on the first fragment": pieces(
        fragment('{"n":', "t", id="a"),
        fragment("1}"),
        fragment("", "t", id="b"),
        fragment('{"n":2}'),
        fragment('{"n":3}', "u", id="c"),
    ),
    "no index, whole calls in one chunk": [
        chunk(
            tool_calls=[
                fragment('{"n":1}', "t", id="a"),
                fragment('{"n":2}', "t", id="b"),
                fragment('{"n":3}', "u", id="c"),
            ]
        )
    ],
}


@pytest.mark.parametrize("events", THREE.values(), ids=THREE)
def test_fragments_find_their_call(events: list[Json]):
    deltas, response = decode(*events, *end("tool_calls"))

    expected = (ToolCall("a", "t", '{"n":1}'), ToolCall("b", "t", '{"n":2}'), ToolCall("c", "u", '{"n":3}'))
    assert response.calls == expected
    assert [delta.call for delta in deltas if isinstance(delta, ToolReady)] == list(expected)
    assert [(delta.id, delta.name, delta.index) for delta in deltas if isinstance(delta, ToolStart)] == [
        ("a", "t", 0),
        ("b", "t", 1),
        ("c", "u", 2),
    ]
    for place, call in enumerate(expected):
        told = [delta for delta in deltas if isinstance(delta, ToolInput) and delta.index == place]
        assert ("".join(delta.text for delta in told), {delta.id for delta in told}) == (call.arguments, {call.id})


def test_without_index_and_id_a_name_starts_a_call():
    events = pieces(
        fragment('{"n":', "t"), fragment("1}"), fragment("", "t"), fragment('{"n":2}'), fragment('{"n":3}', "u")
    )

    assert parts(*events) == (
        ToolCall("made-1", "t", '{"n":1}'),
        ToolCall("made-2", "t", '{"n":2}'),
        ToolCall("made-3", "u", '{"n":3}'),
    )


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (pieces(fragment("{", "t", index=0), fragment("}", index=0, id="late")), [ToolCall("made-1", "t", "{}")]),
        (
            pieces(fragment("{}", "t", index=0), fragment("", index=0, id="a"), fragment("{}", "t", index=0, id="b")),
            [ToolCall("made-1", "t", "{}"), ToolCall("b", "t", "{}")],
        ),
        (pieces(fragment("{", index=0, id="a"), fragment("}", "t", index=0)), [ToolCall("a", "t", "{}")]),
        (pieces(fragment("{", "t", index=0, id="a"), fragment("}", "t", index=0)), [ToolCall("a", "t", "{}")]),
        (
            pieces(fragment('{"n":1}', "t", index=0), fragment('{"n":', "t", index=0), fragment("2}", index=0)),
            [ToolCall("made-1", "t", '{"n":1}'), ToolCall("made-2", "t", '{"n":2}')],
        ),
        (
            pieces(fragment('{"n":1}', "t", index=0, id=""), fragment('{"n":2}', "u", index=0, id="")),
            [ToolCall("made-1", "t", '{"n":1}'), ToolCall("made-2", "u", '{"n":2}')],
        ),
        (
            pieces(fragment("{}", "t", index=0, id="a"), fragment("", "t", index=0)),
            [ToolCall("a", "t", "{}")],
        ),
        (
            pieces(fragment('{"n"', "t", index=0, id="a"), fragment(":1", index=0, id="b"), fragment("}", id="c")),
            [ToolCall("a", "t", '{"n":1}')],
        ),
        (
            pieces(fragment("{}", "t", index=0, id="a"), fragment("", index=0, id="b"), fragment("{}", "u", index=0)),
            [ToolCall("a", "t", "{}"), ToolCall("b", "u", "{}")],
        ),
        (pieces(fragment("", "t", index=0, id="a")), [ToolCall("a", "t", "{}")]),
        (pieces(fragment(" ", "t", index=0, id="")), [ToolCall("made-1", "t", "{}")]),
        (pieces(fragment("{}", index=0, id="a")), []),
        (pieces({"index": 0, "id": "a", "function": {"name": "t", "arguments": None}}), [ToolCall("a", "t", "{}")]),
        (pieces({"index": 0, "id": "a", "function": None}, fragment("{}", "t", index=0)), [ToolCall("a", "t", "{}")]),
        (pieces(fragment('{"a": "x', "t", index=0, id="a")), [ToolCall("a", "t", '{"a": "x')]),
        (
            pieces({"index": 0, "id": "a", "function": {"name": "t", "arguments": {"n": 1}}}),
            [ToolCall("a", "t", '{"n":1}')],
        ),
    ],
    ids=[
        "a late id is ignored",
        "but the one after it is another call",
        "the name comes late",
        "the name is repeated",
        "a name after whole arguments is another call",
        "also with empty ids",
        "the name is repeated at the end",
        "an id for each fragment",
        "another id after whole arguments, and a late name",
        "no arguments",
        "blank arguments and an empty id",
        "no name",
        "no text of arguments",
        "no function",
        "cut off",
        "arguments as an object",
    ],
)
def test_calls_in_odd_pieces(events: list[Json], expected: list[ToolCall]):
    assert decode(*events, *end("tool_calls"))[1].calls == tuple(expected)


def test_an_id_that_is_made_has_letters_and_digits_of_its_own():
    decoder = WIRE.decoder()
    decoder.feed(whole({"tool_calls": [fragment("{}", "t"), fragment("{}", "t")]}))
    first, second = (call.id for call in decoder.finish().calls)

    assert first != second
    assert first.startswith("call_") and first[5:].isalnum() and len(first) == 29


@pytest.mark.parametrize(
    ("reason", "delta", "expected"),
    [
        ("stop", {"content": "x"}, "end_turn"),
        ("stop", {"tool_calls": [fragment("{}", "t", id="a")]}, "tool_use"),
        ("tool_calls", {"content": "x"}, "end_turn"),
        ("length", {"content": "x"}, "max_tokens"),
        ("length", {"tool_calls": [fragment("{}", "t", id="a")]}, "max_tokens"),
        ("model_length", {"content": "x"}, "max_tokens"),
        ("content_filter", {}, "refusal"),
        ("content_filter", {"tool_calls": [fragment("{}", "t", id="a")]}, "tool_use"),
        ("stop", {"refusal": "no"}, "refusal"),
        ("tool_calls", {"refusal": "no", "tool_calls": [fragment("{}", "t", id="a")]}, "refusal"),
        ("a new one", {"content": "x"}, "end_turn"),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_why_the_model_stopped(reason: str, delta: Json, expected: str):
    assert decode(chunk(**delta), *end(reason))[1].stop_reason == expected
    assert decode(whole(delta, reason))[1].stop_reason == expected


@pytest.mark.parametrize(
    ("found", "detail"),
    [
        (None, "content_filter"),
        ({"hate": {"filtered": False}, "violence": {"filtered": True, "severity": "high"}}, "content_filter: violence"),
        ("of another kind", "content_filter"),
    ],
    ids=["unnamed", "named", "unreadable"],
)
def test_an_answer_that_was_filtered_says_so(found: Json, detail: str):
    ended = chunk("content_filter")
    ended["choices"][0]["content_filter_results"] = found
    streamed = decode(chunk(content="I wou"), ended, DONE)[1]

    assert (streamed.stop_reason, streamed.stop_detail) == ("refusal", detail)
    assert decode(whole({"content": None}, "content_filter"))[1].stop_detail == "content_filter"


@pytest.mark.parametrize(
    ("reason", "native", "fills"),
    [
        ("length", None, False),
        ("length", "max_tokens", False),
        ("length", "model_context_window_exceeded", True),
        ("model_length", None, True),
        ("stop", "model_length", False),
    ],
)
def test_an_answer_says_whether_the_context_window_cut_it_off(reason: str, native: str | None, fills: bool):
    """Mistral has a word of its own; OpenRouter tells that of the model's vendor beside its own."""
    ended = chunk(reason)
    ended["choices"][0]["native_finish_reason"] = native

    assert decode(chunk(content="I wou"), ended, DONE)[1].fills_window is fills


@pytest.mark.parametrize("reason", ["stop", "content_filter"])
def test_a_refusal_in_words_says_enough(reason: str):
    response = decode(chunk(refusal="I cannot"), *end(reason))[1]

    assert (response.text, response.stop_detail) == ("I cannot", "")


def test_what_a_model_says_to_refuse_is_its_answer():
    deltas, response = decode(chunk(refusal="I "), chunk(refusal="cannot"), *end())

    assert deltas == [CustomDelta("refusal", "I "), CustomDelta("refusal", "cannot")]
    assert (response.text, response.stop_reason) == ("I cannot", "refusal")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3}, Usage(input_tokens=3, prompt_tokens=3)),
        ({"completion_tokens": 5}, Usage(output_tokens=5)),
        ({"prompt_tokens": 3, "prompt_cache_hit_tokens": 2}, Usage(3, cached_tokens=2, prompt_tokens=3)),
        ({"prompt_tokens": 3, "prompt_tokens_details": None}, Usage(3, prompt_tokens=3)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({"prompt_tokens": "7", "completion_tokens": -1, "cost": 1}, None),
        ({"prompt_tokens": 3, "cost": 0.25}, Usage(3, prompt_tokens=3)),
        ([], None),
        (None, None),
    ],
    ids=["only read", "only written", "hits", "no details", "all zero", "no numbers", "a cost", "a list", "nothing"],
)
def test_usage(usage: Json, expected: Usage | None):
    assert decode(whole({"content": "x"}, usage=usage))[1].usage == expected
    assert decode(chunk(content="x"), chunk("stop", usage), DONE)[1].usage == expected


def test_openrouter_reports_what_a_call_cost():
    usage = {"prompt_tokens": 3, "cost": 0.25}

    assert decode(whole({"content": "x"}, usage=usage), wire=OPENROUTER)[1].usage == Usage(
        3, prompt_tokens=3, reported_cost_usd=0.25
    )


@pytest.mark.parametrize(
    "events",
    [
        [chunk("stop"), {"choices": [], "usage": USAGE}, DONE],
        [chunk("stop"), {"usage": USAGE}],
        [chunk("stop", USAGE)],
        [chunk(None, {"prompt_tokens": 10, "completion_tokens": 1}, content=""), chunk("stop", USAGE), DONE],
        [{"choices": [], "usage": USAGE}, chunk("stop", None), DONE],
    ],
    ids=["after the end", "without choices", "beside the reason", "growing", "before"],
)
def test_usage_counts_wherever_it_comes(events: list[Json]):
    assert decode(chunk(content="x"), *events)[1] == decode(whole({"content": "x"}, usage=USAGE))[1]


def test_reasoning_details_are_joined_to_what_they_would_be_unstreamed():
    first = {"type": "reasoning.text", "index": 0, "format": "f"}
    details = [
        {**first, "text": "let me ", "signature": None},
        {**first, "text": "see", "signature": None},
        {**first, "text": "", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "opa"},
        {"type": "reasoning.encrypted", "index": 1, "data": "que", "id": "r1"},
    ]
    joined = [
        {**first, "text": "let me see", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "opaque", "id": "r1"},
    ]
    streamed = [chunk(reasoning=one.get("text"), reasoning_details=[one]) for one in details]

    expected = (thought("let me see", "openrouter", details=joined),)
    assert parts(*streamed, wire=OPENROUTER) == expected
    message = {"content": None, "reasoning": "let me see", "reasoning_details": joined}
    assert decode(whole(message), wire=OPENROUTER)[1].message.parts == expected


def test_reasoning_details_of_a_whole_message_are_kept_as_they_are():
    details = [{"type": "reasoning.text", "text": "a", "signature": None}, {"type": "reasoning.text", "text": None}]

    (reasoning,) = decode(whole({"content": None, "reasoning_details": details}), wire=OPENROUTER)[1].message.parts
    assert reasoning == thought("", "openrouter", details=details)


def test_what_rides_on_a_call_is_kept():
    signature = {"google": {"thought_signature": "s=="}}
    (call,) = parts(*pieces(fragment("{", "t", index=0, id="a", extra_content=signature), fragment("}", index=0)))

    assert call == ToolCall(
        "a", "t", "{}", {"wire": "chat_completions", "dialect": "customai", "extra_content": signature}
    )


def test_content_in_chunks_holds_reasoning_and_text():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    content = [thinking, {"type": "text", "text": "so"}, {"type": "reference", "reference_ids": [1]}]

    assert parts(chunk(content=[thinking]), chunk(content="so")) == (thought("hm", "customai"), Text("so"))
    assert decode(whole({"content": content}))[1].message.parts == (thought("hm", "customai"), Text("so"))


@pytest.mark.parametrize("size", [1, 5, 100])
def test_reasoning_between_marks_is_no_text(size: int):
    said = "<think>\nlet me see</think>\n\nIt is 7"
    streamed = [chunk(content=said[at : at + size]) for at in range(0, len(said), size)]
    deltas, response = decode(*streamed, *end())

    assert [(type(part), part.text) for part in response.message.parts] == [  # type: ignore[union-attr]  # both have one
        (Reasoning, "let me see"),
        (Text, "It is 7"),
    ]
    assert "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)) == "let me see"
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "It is 7"


def test_pictures_are_files_of_the_answer():
    url = f"data:image/jpeg;base64,{base64(PNG)}"
    images = [
        {"type": "image_url", "image_url": {"url": url}},
        {"image_url": {"url": "https://example.com/a.png"}},
        {"image_url": {"url": "data:image/png;base64,###"}},
        "nonsense",
    ]

    assert parts(chunk(content="there", images=images)) == (Text("there"), File("image/png", PNG))


def test_what_is_unknown_is_ignored():
    events = [
        {"object": "brand.new"},
        {"choices": None},
        {"choices": [], "prompt_filter_results": []},
        {"choices": [{"index": 0, "delta": None, "finish_reason": ""}]},
        {"choices": [{"index": 0, "delta": {"content": "hi", "mood": 7}}, {"index": 1, "delta": {"content": "no"}}]},
        {"error": None, "choices": [{"delta": {"audio": {}}, "finish_reason": None}]},
    ]

    assert parts(*events) == (Text("hi"),)


@pytest.mark.parametrize("events", [[], [chunk(content="half")], [chunk(content="x"), {"usage": USAGE}]])
def test_a_stream_without_an_end_mark_is_no_answer(events: list[Json]):
    with pytest.raises(Truncated, match="the answer broke off before its end") as caught:
        decode(*events)

    assert caught.value.retryable


@pytest.mark.parametrize("marks", [[DONE], [chunk("stop")], [chunk("stop"), DONE], [chunk("stop"), chunk("stop")]])
def test_either_mark_ends_an_answer(marks: list[Json]):
    deltas, response = decode(chunk(content="x", tool_calls=[fragment("{}", "t", id="a")]), *marks)

    assert response.text == "x"
    assert deltas.count(ToolReady(ToolCall("a", "t", "{}"))) == 1


def test_reading_may_end_at_the_last_mark_only():
    decoder = WIRE.decoder()
    decoder.feed(chunk("stop"))
    waiting = decoder.complete
    decoder.feed(DONE)

    assert (waiting, decoder.complete) == (False, True)


@pytest.mark.parametrize(
    ("event", "text", "retryable"),
    [
        ({"error": {"message": "Oops", "code": 429}}, "status 429 in the answer: Oops", True),
        ({"error": {"message": "Oops", "code": "502"}}, "status 502 in the answer: Oops", True),
        ({"error": {"message": "Oops", "type": "overloaded"}}, "status 503 in the answer: Oops", True),
        ({"error": {"message": "Oops", "code": "insufficient_quota"}}, "status 429 in the answer: Oops", False),
        ({"error": {"message": "Oops", "type": "invalid_request_error"}}, "status 400 in the answer: Oops", False),
        ({"error": "Oops"}, "an error in the answer: Oops", True),
        ({"object": "error", "message": "Oops", "code": 400}, "status 400 in the answer: Oops", False),
        (chunk("error"), "status 503 in the answer: the model gave up (`error`)", True),
        (
            chunk("insufficient_system_resource"),
            "status 503 in the answer: the model gave up (`insufficient_system_resource`)",
            True,
        ),
        (
            {"choices": [{"finish_reason": "error", "error": {"message": "Oops", "code": 502}}]},
            "status 502 in the answer: Oops",
            True,
        ),
    ],
    ids=["429", "502", "overloaded", "no quota", "invalid", "text", "vLLM", "given up", "DeepSeek", "in the choice"],
)
def test_an_error_inside_the_answer(event: Json, text: str, retryable: bool):
    with pytest.raises(ProviderError) as caught:
        decode(chunk(content="half"), event)

    assert (str(caught.value), caught.value.retryable) == (text, retryable)


def test_a_limit_inside_the_answer_is_a_limit():
    with pytest.raises(RateLimited):
        decode({"error": {"message": "slow down", "code": 429}})


@pytest.mark.parametrize(
    "event",
    [
        [],
        "text",
        None,
        7,
        {"choices": "x"},
        {"choices": [7]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {"tool_calls": "x"}}]},
        {"choices": [{"delta": {"tool_calls": ["x"]}}]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [{"message": "x"}]},
    ],
    ids=str,
)
def test_events_of_no_known_shape(event: Json):
    with pytest.raises(Unreadable):
        WIRE.decoder().feed(event)
