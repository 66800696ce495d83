"""octo/agent/memory/conversations.py, octo/agent/memory/naming.py: conversations of agents that have an id."""

import json
from dataclasses import replace

import pytest

from acting import drop, stop
from fake_model import Listener, call, reply
from octo.errors import BlockError, ProviderError, StoreError
from octo.llm.chat import ChatMessage, File, Text, ToolResult, user
from octo.observe import LogLine
from octo.store import conversations
from octo.store.conversations import Place
from octo.store.store import Store
from remembering import SAYS, TOOL, Remembering

AGENT = f"agentId: ' helper '\nuserId: body.user\n{SAYS}{TOOL}"
PLACE = Place("helper", "c")


@pytest.fixture
def agent(tmp_path):
    return Remembering(tmp_path / "store", AGENT)


async def ask(agent, text, *replies, who="ada", **more):
    return await agent.run(*replies, body={"say": text, "chat": "c", "user": who}, **more)


def history(db):
    """What is kept for good, without times."""
    turns = conversations.last(db, PLACE, 100)
    return [(turn.role, turn.text, turn.iterations, turn.unanswered, turn.stop_reason) for turn in turns]


def title(db):
    (row,) = conversations.rows(db)
    return row.title


def working(db):
    found = conversations.working(db, PLACE)
    return json.loads(found.memory) if found else None


# ---------------------------------------------------------------- what the agent goes on with


async def test_a_run_goes_on_with_what_was_said_before(agent):
    await ask(agent, "I am Ada", reply("Hello."))
    ran = await ask(agent, "Who am I?", reply("Ada"))

    assert [turn.text for turn in ran.requests[0].messages] == ["I am Ada", "Hello.", "Who am I?"]
    assert ran.log == []


async def test_agents_with_one_id_share_their_conversations_and_others_do_not(agent):
    await ask(agent, "I am Ada", reply("Hello."))
    same = Remembering(agent.directory, f"model: other\n{AGENT}")
    other = Remembering(agent.directory, AGENT.replace("helper", "stranger"))

    assert len((await ask(same, "Who am I?", reply("Ada"))).requests[0].messages) == 3
    assert len((await ask(other, "Who am I?", reply("?"))).requests[0].messages) == 1


async def test_a_thread_that_was_kept_before_the_agent_had_an_id_is_taken_over(agent):
    before = Remembering(agent.directory, SAYS + TOOL)
    await ask(before, "I am Ada", reply("Hello."))
    ran = await ask(agent, "Who am I?", reply("Ada"))

    assert len(ran.requests[0].messages) == 3
    assert await agent.stored(lambda db: db.execute("SELECT count(*) FROM entries").fetchone()[0]) == 0
    assert (await agent.stored(title)) == ""


async def test_a_run_that_fails_before_its_first_write_leaves_the_older_thread(agent):
    before = Remembering(agent.directory, SAYS + TOOL)
    await ask(before, "I am Ada", reply("Hello."))
    with pytest.raises(BlockError):
        await ask(agent, "Who?", ProviderError("down"))

    assert len((await ask(agent, "Who am I?", reply("Ada"))).requests[0].messages) == 3


async def test_tool_turns_are_kept_as_soon_as_they_are_over(agent):
    with pytest.raises(BlockError):
        await ask(agent, "go", reply("", call("t")), ProviderError("down"))

    assert [turn["role"] for turn in (await agent.stored(working))["messages"]] == ["user", "assistant", "tool"]
    assert await agent.stored(history) == []


class Broken(Store):
    """A store whose conversations cannot be read."""

    async def read(self, work, otherwise):
        raise StoreError("the disk is gone")


async def test_a_conversation_that_cannot_be_read_is_as_none_and_is_not_written_over(agent):
    await ask(agent, "I am Ada", reply("Hello."))
    agent.store = Broken
    ran = await ask(agent, "Who?", reply("", call("t")), reply("?"))

    assert len(ran.requests[0].messages) == 1
    assert ran.log == ["the conversation cannot be read, so the run begins anew and keeps nothing: the disk is gone"]
    assert len((await agent.stored(working))["messages"]) == 2


