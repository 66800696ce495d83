"""octo/connectors/llm_scripted.py: the settings of the scripted model."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from octo.errors import ConfigError, ProviderError
from octo.llm.chat import (
    ChatMessage,
    ChatModel,
    ChatRequest,
    ChatResponse,
    File,
    Reasoning,
    Text,
    ToolCall,
    Usage,
    user,
)
from octo.testing.harness import config, runtime

ASK = ChatRequest((user("hello"),))


def connector(settings: str) -> str:
    """A config with one scripted model; its settings are indented by 8."""
    return f"connectors:\n  - name: model\n    type: llm-scripted\n    settings:\n{settings}"


async def answers(
    settings: str, *requests: ChatRequest, files: dict[str, str] | None = None, environ: dict[str, str] | None = None
) -> list[ChatResponse]:
    """What the model of these settings answers in one run."""
    session: dict[object, Any] = {}
    async with runtime(connector(settings), files=files, environ=environ) as opened:
        model: ChatModel = opened.live("model", ChatModel)  # type: ignore[type-abstract]  # any class will do here
        return [await model.complete(request, session=session) for request in requests or (ASK,)]


async def test_a_reply_may_hold_everything_that_a_model_can_say():
    [answer] = await answers("""
        model: fake-1
        turns:
          - thinking: hm
            text: hi
            calls:
              - name: find
                args: {b: 2, a: [1, x]}
              - name: find
                args: '{"broken'
                id: mine
              - name: stop
            files:
              - {mimeType: image/png, data: iVBORw0K, name: p.png}
            stop: max_tokens
            usage: {inputTokens: 9, outputTokens: 2, thinkingTokens: 1, cachedTokens: 3, cacheWriteTokens: 4,
              promptTokens: 16, reportedCostUSD: 0.25}
    """)

    parts = (
        Reasoning("hm", {"wire": "scripted"}),
        Text("hi"),
        ToolCall("call_1", "find", '{"a":[1,"x"],"b":2}'),
        ToolCall("mine", "find", '{"broken'),
        ToolCall("call_3", "stop", "{}"),
        File("image/png", b"\x89PNG\r\n", "p.png"),
    )
    usage = Usage(9, 2, 1, 3, 4, 16, 0.25)
    message = ChatMessage("assistant", parts)
    assert answer == ChatResponse(message, "max_tokens", "fake-1", usage, asked="fake-1", connector="model")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("{tier: smb, fit: true}", '{"fit":true,"tier":"smb"}'),
        ("[1, 2.5]", "[1,2.5]"),
        ("7", "7"),
        ("false", "false"),
        ("'7'", "7"),
        ("null", ""),
        ("'${ANSWER}'", "so it is"),
    ],
    ids=["mapping", "list", "number", "boolean", "text", "null", "variable"],
)
async def test_text_is_text_or_the_json_of_any_other_value(written: str, text: str):
    settings = f"        turns: [{{text: {written}}}]\nenv: [{{name: ANSWER}}]\n"

    [answer] = await answers(settings, environ={"ANSWER": "so it is"})

    assert answer.text == text


async def test_rules_answer_before_turns():
    first, second = await answers(
        """
        rules:
          - when: last.text.startsWith("find") && "find" in tools
            text: never, there is no tool
          - when: call == 2 && last.text == "hello" && size(messages) == 1 && system == ""
            text: by a rule
        turns:
          - text: by a turn
        """,
        ASK,
        ASK,
    )

    assert [first.text, second.text] == ["by a turn", "by a rule"]


async def test_a_script_is_read_from_a_file_and_continues_the_settings():
    script = """
turns:
  - text: second
rules:
  - when: last.text == "rule"
    text: ruled
