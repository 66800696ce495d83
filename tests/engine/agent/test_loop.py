"""octo/agent/loop.py, octo/agent/ending.py, octo/agent/reply.py, octo/agent/telling.py: calls in turn."""

from dataclasses import replace

import pytest

from fake_model import TOOL, Listener, call, reply, run
from octo.errors import BlockError, ProviderError
from octo.llm.chat import ChatMessage, ChatResponse, File, Text, ToolCall, ToolResult, Usage
from octo.observe import (
    AgentEnded,
    AgentGaveUp,
    AgentStarted,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)

WITH_DEFAULT = f"""{TOOL}
default:
  process:
    - type: set-payload
      settings: {{value: '{{"gave": "up", "body": body}}'}}
"""


async def test_the_answer_becomes_the_body():
    ran = await run(TOOL, reply("", call("t", {"n": 1})), reply('{"tier": "smb"}'))

    assert ran.message.body == {"tier": "smb"}


async def test_each_request_holds_the_whole_conversation():
    first = reply("I look.", call("t", {"n": 1}, "c1"))
    ran = await run(TOOL, first, reply("done"), body={"q": 1.0})

    opening = ChatMessage("user", (Text('The input of the task, as JSON:\n{"q":1}'),))
    assert [request.messages for request in ran.requests] == [
        (opening,),
        (opening, first.message, ChatMessage("tool", (ToolResult("c1", "t", '{"done":{"n":1}}'),))),
    ]
    assert ran.message.body == "done"


async def test_every_request_has_the_same_system_text_and_tools():
    ran = await run(TOOL, reply("", call("t")), reply("done"))

    assert ran.requests[0].system == ran.requests[1].system
    assert ran.requests[0].tools == ran.requests[1].tools
    assert ran.requests[0].tool_choice == "auto"


async def test_settings_of_the_block_go_into_the_request():
    keys = "model: big\ntemperature: 0.5\nmaxTokens: 99\nreasoningEffort: high\n"
    (request,) = (await run(keys + TOOL, reply("done"))).requests

    assert (request.model, request.temperature, request.max_tokens, request.reasoning_effort) == (
        "big",
        0.5,
        99,
        "high",
    )
    assert (request.cache, request.cache_key) == (True, "/f.ag")


async def test_unset_settings_are_left_to_the_connector():
    (request,) = (await run("reasoningEffort: ''\n" + TOOL, reply("done"))).requests

    assert (request.model, request.temperature, request.max_tokens, request.reasoning_effort) == (
        None,
        None,
        None,
        None,
    )


# ---------------------------------------------------------------- the cap on turns


async def test_the_tools_of_the_last_turn_run_before_the_default_path_is_taken():
    ran = await run("maxIterations: 1\n" + WITH_DEFAULT, reply("", call("t", {"n": 1})))

    assert ran.message.body == {"gave": "up", "body": {"done": {"n": 1.0}}}


@pytest.mark.parametrize("value", ["0", "-3"])
async def test_a_cap_of_nothing_means_eight_turns(value):
    replies = [reply("", call("t", {"n": n})) for n in range(8)]
    ran = await run(f"maxIterations: {value}\n" + WITH_DEFAULT, *replies)

    assert len(ran.requests) == 8
    assert ran.message.body == {"gave": "up", "body": {"done": {"n": 7.0}}}


async def test_without_a_default_path_the_block_fails_with_the_reason():
    with pytest.raises(BlockError) as caught:
        await run("maxIterations: 1\n" + TOOL, reply("", call("t")))

    assert caught.value.message == 'block "ag": ai-agent: exceeded max iterations, and no default path is configured'


# ---------------------------------------------------------------- refusal, guardrail