@pytest.mark.parametrize("memory", ["{", '{"v": 9}', "[1]"])
async def test_a_conversation_that_is_none_begins_anew(agent, memory):
    await agent.stored(lambda db: conversations.save_working(db, PLACE, memory, expected=0, user="", now=1))
    ran = await ask(agent, "hi", reply("Hello."))

    assert [line.partition(": ")[0] for line in ran.log] == [
        "the stored conversation cannot be read, so the run begins anew"
    ]
    assert len((await agent.stored(working))["messages"]) == 2


async def test_a_broken_conversation_is_repaired_with_one_warning(agent):
    turns = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "assistant", "parts": [{"call": "t", "id": "a", "arguments": "{}"}]},
    ]
    memory = json.dumps({"v": 1, "tokens": 0, "messages": turns})
    await agent.stored(lambda db: conversations.save_working(db, PLACE, memory, expected=0, user="", now=1))
    ran = await ask(agent, "and?", reply("ok"))

    assert ran.requests[0].messages[2:] == (
        ChatMessage("tool", (ToolResult("a", "t", "interrupted, outcome unknown", is_error=True),)),
        user("and?"),
    )
    assert ran.log == ["the stored conversation was not whole and has been repaired: calls without a result: 1"]


async def test_another_run_that_was_faster_is_written_over(agent):
    await ask(agent, "one", reply("1"))

    async def meanwhile(message, run):
        await run.runtime.store.write(
            lambda db: conversations.save_working(db, PLACE, "{}", expected=1, user="", now=1)
        )

    agent.actions = {"work": meanwhile}
    ran = await ask(agent, "two", reply("", call("t")), reply("2"))

    assert ran.log == []
    assert len((await agent.stored(working))["messages"]) == 6


async def test_values_of_secret_variables_are_not_stored(agent):
    agent.environ = {"API_TOKEN": "s3cret-value"}
    await ask(agent, 'it is "s3cret-value"', reply("I see s3cret-value."), who="s3cret-value")
    (row,) = await agent.stored(conversations.rows)

    assert [text for _, text, *_ in await agent.stored(history)] == ['it is "***"', "I see ***."]
    assert "s3cret" not in json.dumps(await agent.stored(working))
    assert (row.user, row.title) == ("***", 'it is "***"')


# ---------------------------------------------------------------- the history


async def test_every_question_and_answer_is_kept_word_for_word(agent):
    await ask(agent, " one\n", reply("", call("t")), reply("```json\n1\n```"))
    await ask(agent, "two", reply("2"))

    assert await agent.stored(history) == [
        ("user", " one\n", 2, False, ""),
        ("assistant", "```json\n1\n```", 2, False, ""),
        ("user", "two", 1, False, ""),
        ("assistant", "2", 1, False, ""),
    ]


async def test_the_history_holds_what_the_model_got_with_the_words_around_it(agent):
    agent.keys = f"agentId: helper\nmemoryThreadId: '\"c\"'\n{TOOL}"
    await agent.run(reply("1"), body={"q": 1})

    assert (await agent.stored(history))[0][1] == 'The input of the task, as JSON:\n{"q":1}'


WITH_DEFAULT = f"{AGENT}default: {{process: []}}\n"


@pytest.mark.parametrize(
    ("keys", "replies", "iterations", "reason"),
    [
        ("", [reply("I cannot.", stop="refusal")], 1, "refused"),
        ("maxIterations: 1\n", [reply("", call("t"))], 1, "max iterations"),
        ("budget: {maxTokens: 0}\n", [], 0, "budget"),
        ("", [reply("", call("t", "{"), stop="max_tokens")] * 2, 2, "output cap"),
        (
            "",
            [replace(reply("", call("t", "{"), stop="max_tokens"), stop_detail="model_length")] * 2,
            2,
            "context window",
        ),
        ("", [reply("", call("t")), reply(" ")], 2, ""),
    ],
    ids=["refusal", "cap", "budget", "output cap", "context window", "empty answer"],
)
async def test_a_question_without_an_answer_says_why(agent, keys, replies, iterations, reason):
    agent.keys = keys + WITH_DEFAULT
    await ask(agent, "go", *replies)

    assert await agent.stored(history) == [("user", "go", iterations, True, reason)]


