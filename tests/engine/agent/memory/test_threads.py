"""octo/agent/memory/threads.py, octo/agent/memory/settings.py, octo/agent/memory/summary.py: runs on one thread."""

import asyncio
import json
from hashlib import sha256

import pytest

from acting import stop
from fake_model import Listener, call, config_text, reply
from octo.agent.memory.threads import saved
from octo.errors import BlockError, ConfigError, ProviderError, StoreError
from octo.llm.chat import ChatMessage, File, Reasoning, Text, ToolCall, ToolResult, Usage, user
from octo.observe import TurnEnded
from octo.services.base import Conflict, Services
from octo.services.local import LocalQueues, LocalTopics
from octo.services.standalone import VolatileEntries
from octo.testing import harness
from remembering import SAYS, TOOL, Remembering

KEY = "agent-memory/c"


@pytest.fixture
def agent(tmp_path):
    return Remembering(tmp_path / "store")


def put(value, key=KEY):
    """Puts something into the store by hand."""

    def work(db):
        db.execute(
            "INSERT INTO entries (namespace, key, version, value) VALUES ('user', ?, 1, ?)", (key, json.dumps(value))
        )

    return work


def entry(db, key=KEY):
    found = db.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
    return json.loads(found[0]) if found else None


# ---------------------------------------------------------------- what is remembered


async def test_a_run_goes_on_with_what_was_said_before(agent):
    first = reply("Hello.", thinking="hm")
    await agent.say("I am Ada", first)
    ran = await agent.say("Who am I?", reply("Ada"))

    assert ran.requests[0].messages == (user("I am Ada"), first.message, user("Who am I?"))
    assert ran.message.body == "Ada"


async def test_tool_turns_are_remembered_as_they_were(agent):
    replay = {"wire": "gemini", "signature": "s", "n": 1}
    calls = ChatMessage("assistant", (Reasoning("hm", replay), ToolCall("c1", "t", '{"n": 1}', replay)))
    first = reply()
    await agent.say("go", type(first)(calls, "tool_use"), reply("done"))
    ran = await agent.say("and?", reply("ok"))

    assert ran.requests[0].messages == (
        user("go"),
        calls,
        ChatMessage("tool", (ToolResult("c1", "t", '{"done":{"n":1}}'),)),
        ChatMessage("assistant", (Text("done"),)),
        user("and?"),
    )


async def test_every_thread_is_a_conversation_of_its_own(agent):
    await agent.say("I am Ada", reply("Hello."))

    assert (await agent.say("Who am I?", reply("?"), chat="d")).requests[0].messages == (user("Who am I?"),)


async def test_what_is_remembered_is_the_text_of_the_answer_and_not_the_body(agent):
    agent.keys = f"memoryThreadId: '\"c\"'\n{TOOL}"
    await agent.run(reply('```json\n{"a": 1}\n```'), body=1)
    ran = await agent.run(reply("{}"), body=2)

    assert ran.requests[0].messages[1].text == '```json\n{"a": 1}\n```'


async def test_the_store_holds_turns_and_nothing_else(agent):
    await agent.say("hi", reply("Hello.", usage=Usage(prompt_tokens=40)))

    assert await agent.stored(entry) == {
        "v": 1,
        "tokens": 2,
        "messages": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "assistant", "parts": [{"text": "Hello."}]},
        ],
    }


async def test_values_of_secret_variables_are_not_stored(agent):
    agent.environ = {"API_TOKEN": "s3cret-value"}
    await agent.say("it is s3cret-value", reply("I see s3cret-value."))
    stored = await agent.stored(entry)

    assert [turn["parts"][0]["text"] for turn in stored["messages"]] == ["it is ***", "I see ***."]


@pytest.mark.parametrize(("keep", "files"), [("false", []), ("true", ["a.txt"])])
async def test_files_are_remembered_only_when_they_are_kept(agent, keep, files):
    agent.keys = f"keepAttachments: {keep}\nattachments: 'has(body.files) ? body.files : []'\n{SAYS}{TOOL}"
    picture = {"mimeType": "text/plain", "data": "aGk=", "name": "a.txt"}
    await agent.run(reply("", call("t")), reply("done"), body={"say": "look", "chat": "c", "files": [picture]})
    ran = await agent.say("and?", reply("ok"))
    sent = [part for turn in ran.requests[0].messages for part in turn.parts if isinstance(part, File)]

    assert [file.name for file in sent] == files
    assert all(file.data == b"hi" for file in sent)