async def test_a_refusal_takes_the_default_path_and_runs_no_tool():
    ran = await run(WITH_DEFAULT, reply("", call("t"), stop="refusal"), body={"in": 1.0})

    assert ran.message.body == {"gave": "up", "body": {"in": 1.0}}
    assert ran.message.vars == {}


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (replace(reply("I wi", stop="refusal"), stop_detail="SAFETY: it is\nunsafe"), "SAFETY: it is unsafe"),
        (reply("I cannot\nhelp.", stop="refusal"), "I cannot help."),
        (reply("x" * 3000, stop="refusal"), "x" * 2000 + "…"),
    ],
    ids=["as the provider says", "as the model says", "at length"],
)
async def test_the_reason_of_a_refusal_is_kept_and_told(refusal: ChatResponse, reason: str):
    listener = Listener(AgentGaveUp)
    ran = await run(WITH_DEFAULT, refusal, observers=[listener])

    assert ran.message.vars == {"guardrailReason": reason}
    assert [(event.reason, event.detail) for event in listener.events] == [("model refused", reason)]


async def test_a_refusal_without_a_default_path_fails_with_its_reason():
    with pytest.raises(BlockError) as caught:
        await run(TOOL, replace(reply("", stop="refusal"), stop_detail="MISSING_THOUGHT_SIGNATURE"))

    assert caught.value.message == (
        'block "ag": ai-agent: model refused (MISSING_THOUGHT_SIGNATURE), and no default path is configured'
    )


async def test_a_call_that_cannot_be_read_twice_fails_with_what_the_provider_says_of_it():
    malformed = replace(reply("", stop="malformed"), stop_detail="MALFORMED_FUNCTION_CALL: no bracket")
    with pytest.raises(BlockError) as caught:
        await run(TOOL, malformed, malformed)

    assert caught.value.message == (
        'block "ag": ai-agent: the model called a tool in a form that cannot be read, twice in a row '
        "(MALFORMED_FUNCTION_CALL: no bracket)"
    )


GUARDED = "guardrail: Stop when in doubt.\n" + WITH_DEFAULT


async def test_a_guardrail_and_a_default_offer_the_model_a_way_out():
    (request,) = (await run(GUARDED, reply("done"))).requests

    assert [tool.name for tool in request.tools] == ["t", "take_default_path"]
    assert request.system.endswith("\n\nDo it.\n\nGuardrail: Stop when in doubt.")


@pytest.mark.parametrize("keys", [WITH_DEFAULT, "guardrail: Stop.\n" + TOOL])
async def test_one_of_the_two_alone_offers_none(keys):
    (request,) = (await run(keys, reply("done"))).requests

    assert [tool.name for tool in request.tools] == ["t"]


async def test_taking_the_way_out_keeps_the_reason_and_runs_no_other_call():
    out = call("take_default_path", {"reason": "too vague"})
    listener = Listener(AgentGaveUp)
    ran = await run(GUARDED, reply("", call("t"), out), body=5.0, observers=[listener])

    assert ran.message.body == {"gave": "up", "body": 5.0}
    assert ran.message.vars == {"guardrailReason": "too vague"}
    assert [(event.reason, event.detail) for event in listener.events] == [("model refused", "too vague")]


@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"reason": 5}'])
async def test_the_way_out_may_be_taken_without_a_readable_reason(arguments):
    ran = await run(GUARDED, reply("", call("take_default_path", arguments)))

    assert ran.message.vars == {"guardrailReason": ""}


async def test_a_way_out_that_was_not_offered_is_an_unknown_tool():
    ran = await run(WITH_DEFAULT, reply("", call("take_default_path")), reply("done"))

    assert ran.results == [('unknown tool "take_default_path"', True)]


# ---------------------------------------------------------------- the output cap


@pytest.mark.parametrize("arguments", ['{"path":"a"', '{"path":"a"}'], ids=["cut", "parses all the same"])
async def test_a_call_that_the_output_cap_cut_off_is_not_run(arguments):
    ran = await run(
        TOOL, reply("", call("t", {"n": 1}, "a"), call("t", arguments, "b"), stop="max_tokens"), reply("done")
    )

    assert ran.results == [
        ('{"done":{"n":1}}', False),
        (
            "not run: the output cap (`maxTokens`) cut this call off, so its arguments are not complete; "
            "make it shorter, or split it up",
            True,
        ),
    ]


