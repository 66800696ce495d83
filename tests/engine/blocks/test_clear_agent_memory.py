"""Forgetting the conversation of a thread."""

import pytest

from fake_model import Listener, call, reply
from octo.errors import BlockError, ConfigError, StoreError
from octo.observe import LogLine
from octo.runtime import Runtime
from octo.services.base import Services
from octo.services.local import LocalQueues, LocalTopics
from octo.services.standalone import VolatileEntries
from octo.store import conversations, facts
from octo.store.facts import Person
from octo.store.store import Store
from octo.testing import harness
from remembering import SAYS, TOOL, Remembering

CLEAR = """
flows:
  - name: main
    process:
      - type: clear-agent-memory
        settings: {threadId: body, SETTINGS}
"""


async def clear(directory, body, settings="", **options):
    with Store(directory) as store:
        async with Runtime(harness.config(CLEAR.replace("SETTINGS", settings)), store=store, **options) as octo:
            return await octo.invoke("main", body)


@pytest.fixture
def agent(tmp_path):
    return Remembering(tmp_path / "store", SAYS + TOOL)


async def test_a_thread_begins_anew_and_the_message_passes(agent):
    await agent.say("hi", reply("Hello."))
    await agent.say("hi", reply("Hello."), chat="d")
    message = await clear(agent.directory, "c")

    assert message.body == "c"
    assert len((await agent.say("hi", reply("Hello."))).requests[0].messages) == 1
    assert len((await agent.say("hi", reply("Hello."), chat="d")).requests[0].messages) == 3


async def test_with_the_id_of_an_agent_its_conversation_goes_and_facts_stay(agent):
    agent.keys = f"agentId: helper\n{SAYS}{TOOL}"
    await agent.say("hi", reply("Hello."))
    await agent.stored(lambda db: facts.save(db, Person("helper", "ada"), "diet", "vegan", now=1))
    await clear(agent.directory, "c")
    kept = await agent.stored(conversations.rows)
    await clear(agent.directory, "c", "agentId: helper")

    assert len(kept) == 1
    assert await agent.stored(conversations.rows) == []
    assert len(await agent.stored(facts.rows)) == 1


async def test_a_thread_in_memory_only_is_forgotten_too(agent):
    text = f"""
connectors: [{{name: m, type: llm-scripted, settings: {{rules: [{{when: 'true', text: ok}}]}}}}]
flows:
  - name: ask
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: x
        memoryThreadId: '"c"'
        memoryVolatile: true
        tools: [{{name: t, description: d, process: []}}]
{CLEAR.replace("SETTINGS", "").replace("flows:", "")}
"""
    counts = []
    async with harness.runtime(text) as octo:
        for flow, body in (("ask", 1), ("main", "c"), ("ask", 1)):
            await octo.invoke(flow, body)
            counts.append((await octo.services.entries.get("user_volatile", "agent-memory/c")) is not None)

    assert counts == [True, False, True]


async def test_a_thread_that_is_not_there_is_fine_and_no_store_is_made(agent):
    assert (await clear(agent.directory, "none", "agentId: helper")).body == "none"
    assert not agent.directory.exists()


@pytest.mark.parametrize("body", [None, ""], ids=["null", "empty"])
async def test_without_an_id_nothing_is_forgotten_which_is_told(agent, body):
    log = Listener(LogLine)
    await agent.say("hi", reply("Hello."), chat="null")
    await clear(agent.directory, body, observers=[log])

    assert [(line.level, line.text) for line in log.events] == [
        ("warn", "`threadId` is empty, so nothing is forgotten")
    ]
    assert len((await agent.say("hi", reply("Hello."), chat="null")).requests[0].messages) == 3


FORGETFUL = """
input: body.say
answer: text
memoryThreadId: body.chat
KEYS
tools:
  - name: forget_all
    description: Forgets what was said.
    process: [{type: clear-agent-memory, settings: {threadId: '"c"', KEYS}}]
  - name: look
    description: Looks.
    process: []
"""


@pytest.mark.parametrize("keys", ["", "agentId: helper"], ids=["a thread", "with an agent's id"])
async def test_what_an_agent_forgets_by_a_tool_of_its_own_does_not_come_back(agent, keys):
    agent.keys = FORGETFUL.replace("KEYS", keys)
    await agent.say("I am Ada.", reply("Hello."))
    ran = await agent.say("Forget it.", reply("", call("forget_all")), reply("", call("look")), reply("Done."))
    after = await agent.say("Who am I?", reply("I do not know."))

    assert [message.text for message in ran.requests[1].messages if message.role == "user"] == ["Forget it."]
    assert [message.text for message in after.requests[0].messages if message.role == "user"] == [
        "Forget it.",
        "Who am I?",
    ]
    titles = [row.title for row in await agent.stored(conversations.rows)]
    assert titles == (["Forget it."] if keys else [])


async def test_an_id_that_cannot_be_computed_fails(agent):
    with pytest.raises(BlockError) as caught:
        async with harness.runtime(CLEAR.replace("body, SETTINGS", "body.x")) as octo:
            await octo.invoke("main", {})

    assert caught.value.message == (
        'block "clear-agent-memory": clear-agent-memory threadId: evaluate expression: no such key: x'
    )


class Unwritable(VolatileEntries):
    async def delete(self, namespace, key, *, expected=None):
        raise StoreError("the disk is full")


async def test_a_store_that_fails_fails_the_block(agent):
    services = Services(Unwritable(lambda: 0), LocalQueues(), LocalTopics())
    with pytest.raises(BlockError) as caught:
        await clear(agent.directory, "c", services=services)

    assert caught.value.message == 'block "clear-agent-memory": clear-agent-memory "c": the disk is full'


def test_the_thread_has_to_be_named():
    with pytest.raises(ConfigError) as caught:
        harness.config(CLEAR.replace("threadId: body, SETTINGS", "agentId: a"))

    assert [problem.message for problem in caught.value.problems] == ["clear-agent-memory requires `threadId`"]