async def test_blocks_that_compute_one_id_share_one_conversation(agent, tmp_path):
    await agent.say("I am Ada", reply("Hello."))
    other = Remembering(agent.directory, f"model: other\n{SAYS}{TOOL}")

    assert (await other.say("Who am I?", reply("Ada"))).requests[0].messages[0] == user("I am Ada")


async def test_a_volatile_conversation_ends_with_the_process(agent):
    agent.keys = f"memoryVolatile: true\n{SAYS}{TOOL}"
    await agent.say("I am Ada", reply("Hello."))

    assert (await agent.say("Who am I?", reply("?"))).requests[0].messages == (user("Who am I?"),)
    assert not agent.directory.exists()


# ---------------------------------------------------------------- which thread


@pytest.mark.parametrize(
    ("expression", "key"),
    [("body.n", "agent-memory/42"), ("[body.n, true]", "agent-memory/[42,true]"), ("'a b'", "agent-memory/a b")],
    ids=["a number", "a list", "text"],
)
async def test_an_id_is_text_or_its_compact_json(agent, expression, key):
    agent.keys = f'input: body.say\nmemoryThreadId: "{expression}"\n{TOOL}'
    await agent.run(reply("ok"), body={"say": "hi", "n": 42})

    assert await agent.stored(lambda db: [key for (key,) in db.execute("SELECT key FROM entries")]) == [key]


@pytest.mark.parametrize("chat", ["", None])
async def test_without_an_id_nothing_is_remembered_and_that_is_told(agent, chat):
    ran = await agent.say("hi", reply("Hello."), chat=chat)

    assert ran.log == ["`memoryThreadId` is empty, so the agent remembers nothing"]
    assert not agent.directory.exists()


@pytest.mark.parametrize(
    ("memory_id", "log"),
    [
        ("ada", ["memory: memoryThreadId names the conversation; the memory id of this run is not read"]),
        ("0c3f4b5e-0000-4000-8000-00000000000a", []),
    ],
    ids=["text", "an id that may be of a conversation"],
)
async def test_an_id_of_the_run_has_no_effect_in_a_thread_and_that_is_told(agent, memory_id, log):
    ran = await agent.say("hi", reply("Hello."), memory_id=memory_id)

    assert ran.log == log


async def test_an_id_that_cannot_be_computed_fails_before_any_model_call(agent):
    with pytest.raises(BlockError) as caught:
        await agent.run(body={"say": "hi"})

    assert caught.value.message == ('block "ag": ai-agent: memoryThreadId: evaluate expression: no such key: chat')


async def test_the_scope_of_tools_stays_the_same_as_long_as_the_conversation_goes_on(agent):
    scopes = [(await agent.say("go", reply("", call("t")), reply("ok"))).message.vars["toolScope"] for _ in range(2)]

    assert scopes == [f"c/{sha256(b'f.ag').hexdigest()[:16]}/t"] * 2


async def test_the_scope_of_tools_is_new_in_every_run_without_a_thread(agent):
    agent.keys = TOOL
    scopes = [(await agent.run(reply("", call("t")), reply("ok"))).message.vars["toolScope"] for _ in range(2)]

    assert scopes[0] != scopes[1]
    assert all(len(scope) == len("run-/t") + 32 and scope.startswith("run-") for scope in scopes)


NESTED = """
connectors:
  - name: m
    type: llm-scripted
    settings:
      rules:
        - { when: 'system.contains("Inner")', text: inner }
        - { when: 'last.role == "tool"', text: done }
        - { when: 'true', calls: [{ name: ask }] }
flows:
  - name: f
    process:
      - type: ai-agent
        name: outer
        connector: m
        prompt: Outer.
        memoryThreadId: body.chat
        tools:
          - name: ask
            description: Asks.
            process:
              - type: ai-agent
                name: inner
                connector: m
                prompt: Inner.
                memoryThreadId: vars.toolScope
                memoryVolatile: true
                tools: [{ name: t, description: t, process: [] }]
"""