async def test_two_turns_in_a_row_that_were_cut_off_end_on_the_default_path():
    listener = Listener(AgentGaveUp)
    cut = reply("", call("t", "{", "a"), stop="max_tokens")
    ran = await run(WITH_DEFAULT, cut, cut, body="in", observers=[listener])

    assert ran.message.body == {"gave": "up", "body": "in"}
    assert [event.reason for event in listener.events] == ["output cap reached"]


async def test_a_whole_turn_between_two_that_were_cut_off_lets_the_run_go_on():
    cut = reply("", call("t", "{"), stop="max_tokens")
    ran = await run(WITH_DEFAULT, cut, reply("", call("t")), cut, reply("done"))

    assert ran.message.body == "done"


async def test_a_way_out_that_was_cut_off_is_not_taken():
    ran = await run(GUARDED, reply("", call("take_default_path", '{"rea'), stop="max_tokens"), reply("done"))

    assert ran.message.body == "done"


async def test_an_answer_that_was_cut_off_is_an_answer_and_is_logged():
    ran = await run(TOOL, reply("half an ans", stop="max_tokens"))

    assert ran.message.body == "half an ans"
    assert ran.log == ["the answer was cut off by the output cap (`maxTokens`)"]


# ---------------------------------------------------------------- the context window


def out_of_context(text: str = "", *calls: ToolCall) -> ChatResponse:
    return replace(reply(text, *calls, stop="max_tokens"), stop_detail="model_context_window_exceeded")


async def test_an_answer_that_the_context_window_cut_off_is_logged_as_such():
    ran = await run(TOOL, out_of_context("half an ans"))

    assert ran.message.body == "half an ans"
    assert ran.log == ["the answer was cut off by the end of the context window"]


async def test_the_model_is_told_that_the_context_window_cut_a_call_off():
    ran = await run(TOOL, out_of_context("", call("t", "{", "a")), reply("done"))

    assert ran.results == [
        (
            "not run: the end of the context window cut this call off, so its arguments are not complete; "
            "make it shorter, or split it up",
            True,
        )
    ]


async def test_two_calls_in_a_row_that_the_context_window_cut_off_end_on_the_default_path():
    listener = Listener(AgentGaveUp)
    cut = out_of_context("", call("t", "{"))
    await run(WITH_DEFAULT, cut, cut, observers=[listener])

    assert [event.reason for event in listener.events] == ["context window full"]


async def test_a_context_window_without_room_for_an_answer_is_told():
    with pytest.raises(BlockError) as error:
        await run(TOOL, out_of_context(), out_of_context())

    assert error.value.hint == "shorten the prompt"


# ---------------------------------------------------------------- no answer


@pytest.mark.parametrize(
    "empty",
    [
        pytest.param(reply(""), id="nothing"),
        pytest.param(reply(" \n"), id="blank"),
        pytest.param(reply("```json\n```"), id="an empty fence"),
        pytest.param(reply("", thinking="Hm."), id="reasoning alone"),
        pytest.param(reply("", usage=Usage(0, 0)), id="usage of zero"),
    ],
)
async def test_an_empty_answer_before_any_tool_ran_is_asked_for_once_more(empty):
    ran = await run("maxIterations: 1\n" + TOOL, empty, reply("done"))

    assert ran.message.body == "done"
    assert ran.requests[0] == ran.requests[1]


async def test_a_second_empty_answer_fails_the_block():
    with pytest.raises(BlockError) as caught:
        await run(WITH_DEFAULT, reply(""), reply("", thinking="Hm."))

    assert caught.value.message == 'block "ag": ai-agent: the model gave an empty answer twice, and no tool ran'


async def test_an_empty_answer_after_a_tool_leaves_the_body_as_the_tool_left_it():
    ran = await run(TOOL, reply("", call("t", {"n": 1})), reply(""))

    assert ran.message.body == {"done": {"n": 1.0}}
    assert ran.log[-1] == "the final answer is empty, the body stays as it is"


