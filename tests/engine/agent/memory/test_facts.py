"""octo/agent/memory/facts.py: what an agent knows about a person."""

import pytest

from fake_model import call, reply
from octo.errors import StoreError
from octo.llm.chat import Usage, user
from octo.store import facts
from octo.store.facts import Person
from octo.store.store import Store
from remembering import SAYS, TOOL, Remembering

AGENT = f"agentId: helper\nuserId: body.user\nuserMemory: true\n{SAYS}{TOOL}"
ADA = Person("helper", "ada")


@pytest.fixture
def agent(tmp_path):
    return Remembering(tmp_path / "store", AGENT)


async def ask(agent, *replies, who="ada", chat="c", say="hi"):
    return await agent.run(*replies, body={"say": say, "chat": chat, "user": who})


async def result(agent, name, arguments, **more):
    """What the model reads after it has called one tool."""
    ran = await ask(agent, reply("", call(name, arguments)), reply("ok"), **more)
    return ran.results[-1]


def known(db):
    return {(fact.person.user, fact.name): fact.value for fact in facts.rows(db)}


async def fill(agent, values, person=ADA):
    def work(db):
        for name, value in values.items():
            facts.save(db, person, name, value, now=1)

    await agent.stored(work)


# ---------------------------------------------------------------- the tools


async def test_the_tools_come_last_and_are_the_same_in_every_request(agent):
    agent.keys = f"guardrail: Stop.\ndefault: {{process: []}}\n{AGENT}"
    ran = await ask(agent, reply("", call("remember", {"name": "diet", "value": "vegan"})), reply("ok"))

    assert [[tool.name for tool in request.tools] for request in ran.requests] == [
        ["t", "remember", "forget", "search_memory", "take_default_path"]
    ] * 2
    assert ran.message.vars == {}
    assert ran.message.body == "ok"


async def test_a_fact_is_kept_and_replaced_and_forgotten(agent):
    said = [
        await result(agent, "remember", {"name": " diet ", "value": "meat"}),
        await result(agent, "remember", {"name": "diet", "value": " vegan\n"}),
    ]
    kept = await agent.stored(known)
    said.append(await result(agent, "forget", {"name": "diet"}))
    said.append(await result(agent, "forget", {"name": "never was"}))

    assert kept == {("ada", "diet"): "vegan"}
    assert said == [
        ("remembered: diet", False),
        ("remembered: diet", False),
        ("forgotten: diet", False),
        ("nothing was kept under never was, so there is nothing left of it", False),
    ]
    assert await agent.stored(known) == {}


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("remember", {"name": "diet", "value": " "}, "`value` is blank, and must be text"),
        ("remember", {"name": "\n", "value": "x"}, "`name` is blank, and must be text"),
        ("forget", {"name": ""}, "`name` is blank, and must be text"),
        ("search_memory", {"query": " "}, "`query` is blank, and must be text"),
        ("remember", {"name": "diet"}, "invalid arguments: at `value`: is required, but missing"),
        (
            "remember",
            "{",
            "invalid arguments: not JSON: expecting property name enclosed in double quotes at line 1, column 2",
        ),
    ],
)
async def test_a_call_with_a_part_missing_is_an_error_for_the_model(agent, name, arguments, text):
    assert await result(agent, name, arguments) == (text, True)
    assert await agent.stored(known) == {}


@pytest.mark.parametrize("who", [None, ""])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("remember", {"name": "a", "value": "b"}), ("forget", {"name": "a"}), ("search_memory", {"query": "a"})],
)
async def test_nothing_is_kept_about_nobody(agent, who, name, arguments):
    assert await result(agent, name, arguments, who=who) == (
        "it is not known who the person is, so nothing is kept about anybody",
        True,
    )


class Full(Store):
    async def write(self, work):
        raise StoreError("the disk is full")


async def test_a_store_that_fails_is_an_error_for_the_model(agent):
    agent.store = Full

    assert await result(agent, "remember", {"name": "a", "value": "b"}) == ("the disk is full", True)


async def test_a_fact_is_one_line_whatever_the_model_called_it(agent):
    await result(agent, "remember", {"name": "diet\n\nSystem", "value": "vegan\nobey"})
    ran = await ask(agent, reply("ok"), chat="d")

    assert ran.requests[0].messages[0] == user("What you remember about the person:\ndiet System: vegan obey")
    assert (await result(agent, "search_memory", {"query": "obey"}))[0] == "fact diet System: vegan obey"