async def test_a_question_whose_run_was_stopped_has_no_answer(agent):
    agent.actions = {"work": stop}
    await ask(agent, "go", reply("", call("t")))

    assert await agent.stored(history) == [("user", "go", 1, True, "stopped by a tool")]


async def test_a_run_that_fails_leaves_no_trace_in_the_history(agent):
    with pytest.raises(BlockError):
        await ask(agent, "go", ProviderError("down"))

    assert await agent.stored(history) == []


@pytest.mark.parametrize("keys", ["history: 'off'\n", "memoryVolatile: true\n"])
async def test_without_a_history_only_what_the_agent_goes_on_with_is_kept(agent, keys):
    agent.keys = keys + AGENT
    await ask(agent, "one", reply("1"))

    assert await agent.stored(history) == []
    assert len((await agent.stored(working))["messages"]) == 2


async def test_a_volatile_agent_may_record_all_the_same(agent):
    agent.keys = f"memoryVolatile: true\nhistory: record\n{AGENT}"
    await ask(agent, "one", reply("1"))

    assert len(await agent.stored(history)) == 2


async def test_the_history_is_never_cut(agent):
    agent.keys = f"contextMaxTokens: 10\n{AGENT}"
    for n in range(3):
        await ask(agent, f"{n} {'word ' * 20}", reply("ok"))

    assert len(await agent.stored(history)) == 6
    assert len((await agent.stored(working))["messages"]) == 2


async def test_files_are_no_part_of_the_history(agent):
    agent.keys = f"attachments: body.files\nkeepAttachments: true\n{AGENT}"
    picture = {"mimeType": "text/plain", "data": "aGk=", "name": "a.txt"}
    await agent.run(reply("ok"), body={"say": "look", "chat": "c", "user": "u", "files": [picture]})
    agent.keys = AGENT
    ran = await ask(agent, "and?", reply("ok"))

    assert (await agent.stored(history))[0][1] == "look"
    assert ran.requests[0].messages[0] == ChatMessage("user", (File("text/plain", b"hi", "a.txt"), Text("look")))


async def test_a_conversation_belongs_to_the_first_person_that_is_named(agent):
    for who in (None, "ada", "bob"):
        await ask(agent, "hi", reply("Hello."), who=who)
    (row,) = await agent.stored(conversations.rows)

    assert (row.user, row.turns) == ("ada", 6)


async def test_a_person_that_cannot_be_computed_does_not_fail_the_run(agent):
    ran = await agent.say("hi", reply("Hello."))

    assert ran.log == ["ai-agent: userId: evaluate expression: no such key: user; the run goes on without the person"]


# ---------------------------------------------------------------- what goes along


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'[1]'", "ai-agent: `forwardContext` must evaluate to a mapping, got a list"),
        ("body.none", "ai-agent: forwardContext: evaluate expression: no such key: none"),
    ],
)
async def test_a_context_that_is_no_mapping_fails_the_run_before_anything_is_done(agent, expression, text):
    agent.keys = f"forwardContext: {expression}\n{AGENT}"
    with pytest.raises(BlockError) as caught:
        await ask(agent, "hi")

    assert caught.value.message == f'block "ag": {text}'
    assert not agent.directory.exists()


async def test_a_context_is_no_part_of_what_is_kept_or_logged(agent):
    agent.keys = f'forwardContext: \'{{"tenant": "acme-corp"}}\'\n{AGENT}'
    log = Listener(LogLine)
    await ask(agent, "hi", reply("Hello."), observers=[log])

    assert "acme" not in json.dumps(await agent.stored(working))
    assert "acme" not in "".join(str(event) for event in log.events)