async def test_a_call_that_reached_no_tool_does_not_make_an_empty_answer_good():
    ran = await run(TOOL, reply("", call("x")), reply(""), reply("done"))

    assert ran.message.body == "done"


async def test_a_file_is_an_answer():
    ran = await run("responseMedia: pics\n" + TOOL, reply("", files=[File("image/png", b"x")]))

    assert ran.message.body is None
    assert ran.message.vars == {"pics": [{"name": "", "mimeType": "image/png", "size": 1.0, "data": "eA=="}]}


async def test_files_of_all_turns_are_gathered():
    pictures = [
        reply("", call("t"), files=[File("image/png", b"x", "a")]),
        reply("ok", files=[File("image/png", b"y")]),
    ]
    ran = await run("responseMedia: ' pics '\n" + TOOL, *pictures, vars={"pics": ["old"]})

    assert [entry if entry == "old" else entry["data"] for entry in ran.message.vars["pics"]] == ["old", "eA==", "eQ=="]


# ---------------------------------------------------------------- pause, malformed, failure


async def test_a_pause_sends_the_turn_back_and_goes_on():
    paused = reply("searching", stop="pause")
    ran = await run(TOOL, paused, reply("done"))

    assert ran.requests[1].messages[-1] == paused.message
    assert ran.message.body == "done"


async def test_a_malformed_reply_is_asked_for_once_more():
    ran = await run("maxIterations: 1\n" + TOOL, reply("", stop="malformed"), reply("done"))

    assert ran.message.body == "done"
    assert ran.requests[0] == ran.requests[1]


async def test_a_second_malformed_reply_fails_the_block():
    with pytest.raises(BlockError) as caught:
        await run(WITH_DEFAULT, reply("", stop="malformed"), reply("", stop="malformed"))

    assert caught.value.message == (
        'block "ag": ai-agent: the model called a tool in a form that cannot be read, twice in a row'
    )


async def test_calls_decide_and_not_the_word():
    ran = await run(TOOL, reply("", call("t", {"n": 1}), stop="end_turn"), reply("done"))

    assert ran.results == [('{"done":{"n":1}}', False)]


async def test_a_failed_model_call_fails_the_block_and_takes_no_default_path():
    with pytest.raises(BlockError) as caught:
        await run(WITH_DEFAULT, ProviderError("llm-scripted complete: 500 overloaded"))

    assert caught.value.message == 'block "ag": ai-agent: llm-scripted complete: 500 overloaded'


# ---------------------------------------------------------------- files of the question

FILES = """
input: body.q
attachments: body.files
"""
PICTURE = {"mimeType": "text/plain", "data": "aGk=", "name": "a.txt"}


def with_files(request):
    return [file.name for turn in request.messages for file in turn.files]


@pytest.mark.parametrize(("keep", "later"), [("false", []), ("true", ["a.txt"])])
async def test_files_ride_on_the_first_call_and_on_later_ones_only_when_kept(keep, later):
    keys = f"keepAttachments: {keep}\n" + FILES + TOOL
    ran = await run(keys, reply("", call("t")), reply("done"), body={"q": "what?", "files": [PICTURE]})

    assert ran.requests[0].messages == (ChatMessage("user", (File("text/plain", b"hi", "a.txt"), Text("what?"))),)
    assert with_files(ran.requests[1]) == later


async def test_a_repeated_first_call_carries_the_files_again():
    ran = await run(FILES + TOOL, reply(""), reply("done"), body={"q": "what?", "files": [PICTURE]})

    assert [with_files(request) for request in ran.requests] == [["a.txt"], ["a.txt"]]


# ---------------------------------------------------------------- halves of characters


async def test_half_an_emoji_never_reaches_the_conversation():
    torn = reply("see \ud83d", ToolCall("c", "t", '{"q": "\\ud83d", "r": "\ud83d"}'))
    ran = await run(TOOL, torn, reply("end \ud83d"), body={"q": "\ud83d"})

    texts = [getattr(part, "text", "") for turn in ran.requests[1].messages for part in turn.parts]
    assert texts == [
        'The input of the task, as JSON:\n{"q":"\ufffd"}',
        "see \ufffd",
        "",
        '{"done":{"q":"\ufffd","r":"\ufffd"}}',
    ]
    assert ran.message.body == "end \ufffd"