async def test_an_agent_in_a_tool_remembers_as_long_as_the_conversation_around_it():
    async with harness.runtime(NESTED) as octo:
        for chat in ("a", "a", "b"):
            await octo.invoke("f", {"chat": chat})
        scope = sha256(b"f.outer").hexdigest()[:16]
        kept = {
            chat: await octo.services.entries.get("user_volatile", f"agent-memory/{chat}/{scope}/ask") for chat in "ab"
        }

    assert {chat: len(entry.value["messages"]) for chat, entry in kept.items()} == {"a": 4, "b": 2}


# ---------------------------------------------------------------- when it is kept


async def test_a_model_call_that_fails_leaves_the_last_tool_turn(agent):
    with pytest.raises(BlockError):
        await agent.say("go", reply("", call("t", {"n": 1}, "c1")), ProviderError("down"))
    ran = await agent.say("and?", reply("ok"))

    assert [turn.role for turn in ran.requests[0].messages] == ["user", "assistant", "tool", "user"]
    assert ran.log == []


async def test_a_first_model_call_that_fails_leaves_nothing(agent):
    with pytest.raises(BlockError):
        await agent.say("go", ProviderError("down"))

    assert not agent.directory.exists()


WITH_DEFAULT = f"{SAYS}{TOOL}default: {{process: [{{type: set-payload, settings: {{value: '1'}}}}]}}\n"


@pytest.mark.parametrize(
    ("keys", "replies", "roles"),
    [
        ("", [reply("I cannot.", stop="refusal")], ["user", "assistant"]),
        ("maxIterations: 1\n", [reply("", call("t"))], ["user", "assistant", "tool"]),
        ("budget: {maxTokens: 5}\n", [reply("", call("t"), usage=Usage(9, 9))], ["user", "assistant", "tool"]),
    ],
    ids=["a refusal", "the cap", "a spent budget"],
)
async def test_a_run_that_gives_up_is_remembered(agent, keys, replies, roles):
    agent.keys = keys + WITH_DEFAULT
    await agent.say("go", *replies)
    stored = await agent.stored(entry)

    assert [turn["role"] for turn in stored["messages"]] == roles


async def test_a_run_that_a_tool_stops_is_remembered(agent):
    agent.actions = {"work": stop}
    await agent.say("go", reply("", call("t")))

    assert [turn["role"] for turn in (await agent.stored(entry))["messages"]] == ["user", "assistant", "tool"]


class Contested(VolatileEntries):
    """Entries that others have written just before, so many times."""

    def __init__(self, times):
        super().__init__(lambda: 0)
        self.times = times

    async def put(self, namespace, key, value, *, expected=None, ttl=None):
        if self.times:
            self.times -= 1
            await super().put(namespace, key, [])
            raise Conflict
        return await super().put(namespace, key, value, expected=expected, ttl=ttl)


@pytest.mark.parametrize(
    ("times", "log"),
    [(4, []), (5, ["the conversation could not be kept: kv: object version conflict"])],
)
async def test_the_later_of_two_runs_has_its_way_after_five_attempts_at_most(agent, times, log):
    entries = Contested(times)
    agent.services = Services(entries, LocalQueues(), LocalTopics())
    ran = await agent.say("go", reply("ok"))
    kept = await entries.get("user", KEY)

    assert ran.log == log
    assert (kept.value == []) is bool(log)


async def test_the_last_write_of_a_run_takes_no_longer_than_it_may():
    warnings = []
    await saved(lambda: asyncio.sleep(60), warnings.append, within=0.001)

    assert warnings == ["the conversation could not be kept within 0.001 s"]


class Unreadable(VolatileEntries):
    async def get(self, namespace, key):
        raise StoreError("the disk is gone")


async def test_a_store_that_cannot_be_read_fails_the_run_before_any_model_call(agent):
    agent.services = Services(Unreadable(lambda: 0), LocalQueues(), LocalTopics())
    with pytest.raises(BlockError) as caught:
        await agent.say("go")

    assert (
        caught.value.message == 'block "ag": ai-agent: the conversation of thread `c` cannot be read: the disk is gone'
    )


