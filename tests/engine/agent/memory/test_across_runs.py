"""octo/agent/memory/threads.py, octo/agent/memory/codec.py: one thread in run after run, on the wires of vendors."""

from __future__ import annotations

import base64
import itertools
import json

import pytest

from octo.errors import BlockError
from octo.runtime import Runtime
from octo.store.store import Store
from octo.testing import harness
from vendor import AnthropicServer, anthropic
from vendor import gemini as google
from vendor.gemini import GeminiServer

CONFIG = """
connectors:
  - {{ name: m, type: {type}, settings: {{ apiKey: k, baseURL: "{url}", {settings} }} }}
flows:
  - name: chat
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Talk.
        input: body.say
        answer: text
        attachments: 'has(body.files) ? body.files : []'
        memoryThreadId: '"t"'
        {keys}
        tools:
          - name: t
            description: A tool.
            process: [{{ type: set-payload, settings: {{ value: '{{"got": body}}' }} }}]
"""


async def say(directory, server, text, keys="", **body):
    """The answer of a run in a runtime of its own."""
    is_gemini = isinstance(server, GeminiServer)
    config = CONFIG.format(
        type="llm-gemini" if is_gemini else "llm-anthropic",
        url=f"{server.url}/v1beta" if is_gemini else server.url,
        settings="" if is_gemini else "thinking: adaptive",
        keys=keys,
    )
    with Store(directory / "store") as store:
        async with Runtime(harness.config(config), store=store) as runtime:
            return (await runtime.invoke("chat", {"say": text, **body})).body


# ---------------------------------------------------------------- signatures and ids


@pytest.mark.parametrize(
    "first",
    [
        google.reply(calls=[google.call("t", {"n": 1}, signed=True)]),
        google.reply(thinking=google.Said("hm", thought=True), calls=[google.call("t", {"n": 1}, signed=True)]),
        google.reply(calls=[google.call("t", {"n": 1}, signed=True), google.call("t", {"n": 2}, signed=True)]),
        google.reply("I look.", calls=[google.call("t", {"n": 1}, "own-id", signed=True)]),
    ],
    ids=["on the call", "after a thought", "on two calls", "with an id"],
)
async def test_signatures_of_gemini_are_the_same_bytes_in_the_next_process(tmp_path, first):
    with GeminiServer([first, google.reply("done"), google.reply("ok")]) as server:
        await say(tmp_path, server, "go")
        await say(tmp_path, server, "and?")
        sent = [request.json["contents"] for request in server.requests]

    assert server.refusals == []
    assert sent[2][: len(sent[1])] == sent[1]
    assert [part for turn in sent[2] for part in turn["parts"] if "thoughtSignature" in part] != []


@pytest.mark.parametrize("ids", [(None, None), ("a", "b")], ids=["without ids", "with ids"])
async def test_two_calls_of_one_tool_keep_their_own_results_with_another_vendor(tmp_path, ids):
    calls = [google.call("t", {"n": n}, id) for n, id in enumerate(ids, 1)]
    with GeminiServer([google.reply(calls=calls), google.reply("done")]) as server:
        await say(tmp_path, server, "go")
    with AnthropicServer([anthropic.reply("ok")]) as other:
        assert await say(tmp_path, other, "and?") == "ok"
        turns = other.requests[0].json["messages"]
    made = [part for turn in turns for part in turn["content"] if part["type"] == "tool_use"]
    given = [part for turn in turns for part in turn["content"] if part["type"] == "tool_result"]

    assert other.refusals == server.refusals == []
    assert [part["input"] for part in made] == [{"n": 1}, {"n": 2}]
    assert [part["tool_use_id"] for part in given] == [part["id"] for part in made]
    assert [json.loads(text_of(part)) for part in given] == [{"got": {"n": 1}}, {"got": {"n": 2}}]
    assert len({part["id"] for part in made}) == 2


def text_of(part):
    content = part["content"]
    return content if isinstance(content, str) else content[0]["text"]


async def test_signed_thoughts_are_the_same_bytes_in_the_next_process(tmp_path):
    said = [
        anthropic.reply(thinking="hm \n", calls=[anthropic.call("t", {"n": 1})]),
        anthropic.reply(thinking=["", anthropic.Redacted()], calls=[anthropic.call("t", {"n": 2})]),
        anthropic.reply("done"),
    ]
    with AnthropicServer([*said, anthropic.reply("ok")]) as server:
        await say(tmp_path, server, "go")
        await say(tmp_path, server, "and?")
        sent = [request.json["messages"] for request in server.requests]

    assert server.refusals == []
    assert without_marks(sent[3][: len(sent[2])]) == without_marks(sent[2])