async def test_values_of_secret_variables_are_not_kept(agent):
    agent.environ = {"API_TOKEN": "s3cret-value"}
    await result(agent, "remember", {"name": "token", "value": "s3cret-value!"}, who="s3cret-value")
    ran = await ask(agent, reply("ok"), who="s3cret-value", chat="d")

    assert await agent.stored(known) == {("***", "token"): "***!"}
    assert ran.requests[0].messages[0] == user("What you remember about the person:\ntoken: ***!")


async def test_the_search_finds_turns_and_facts_of_this_agent_and_this_person(agent):
    await fill(agent, {"invoice": "paid by card"})
    await fill(agent, {"invoice": "of bob"}, Person("helper", "bob"))
    await ask(agent, reply("The invoice\nis late."), say="Where is my invoice?", chat="d")
    await ask(agent, reply("Bob's invoice."), who="bob", say="x", chat="e")

    assert await result(agent, "search_memory", {"query": "invoice"}) == (
        "fact invoice: paid by card\nassistant: The invoice is late.\nuser: Where is my invoice?",
        False,
    )
    assert await result(agent, "search_memory", {"query": "submarine"}) == ("nothing was found in memory", False)


async def test_the_search_gives_ten_lines_at_most(agent):
    await fill(agent, {f"fact {n}": "word" for n in range(12)})

    text, _ = await result(agent, "search_memory", {"query": "word"})
    assert len(text.splitlines()) == 10


# ---------------------------------------------------------------- what the model is told at the start


async def test_what_is_known_stands_in_front_of_every_request_and_is_not_stored(agent):
    await fill(agent, {"diet": "vegan", "city": "Rome"})
    ran = await ask(agent, reply("", call("t")), reply("ok"))
    later = await ask(agent, reply("ok"))
    told = user("What you remember about the person:\ncity: Rome\ndiet: vegan")

    assert [request.messages[0] for request in [*ran.requests, *later.requests]] == [told] * 3
    assert [turn.role for turn in later.requests[0].messages] == [
        "user",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


async def test_what_is_known_about_others_is_not_told(agent):
    await fill(agent, {"diet": "meat"}, Person("helper", "bob"))
    await fill(agent, {"diet": "fish"}, Person("other", "ada"))

    assert (await ask(agent, reply("ok"))).requests[0].messages == (user("hi"),)
    assert (await ask(agent, reply("ok"), who=None, chat="d")).requests[0].messages == (user("hi"),)


async def test_a_fact_of_this_run_is_told_in_the_next(agent):
    ran = await ask(agent, reply("", call("remember", {"name": "diet", "value": "vegan"})), reply("ok"))
    later = await ask(agent, reply("ok"), chat="d")

    assert ran.requests[1].messages[0] == user("hi")
    assert later.requests[0].messages[0] == user("What you remember about the person:\ndiet: vegan")


@pytest.mark.parametrize(
    ("values", "lines", "last"),
    [
        ({f"{n:03}": "x" for n in range(60)}, 50, "(10 more: use `search_memory`)"),
        ({f"{n:03}": "é" * 400 for n in range(20)}, 10, "(10 more: use `search_memory`)"),
    ],
    ids=["many", "long ones"],
)
async def test_no_more_is_told_than_fits(agent, values, lines, last):
    await fill(agent, values)
    told = (await ask(agent, reply("ok"))).requests[0].messages[0].text

    assert len(told.splitlines()) == lines + 2
    assert told.splitlines()[-1] == last
    assert len(told.encode()) < 8 * 1024 + 100


async def test_a_fact_that_is_too_long_is_clipped_between_characters(agent):
    await fill(agent, {"novel": "🙂" * 1000})
    told = (await ask(agent, reply("ok"))).requests[0].messages[0].text

    assert told.splitlines()[1] == "novel: " + "🙂" * 253 + "…"


class Unreadable(Store):
    async def read(self, work, otherwise):
        if otherwise == []:
            raise StoreError("the disk is gone")
        return await super().read(work, otherwise)


async def test_facts_that_cannot_be_read_do_not_fail_the_run(agent):
    await ask(agent, reply("ok"))
    agent.store = Unreadable
    ran = await ask(agent, reply("ok", usage=Usage(prompt_tokens=9)))

    assert ran.log == ["what is known about the person cannot be read: the disk is gone"]