async def test_half_an_emoji_in_the_name_of_a_tool_is_told_readably():
    ran = await run(TOOL, reply("", call("\ud83d")), reply("done"))

    assert ran.results == [('unknown tool "\ufffd"', True)]


async def test_a_call_without_an_id_is_given_one():
    ran = await run(TOOL, reply("", ToolCall("", "t", "{}"), ToolCall("", "t", "{}")), reply("done"))

    assert [part.call_id for part in ran.requests[1].messages[2].parts] == ["call-1-0", "call-1-1"]
    assert ran.message.vars["toolCallId"] == "call-1-1"


async def test_a_result_of_ten_megabytes_goes_to_the_model_whole():
    keys = """
        tools:
          - name: big
            description: Much text.
            process:
              - {type: set-payload, settings: {value: 'vars.text'}}
    """
    text = "🙂" * 2_500_000
    ran = await run(keys, reply("", call("big")), reply("done"), vars={"text": text})

    assert ran.results == [(f'"{text}"', False)]


# ---------------------------------------------------------------- events


async def test_observers_are_told_of_every_step_in_order():
    listener = Listener(AgentStarted, TurnStarted, TurnEnded, ToolCalled, ToolReturned, AgentGaveUp, AgentEnded)
    replies = [
        reply("", call("t", '{"n": 1}', "c"), usage=Usage(input_tokens=5)),
        reply("done", usage=Usage(input_tokens=7, output_tokens=2)),
    ]
    ran = await run(TOOL, *replies, observers=[listener])

    id = ran.message.event_id
    told = [
        {
            name: getattr(event, name)
            for name in event.__slots__
            if name not in ("seconds", "stamp", "request", "response")
        }
        | {"kind": type(event)}
        for event in listener.events
    ]
    assert {(event.address, event.event_id) for event in listener.events} == {("f.ag", id)}
    assert told == [
        {"kind": AgentStarted, "connector": "m", "max_iterations": 8},
        {"kind": TurnStarted, "iteration": 1},
        {
            "kind": TurnEnded,
            "iteration": 1,
            "model": "fake",
            "stop_reason": "tool_use",
            "text": "",
            "tool_calls": 1,
            "usage": Usage(input_tokens=5),
            "error": None,
            "purpose": "",
        },
        {"kind": ToolCalled, "iteration": 1, "tool": "t", "call_id": "c", "arguments": '{"n": 1}'},
        {
            "kind": ToolReturned,
            "iteration": 1,
            "tool": "t",
            "call_id": "c",
            "text": '{"done":{"n":1}}',
            "is_error": False,
        },
        {"kind": TurnStarted, "iteration": 2},
        {
            "kind": TurnEnded,
            "iteration": 2,
            "model": "fake",
            "stop_reason": "end_turn",
            "text": "done",
            "tool_calls": 0,
            "usage": Usage(input_tokens=7, output_tokens=2),
            "error": None,
            "purpose": "",
        },
        {
            "kind": AgentEnded,
            "turns": 2,
            "tool_calls": 1,
            "usage": Usage(input_tokens=12, output_tokens=2),
            "reason": None,
            "error": None,
        },
    ]


async def test_the_end_of_a_turn_tells_what_was_asked_and_answered():
    listener = Listener(TurnEnded)
    first, last = reply("", call("t")), reply("done")
    ran = await run(TOOL, first, last, observers=[listener])

    assert [(event.request, event.response) for event in listener.events] == list(
        zip(ran.requests, [first, last], strict=True)
    )


async def test_observers_are_told_of_a_failure():
    listener = Listener(TurnEnded, AgentEnded)
    failure = ProviderError("no answer")
    with pytest.raises(BlockError):
        await run(TOOL, failure, observers=[listener])

    turn, end = listener.events
    assert turn.error is failure
    assert end.error.message == "ai-agent: no answer"