# ---------------------------------------------------------------- titles


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is it?", "What is it?"),
        ("\n  first line \nsecond", "first line"),
        ("é" * 50, "é" * 40),
        ("x" + "é" * 50, "x" + "é" * 39),
        ("🙂" * 30, "🙂" * 20),
    ],
)
async def test_a_new_conversation_is_named_after_its_first_question(agent, question, expected):
    await ask(agent, question, reply("ok"))
    await ask(agent, "another", reply("ok"))

    assert await agent.stored(title) == expected


async def test_a_conversation_whose_question_is_the_body_is_named_after_that(agent):
    agent.keys = f"agentId: helper\nmemoryThreadId: '\"c\"'\n{TOOL}"
    await agent.run(reply("1"), body={"q": "why?"})

    assert await agent.stored(title) == '{"q":"why?"}'


NAMING = "nameThread: {{process: [{{type: set-payload, name: namer, settings: {{value: '{}'}}}}]}}\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('body.question + "/" + body.answer', "hi/Hello."),
        ("body.agentId + body.threadKey + body.userId", "helpercada"),
        ('{"title": " T ", "name": "N"}', "T"),
        ('{"title": 1, "name": "N"}', "N"),
        ('" "', ""),
        ('{"title": ""}', ""),
        ("null", ""),
        ("{}", ""),
        ('"' + "é" * 41 + '"', "é" * 40 + "…"),
        ('vars.x + "!"', "of the run!"),
    ],
)
async def test_a_chain_gives_the_title(agent, value, expected):
    agent.keys = NAMING.format(value) + AGENT
    ran = await ask(agent, "hi", reply("Hello."), x="of the run")

    assert await agent.stored(title) == expected
    assert ran.message.body == "Hello."


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("5", "its body is a number, and neither text nor a mapping with a `title`"),
        ("[1]", "its body is a list, and neither text nor a mapping with a `title`"),
        ("false", "its body is a boolean, and neither text nor a mapping with a `title`"),
        ('{"x": 1}', "its body is a mapping without a `title`, and without a `name`, that is text"),
    ],
    ids=["number", "list", "boolean", "mapping"],
)
async def test_a_chain_that_gives_no_text_is_told_and_the_question_gives_the_title(agent, value, why):
    agent.keys = NAMING.format(value) + AGENT
    ran = await ask(agent, "hi", reply("Hello."))

    assert await agent.stored(title) == "hi"
    assert ran.log == [f"`nameThread` failed, so the conversation is named after its first question: {why}"]


async def test_a_chain_sees_the_variables_that_tools_have_set(agent):
    agent.keys = NAMING.format("vars.toolName") + AGENT
    ran = await ask(agent, "hi", reply("", call("t"), call("t")), reply("Hello."))

    assert await agent.stored(title) == "t"
    assert ran.message.body == "Hello."


async def test_a_chain_that_drops_its_message_gives_no_title(agent):
    agent.keys = NAMING.format("1") + AGENT
    agent.actions = {"namer": drop}
    await ask(agent, "hi", reply("Hello."))

    assert await agent.stored(title) == ""


async def test_a_chain_that_fails_is_told_and_the_question_gives_the_title(agent):
    agent.keys = NAMING.format("body.nope") + AGENT
    ran = await ask(agent, "hi", reply("Hello."))

    assert await agent.stored(title) == "hi"
    assert ran.log == [
        '`nameThread` failed, so the conversation is named after its first question: block "namer": '
        "set-payload value: evaluate expression: no such key: nope"
    ]


async def test_the_title_is_told_to_the_events_of_the_agent(agent):
    agent.keys = f"""events:
  process:
    - type: log
      settings: {{message: 'body.title + " of " + body.thread'}}
emit: [thread_title]
{AGENT}"""
    ran = await ask(agent, "hi", reply("Hello."))

    assert ran.log == ["hi of c"]


async def test_a_question_whose_run_the_events_stopped_says_so(agent):
    agent.keys = f"events: {{process: [{{type: log, name: watching, settings: {{message: body.type}}}}]}}\n{AGENT}"
    agent.actions = {"watching": stop}
    await ask(agent, "go")

    assert await agent.stored(history) == [("user", "go", 1, True, "stopped by the events chain")]