"""
    texts = [
        answer.text
        for answer in await answers(
            """
        turns: [{text: first}]
        script: scripts/model.yaml
            """,
            ASK,
            ChatRequest((user("rule"),)),
            ASK,
            files={"scripts/model.yaml": script},
        )
    ]

    assert texts == ["first", "ruled", "second"]


async def test_an_error_reply_fails_the_call():
    with pytest.raises(ProviderError) as caught:
        await answers("        turns: [{error: {status: 429, message: slow down, retryAfter: 2}, delay: 1ms}]")

    assert str(caught.value) == 'llm-scripted complete: connector "model": status 429: slow down'
    assert (caught.value.status, caught.value.retry_after) == (429, 2)


@pytest.mark.parametrize(("written", "seconds"), [("2", 2), ("0.5", 0.5), ("1m", 60), ("250ms", 0.25)])
async def test_a_wait_is_a_duration_or_seconds(written: str, seconds: float):
    with pytest.raises(ProviderError) as caught:
        await answers(f"        turns: [{{error: {{status: 503, message: x, retryAfter: {written}}}}}]")

    assert caught.value.retry_after == seconds


async def test_on_exhausted_repeat_answers_with_the_last_turn_again():
    texts = [
        answer.text for answer in await answers("        onExhausted: repeat\n        turns: [{text: hi}]", ASK, ASK)
    ]

    assert texts == ["hi", "hi"]


async def test_no_network_library_is_loaded():
    command = "import octo.connectors.llm_scripted, sys; sys.exit('httpx' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", command)

    assert await process.wait() == 0


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "problem", "hint"),
    [
        (
            "        model: x",
            "2:5: llm-scripted requires at least one of `turns`, `rules` and `script`",
            None,
        ),
        ("        turns: [{txt: hi}]", '5:18: unknown field "txt" in an entry of `turns`', "did you mean `text`?"),
        (
            "        turns: [{calls: [{name: find, args: 3}]}]",
            "5:45: expected a mapping or text, found a number",
            None,
        ),
        ("        turns: [{files: [{mimeType: a/b, data: '%'}]}]", "5:48: `data` is not base64 text", None),
        (
            "        turns: [{stop: done}]",
            "5:24: expected `end_turn` or `tool_use` or `max_tokens` or `refusal`, found `done`",
            None,
        ),
        (
            "        turns: [{error: {status: 200, message: x}}]",
            "5:34: expected a status from 400 to 599, found 200",
            None,
        ),
        (
            "        turns: [{text: hi, error: {message: x}}]",
            "5:18: `text` has no effect in a reply with `error`",
            "a stream that breaks after some text is `error: {afterText: …}`",
        ),
        (
            "        rules: [{when: body.x, text: hi}]",
            "5:24: compile expression \"body.x\": undeclared reference to 'body'",
            'known names: `call`, `last`, `messages`, `system`, `tools`; text stands in quotes: `"body"`',
        ),
        ("        turns: [{}]\n        chunkSize: 0", "6:20: expected 1 or more, found 0", None),
        ("        turns: [{usage: {inputTokens: -1}}]", "5:39: expected 0 or more, found -1", None),
        ("        rules: [{when: 'true', usage: {promptTokens: -3}}]", "5:54: expected 0 or more, found -3", None),
        ("        turns: [{usage: {reportedCostUSD: -0.5}}]", "5:43: expected 0 or more, found -0.5", None),
        ("        turns: [{usage: {reportedCostUSD: .inf}}]", "5:43: expected 0 or more, found inf", None),
        (
            "        script: gone.yaml",
            "5:17: resource `gone.yaml` does not exist",
            "resources are looked for below `ROOT`",
        ),
        (
            "        script: list.yaml",
            "5:17: list.yaml:1:1: expected a mapping, found a list",
            None,
        ),
        (
            "        script: wrong.yaml",
            '5:17: wrong.yaml:1:10: unknown field "txt" in an entry of `turns`; wrong.yaml:2:9: missing key `when`',
            None,
        ),
        (
            "        script: empty.yaml",
            "5:17: empty.yaml:1:1: a script holds at least one of `turns` and `rules`",
            None,
        ),
        (
            "        script: two.yaml",
            "5:17: two.yaml:2:1: only the first document of a file is read, and another one starts here",
            "put it into a file of its own",
        ),
    ],
    ids=[
        "nothing",
        "unknown key",
        "arguments",
        "base64",
        "stop",
        "status",
        "text with an error",
        "other names in a rule",
        "chunk size",
        "tokens below zero",
        "tokens below zero in a rule",
        "cost below zero",
        "endless cost",
        "no file",
        "a list",
        "faults in a file",
        "an empty file",
        "a file of two documents",
    ],
)
def test_a_wrong_script_is_refused_at_its_place(settings: str, problem: str, hint: str | None):
    files = {
        "list.yaml": "- text: hi\n",
        "wrong.yaml": "turns: [{txt: hi}]\nrules: [{text: hi}]\n",
        "empty.yaml": "",
        "two.yaml": "turns: [{text: a}]\n---\nturns: [{text: b}]\n",
    }

    with pytest.raises(ConfigError) as caught:
        config(connector(settings), files=files)

    [found] = caught.value.problems
    root, _, text = str(found).partition("/config.yaml:")
    assert (text, found.hint and found.hint.replace(root, "ROOT")) == (problem, hint)