# ---------------------------------------------------------------- what cannot be read, or only in part


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x", "expected a mapping, found text"),
        ({"v": 2, "messages": []}, "it was written by another version of octo"),
        ({"v": 1}, "expected a list of messages, found null"),
        ([{"role": "user"}], "message 0: `parts` must be a list, found null"),
    ],
)
async def test_a_conversation_that_is_none_fails_the_run(agent, value, why):
    await agent.stored(put(value))
    with pytest.raises(BlockError) as caught:
        await agent.say("go")

    assert caught.value.message == f'block "ag": ai-agent: the conversation of thread `c` cannot be read: {why}'
    assert (
        caught.value.hint
        == "`octo memory delete` and the block `clear-agent-memory` forget it; then the thread begins anew"
    )


async def test_a_bare_list_of_messages_is_read(agent):
    await agent.stored(put([{"role": "user", "parts": [{"text": "I am Ada"}]}]))

    assert (await agent.say("Who?", reply("Ada"))).requests[0].messages == (user("I am Ada"), user("Who?"))


async def test_a_broken_conversation_is_repaired_with_one_warning_and_goes_on(agent):
    broken = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "assistant", "parts": [{"text": " "}, {"call": "t", "id": "a", "arguments": "{}"}]},
        {"role": "user", "parts": [{"text": ""}]},
        {"role": "tool", "parts": [{"result": "1", "id": "z", "name": "t"}]},
    ]
    await agent.stored(put({"v": 1, "tokens": 0, "messages": broken}))
    ran = await agent.say("and?", reply("ok"))

    assert ran.requests[0].messages == (
        user("go"),
        ChatMessage("assistant", (ToolCall("a", "t", "{}"),)),
        ChatMessage("tool", (ToolResult("a", "t", "interrupted, outcome unknown", is_error=True),)),
        user("and?"),
    )
    assert ran.log == [
        "the stored conversation was not whole and has been repaired: calls without a result: 1, "
        "results without a call: 1, parts that are blank or out of place: 2"
    ]
    assert (await agent.say("and now?", reply("ok"))).log == []


async def test_an_empty_answer_is_no_reason_for_a_warning_later(agent):
    await agent.say("go", reply("", call("t")), reply(""))
    ran = await agent.say("and?", reply("ok"))

    assert ran.log == []
    assert [turn.role for turn in ran.requests[0].messages] == ["user", "assistant", "tool", "user"]


async def test_half_an_emoji_in_a_result_does_not_end_the_conversation(agent):
    await agent.say("a \ud83d", reply("b \ud83d", call("t", '{"x": "\\ud83d"}')), reply("c \ud83d"))
    ran = await agent.say("and?", reply("ok"))

    assert [part.text for turn in ran.requests[0].messages for part in turn.parts if hasattr(part, "text")] == [
        "a \ufffd",
        "b \ufffd",
        '{"done":{"x":"\ufffd"}}',
        "c \ufffd",
        "and?",
    ]


# ---------------------------------------------------------------- the budget of tokens

LONG = "word " * 200


async def test_what_is_stored_is_within_the_budget(agent):
    agent.keys = f"contextMaxTokens: 600\n{SAYS}{TOOL}"
    for text in ("one", "two", "three"):
        await agent.say(f"{text} {LONG}", reply(LONG))
    stored = await agent.stored(entry)

    assert [turn["parts"][0]["text"][:5] for turn in stored["messages"]] == ["three", "word "]


async def test_a_summary_takes_the_place_of_older_exchanges(agent):
    agent.keys = f"contextMaxTokens: 600\nmemoryCompaction: summarize\nmodel: big\n{SAYS}{TOOL}"
    turns = Listener(TurnEnded)
    await agent.say(f"one {LONG}", reply("1"))
    ran = await agent.say(f"two {LONG}", reply(LONG), reply(" They counted. \n"), observers=[turns])
    asked = ran.requests[1]
    after = await agent.say("three", reply("3"))

    assert (asked.tools, asked.model, len(asked.messages)) == ((), "big", 1)
    assert asked.messages[0].text == f"user: one {LONG}\n\nassistant: 1\n\nuser: two {LONG}\n\nassistant: {LONG}"
    assert [event.purpose for event in turns.events] == ["", "memory-compaction"]
    assert after.requests[0].messages[:2] == (
        user("Summary of the earlier conversation:\nThey counted."),
        user("three"),
    )


