"""octo/agent/memory/transcript.py, octo/agent/memory/keyed.py: conversations that are written down for people."""

import pytest

from fake_model import FakeModel, FakeRuntime, Listener, call, reply
from octo.agent.memory.transcript import title
from octo.observe import LogLine
from octo.store import memories, transcripts
from octo.store.store import Store
from octo.testing import harness

ID = "0c3f4b5e-0000-4000-8000-00000000000a"
CONFIG = """
env: [{{name: API_KEY, default: sesame-open}}]
connectors: [{{name: m, type: llm-scripted, settings: {{turns: [{{text: x}}]}}}}]
flows:
  - name: chat
    process:
      - type: ai-agent
        name: desk
        connector: m
        prompt: Do it.
        answer: text
        input: body
        tools:
          - {{name: find, description: F., process: [{{type: set-payload, settings: {{value: '{{"found": body}}'}}}}]}}
          - {{name: fail, description: F., process: [{{type: set-payload, settings: {{value: body.x.y}}}}]}}
        {keys}
"""


class Chat:
    """Runs the agent over a store, in which a conversation may have begun."""

    def __init__(self):
        self.store = Store()
        self.log = Listener(LogLine)

    async def begin(self):
        work = lambda db: transcripts.begin(db, ID, flow="chat", title="Hello", now=1)  # noqa: E731
        await self.store.write(work)

    async def say(self, text, *replies, keys="", memory_id=ID):
        config = harness.config(CONFIG.format(keys=keys))
        runtime = FakeRuntime(config, store=self.store, observers=[self.log], clock=lambda: 7)
        runtime.model = FakeModel(replies)
        async with runtime:
            return await runtime.invoke("chat", text, memory_id=memory_id)

    async def rows(self):
        """The rows: role, text, whether all went well, thinking, arguments and result."""
        found = await self.store.read(lambda db: transcripts.rows(db, ID), [])
        return [(row.role, row.text, row.ok, row.thinking, row.arguments, row.result) for row in found]


@pytest.fixture
def chat():
    made = Chat()
    yield made
    made.store.close()


async def test_rows_stand_in_the_order_of_the_turns(chat):
    await chat.begin()
    await chat.say(
        "Hi",
        reply("Let me see.", call("find", {"a": 1}, "1"), call("fail", {}, "2"), thinking="Hm."),
        reply("", call("find", {"a": 2}, "1"), call("nothing", {}, "2"), thinking="Again."),
        reply("There."),
    )

    assert await chat.rows() == [
        ("assistant", "Let me see.", True, "Hm.", "", ""),
        ("tool", "Used find tool", True, "", '{"a": 1}', '{"found":{"a":1}}'),
        (
            "tool",
            "Error executing fail",
            False,
            "",
            "{}",
            'block "set-payload": set-payload value: evaluate expression: no such key: x',
        ),
        ("tool", "Used find tool", True, "Again.", '{"a": 2}', '{"found":{"a":2}}'),
        ("tool", "Error executing nothing", False, "", "{}", 'unknown tool "nothing"'),
        ("assistant", "There.", True, "", "", ""),
    ]


async def test_a_row_tells_the_run_the_block_and_the_time(chat):
    await chat.begin()
    message = await chat.say("Hi", reply("Hello."))

    (row,) = await chat.store.read(lambda db: transcripts.rows(db, ID), [])
    assert (row.run, row.block, row.at) == (message.event_id, "desk", 7)


async def test_a_structured_answer_is_one_row(chat):
    await chat.begin()
    schema = "model: claude-x\n        outputSchema: {type: object, properties: {n: {type: number}}}"
    await chat.say("Hi", reply("", call("structured_output", {"n": 1})), keys=schema)

    assert await chat.rows() == [("assistant", '{"n": 1}', True, "", "", "")]


async def test_what_is_done_when_a_model_call_fails_is_written(chat):
    await chat.begin()
    from octo.errors import ProviderError

    with pytest.raises(Exception, match="down"):
        await chat.say("Hi", reply("", call("find")), ProviderError("down", provider="m"))

    assert [row[1] for row in await chat.rows()] == ["Used find tool"]


async def test_a_run_whose_id_is_no_stored_conversation_writes_none(chat):
    for id in (ID, "customer-1", ""):
        await chat.say("Hi", reply("Hello."), memory_id=id)

    assert await chat.rows() == []
    assert chat.log.events and all("transcript" not in line.text for line in chat.log.events)


async def test_a_block_can_stay_out_of_the_conversation_and_still_remember(chat):
    await chat.begin()
    keys = "omitFromConversation: true\n        memory: {kind: window, contextLength: 4}"
    await chat.say("Hi", reply("Hello."), keys=keys)

    assert await chat.rows() == []
    assert [row.place.key for row in await chat.store.read(memories.rows, [])] == [ID]


async def test_the_conversation_is_that_of_the_run_when_the_block_names_another_memory(chat):
    await chat.begin()
    other = "0c3f4b5e-0000-4000-8000-00000000000b"
    keys = f"memoryId: {{value: {other}}}\n        memory: {{kind: window, contextLength: 4}}"
    await chat.say("Hi", reply("Hello."), keys=keys)

    assert [row[1] for row in await chat.rows()] == ["Hello."]
    assert [row.place.key for row in await chat.store.read(memories.rows, [])] == [other]


async def test_a_conversation_holds_no_secret(chat):
    await chat.begin()
    await chat.say("Hi", reply("It is sesame-open.", call("find", {"k": "sesame-open"})), reply("Done."))

    assert "sesame" not in str(await chat.rows())


async def test_a_conversation_that_cannot_be_written_is_logged_and_fails_nothing(chat):
    await chat.begin()
    await chat.store.write(lambda db: db.execute("DROP TABLE transcript_rows"))

    message = await chat.say("Hi", reply("Hello."))

    lines = [line.text for line in chat.log.events if line.level == "warn"]
    assert message.body == "Hello."
    assert lines == ["could not store the transcript: `:memory:`: no such table: transcript_rows"]


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        ("Hello there", "Hello there"),
        ("x" * 25, "x" * 25),
        ("x" * 26, "x" * 25 + "…"),
        ("Where is\nthe  station of this town?", "Where is the station of t…"),
        ("Where is the station and more", "Where is the station and…"),
    ],
)
def test_the_title_is_the_beginning_of_the_first_message(first, shown):
    assert title(first) == shown