# ---------------------------------------------------------------- the prompt cache


def without_marks(value):
    """The value without marks of the cache, which move on with the conversation."""
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


async def test_what_was_sent_before_stands_at_the_head_of_every_later_prompt(tmp_path):
    replies = [
        anthropic.reply(calls=[anthropic.call("t", {"b": 1, "a": 2})]),
        anthropic.reply("one"),
        anthropic.reply(calls=[anthropic.call("t", {"z": 1, "a": 2})]),
        anthropic.reply("two"),
        anthropic.reply("three"),
    ]
    with AnthropicServer(replies) as server:
        for text in ("first", "second", "third"):
            await say(tmp_path, server, text)
        bodies = [request.json for request in server.requests]

    assert len({json.dumps([body["system"], body["tools"]]) for body in bodies}) == 1
    for earlier, later in itertools.pairwise(bodies):
        head = json.dumps(without_marks(earlier["messages"]))[:-1]
        assert json.dumps(without_marks(later["messages"])).startswith(head)


async def test_compaction_leaves_the_head_of_the_prompt_as_it_is(tmp_path):
    words = "word " * 100
    replies = [anthropic.reply(f"{n} {words}", usage={"input_tokens": 126 * (2 * n + 1)}) for n in range(4)]
    with AnthropicServer(replies) as server:
        for n in range(4):
            await say(tmp_path, server, f"{n} {words}", keys="contextMaxTokens: 600")
        bodies = [request.json for request in server.requests]

    assert len({json.dumps([body["system"], body["tools"]]) for body in bodies}) == 1
    assert [len(body["messages"]) for body in bodies] == [1, 3, 5, 5]


# ---------------------------------------------------------------- what a vendor refuses


async def test_a_file_that_was_refused_does_not_stay_in_the_thread(tmp_path):
    broken = {"mimeType": "image/png", "data": base64.b64encode(b"\x89PNG\r\n\x1a\nbroken").decode()}
    refusal = anthropic.error(400, "Could not process image")
    with AnthropicServer([refusal, anthropic.reply("ok")]) as server:
        with pytest.raises(BlockError, match="Could not process image"):
            await say(tmp_path, server, "look", keys="keepAttachments: true", files=[broken])

        assert await say(tmp_path, server, "and?", keys="keepAttachments: true") == "ok"
        assert "image" not in json.dumps(server.requests[-1].json["messages"])


async def test_a_kept_file_goes_out_under_the_type_of_its_bytes_in_the_next_process(tmp_path):
    picture = {"mimeType": "image/jpeg", "data": base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 8).decode()}
    with AnthropicServer([anthropic.reply("a cat"), anthropic.reply("ok")]) as server:
        await say(tmp_path, server, "look", keys="keepAttachments: true", files=[picture])
        await say(tmp_path, server, "and?", keys="keepAttachments: true")
        content = server.requests[1].json["messages"][0]["content"]

    assert server.refusals == []
    assert [part["source"]["media_type"] for part in content if part["type"] == "image"] == ["image/png"]


# ---------------------------------------------------------------- empty replies and blank results


async def test_an_empty_reply_twice_fails_and_leaves_the_thread_as_it_was(tmp_path):
    replies = [anthropic.reply("one"), anthropic.reply(), anthropic.reply(), anthropic.reply("two")]
    with AnthropicServer(replies) as server:
        await say(tmp_path, server, "first")
        with pytest.raises(BlockError, match="the model gave an empty answer twice, and no tool ran"):
            await say(tmp_path, server, "second")

        assert await say(tmp_path, server, "third") == "two"
        texts = [part["text"] for turn in server.requests[-1].json["messages"] for part in turn["content"]]

    assert texts == ["first", "one", "third"]
    assert server.refusals == []


@pytest.mark.parametrize("text", ["", " ", "\n\t", "null"])
async def test_blank_results_are_no_trouble_later(tmp_path, text):
    calls = anthropic.reply(" ", calls=[anthropic.call("t", {"text": text})])
    with AnthropicServer([calls, anthropic.reply(" "), anthropic.reply("ok")]) as server:
        await say(tmp_path, server, "go")

        assert await say(tmp_path, server, "and?") == "ok"
        assert server.refusals == []