async def test_a_summary_that_fails_never_fails_the_run(agent):
    agent.keys = f"contextMaxTokens: 600\nmemoryCompaction: summarize\n{SAYS}{TOOL}"
    await agent.say(f"one {LONG}", reply("1"))
    ran = await agent.say(f"two {LONG}", reply(LONG), ProviderError("down"))
    stored = await agent.stored(entry)

    assert ran.log == ["the conversation could not be summarized: ai-agent: down"]
    assert ran.message.body == LONG
    assert [turn["parts"][0]["text"][:3] for turn in stored["messages"]] == ["two", "wor"]


async def test_within_a_run_old_tool_turns_go_once_a_provider_has_counted(agent):
    agent.keys = f"contextMaxTokens: 1000\n{TOOL}"
    big = {"text": "x" * 1200}
    usages = [Usage(prompt_tokens=n) for n in (20, 640, 640)]
    ran = await agent.run(
        *(reply("", call("t", big, f"c{n}"), usage=usage) for n, usage in enumerate(usages)), reply("done"), body="go"
    )

    assert [len(request.messages) for request in ran.requests] == [1, 3, 3, 3]
    assert [request.messages[0] for request in ran.requests] == [ran.requests[0].messages[0]] * 4


@pytest.mark.parametrize("tokens", [0, -1])
async def test_a_budget_of_nothing_is_the_usual_one(agent, tokens):
    agent.keys = f"contextMaxTokens: {tokens}\n{SAYS}{TOOL}"
    await agent.say(LONG, reply(LONG))

    assert len((await agent.say("and?", reply("ok"))).requests[0].messages) == 3


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("memoryCompaction: cut\n", "ai-agent: `memoryCompaction` is `prune` or `summarize`, found `cut`"),
        ("history: all\n", "ai-agent: `history` is `record` or `off`, found `all`"),
        ("history: record\n", "ai-agent: `history: record` requires `agentId`"),
        ("userMemory: true\nuserId: body\n", "ai-agent: `userMemory` requires `agentId`"),
        ("nameThread: {process: []}\nagentId: ' '\n", "ai-agent: `nameThread` requires `agentId`"),
        ("forwardContext: body\n", "ai-agent: `forwardContext` requires `agentId`"),
        ("agentId: a\n", "ai-agent: `agentId` requires `memoryThreadId`, for memory is per conversation"),
        (
            "agentId: a\nmemoryThreadId: body\nuserMemory: true\n",
            "ai-agent: `userMemory` requires `userId`, for facts are about a person",
        ),
    ],
)
def test_keys_that_do_not_go_together_are_refused(agent, keys, text):
    with pytest.raises(ConfigError) as caught:
        harness.config(config_text(keys + TOOL))

    assert [problem.message for problem in caught.value.problems] == [text]


@pytest.mark.parametrize("name", ["remember", "forget", "search_memory"])
@pytest.mark.parametrize("on", [True, False])
def test_names_of_memory_tools_are_reserved_while_there_are_some(name, on):
    keys = f"agentId: a\nmemoryThreadId: body\nuserId: body\nuserMemory: {str(on).lower()}\n"
    text = config_text(keys + TOOL.replace("name: t", f"name: {name}"))
    if not on:
        assert harness.config(text).flows
        return
    with pytest.raises(ConfigError) as caught:
        harness.config(text)

    assert [problem.message for problem in caught.value.problems] == [
        f"ai-agent tool `{name}`: the name is reserved while `userMemory` is on"
    ]


@pytest.mark.parametrize("key", ["memoryThreadId", "userId", "forwardContext"])
def test_expressions_that_do_not_compile_are_refused_at_their_key(key):
    with pytest.raises(ConfigError) as caught:
        harness.config(config_text(f"{key}: '1 +'\n{TOOL}"))

    (problem,) = caught.value.problems
    assert problem.message == 'compile expression "1 +": unexpected end of expression'
