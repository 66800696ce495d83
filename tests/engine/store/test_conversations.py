"""octo/store/conversations.py, octo/store/facts.py, octo/store/threads.py, octo/store/search.py: rows of memory."""

import pytest

from octo.store import conversations, facts, search, threads
from octo.store.conversations import Place, Row, Turn, Working
from octo.store.facts import Fact, Person
from octo.store.search import Hit
from octo.store.store import Store

CHAT = Place("helper", "c")
ADA = Person("helper", "ada")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as store:
        yield store


def said(*texts, at=1):
    return [Turn("user" if n % 2 == 0 else "assistant", text, at) for n, text in enumerate(texts)]


# ---------------------------------------------------------------- conversations


async def test_what_an_agent_goes_on_with_is_written_over_the_version_that_is_expected(store):
    async def save(text, expected):
        return await store.write(
            lambda db: conversations.save_working(db, CHAT, text, expected=expected, user="", now=1)
        )

    assert [await save("a", 0), await save("b", 1), await save("c", 1), await save("d", 0)] == [1, 2, None, None]
    assert await store.read(lambda db: conversations.working(db, CHAT), None) == Working("b", 2)
    assert await store.read(lambda db: conversations.working(db, Place("helper", "d")), None) is None


async def test_the_last_turns_come_in_order(store):
    for text in "abc":
        await store.write(lambda db, text=text: conversations.append(db, CHAT, said(text, text * 2), user="", now=1))
    await store.write(lambda db: conversations.append(db, Place("helper", "d"), said("x"), user="", now=1))
    found = await store.read(lambda db: conversations.last(db, CHAT, 3), [])

    assert [(turn.position, turn.role, turn.text) for turn in found] == [
        (4, "assistant", "bb"),
        (5, "user", "c"),
        (6, "assistant", "cc"),
    ]


async def test_conversations_are_listed_latest_first_with_their_sizes(store):
    def fill(db):
        conversations.append(db, CHAT, said("ab", "é"), user="ada", now=1)
        conversations.set_title(db, CHAT, "Title")
        conversations.save_working(db, Place("helper", "d"), "{}", expected=0, user="bob", now=2)
        conversations.save_working(db, Place("other", "c"), "{}", expected=0, user="", now=3)

    await store.write(fill)
    rows = [
        Row(Place("other", "c"), "", "", 3, 3, 0, 2),
        Row(Place("helper", "d"), "", "bob", 2, 2, 0, 2),
        Row(CHAT, "Title", "ada", 1, 1, 2, 4),
    ]

    assert await store.read(conversations.rows, []) == rows
    assert await store.read(lambda db: conversations.rows(db, agent="helper"), []) == rows[1:]
    assert await store.read(lambda db: conversations.rows(db, thread="c"), []) == [rows[0], rows[2]]
    assert await store.read(lambda db: conversations.rows(db, user="bob"), []) == [rows[1]]


async def test_a_deleted_conversation_is_gone_with_its_turns_and_the_others_stay(store):
    def work(db):
        for place in (CHAT, Place("helper", "d")):
            conversations.append(db, place, said("hello"), user="", now=1)
        search.search(db, "hello")
        return (conversations.delete(db, CHAT), conversations.delete(db, CHAT))

    assert await store.write(work) == (True, False)
    assert await store.write(lambda db: [hit.name for hit in search.search(db, "hello")]) == ["d"]
    assert await store.read(lambda db: conversations.last(db, CHAT, 9), []) == []


async def test_a_conversation_that_begins_again_has_none_of_the_old_turns(store):
    def work(db):
        conversations.append(db, CHAT, said("old"), user="ada", now=1)
        search.search(db, "old")
        conversations.delete(db, CHAT)
        conversations.append(db, CHAT, said("new"), user="bob", now=2)
        return [hit.text for hit in search.search(db, "old")], [hit.text for hit in search.search(db, "new")]

    assert await store.write(work) == ([], ["new"])


# ---------------------------------------------------------------- facts


async def test_a_fact_takes_the_place_of_one_of_the_same_name(store):
    def work(db):
        facts.save(db, ADA, "diet", "meat", now=1)
        facts.save(db, ADA, "city", "Rome", now=2)
        facts.save(db, ADA, "diet", "vegan", now=3)
        facts.save(db, Person("helper", "bob"), "diet", "fish", now=4)
        return facts.rows(db, user="ada"), facts.delete(db, ADA, "diet"), facts.delete(db, ADA), facts.rows(db)

    assert await store.write(work) == (
        [Fact(ADA, "city", "Rome", 2), Fact(ADA, "diet", "vegan", 3)],
        1,
        1,
        [Fact(Person("helper", "bob"), "diet", "fish", 4)],
    )


# ---------------------------------------------------------------- threads


async def test_threads_are_the_entries_below_their_prefix(store):
    def work(db):
        entries = [("user", "agent-memory/b"), ("user", "agent-memory/"), ("user", "agent-memory0"), ("system", "x")]
        for namespace, key in entries:
            db.execute(
                "INSERT INTO entries (namespace, key, version, value, updated) VALUES (?, ?, 2, '\"é\"', 7)",
                (namespace, key),
            )
        return threads.rows(db), threads.load(db, "b"), threads.delete(db, "b"), threads.delete(db, "b")

    assert await store.write(work) == ([threads.Row("", 2, 4, 7), threads.Row("b", 2, 4, 7)], '"é"', True, False)


# ---------------------------------------------------------------- search


@pytest.fixture
async def filled(store):
    def fill(db):
        conversations.append(db, CHAT, said("The invoice is late", "Pay the INVOICE today", at=1), user="ada", now=1)
        conversations.append(db, Place("helper", "d"), said("An invoice, again", at=2), user="bob", now=2)
        conversations.append(db, Place("other", "c"), said("No such thing: invoices", at=3), user="ada", now=3)
        facts.save(db, ADA, "invoice", "by mail", now=4)

    await store.write(fill)
    return store


FACT = Hit("fact", "helper", "ada", "invoice", "", "by mail", 4)
LATE = Hit("turn", "helper", "ada", "c", "user", "The invoice is late", 1)
PAY = Hit("turn", "helper", "ada", "c", "assistant", "Pay the INVOICE today", 1)
AGAIN = Hit("turn", "helper", "bob", "d", "user", "An invoice, again", 2)
SUCH = Hit("turn", "other", "ada", "c", "user", "No such thing: invoices", 3)


@pytest.mark.parametrize("full_text", [True, False], ids=["by the index", "without one"])
@pytest.mark.parametrize(
    ("query", "options", "expected"),
    [
        ("invoice", {}, [FACT, SUCH, AGAIN, PAY, LATE]),
        ("late Invoice", {}, [LATE]),
        ("invoice", {"agent": "helper", "user": "ada"}, [FACT, PAY, LATE]),
        ("invoice", {"agent": "helper", "most": 2}, [FACT, AGAIN]),
        ("mail", {}, [FACT]),
        ("nothing", {}, []),
        ("", {}, []),
        ('"%_* OR', {}, []),
        ("invoice'); DROP", {}, []),
    ],
)
async def test_all_words_of_the_query_have_to_occur(filled, query, options, expected, full_text):
    assert await filled.write(lambda db: search.search(db, query, full_text=full_text, **options)) == expected


@pytest.mark.parametrize(("most", "kinds"), [(4, "ffff"), (8, "ffffftt"), (3, "ftt"), (1, "t")])
async def test_facts_and_turns_do_not_crowd_each_other_out(store, most, kinds):
    turns = 0 if kinds == "ffff" else 2

    def fill(db):
        for n in range(5):
            facts.save(db, ADA, f"word {n}", "x", now=n)
        conversations.append(db, CHAT, said(*["a word"] * turns), user="ada", now=1)
        return [hit.kind[0] for hit in search.search(db, "word", most=most)]

    assert "".join(await store.write(fill)) == kinds


async def test_what_was_said_since_the_index_was_built_is_found(filled):
    await filled.write(lambda db: search.search(db, "invoice"))
    await filled.write(lambda db: conversations.append(db, CHAT, said("one more invoice", at=5), user="", now=5))

    assert await filled.write(lambda db: [hit.at for hit in search.search(db, "more invoice")]) == [5]


async def test_the_index_is_not_there_before_it_is_used(filled):
    def tables(db):
        return [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'turns_index%'")]

    before = await filled.read(tables, [])
    await filled.write(lambda db: search.search(db, "invoice"))

    assert (before, bool(await filled.read(tables, []))) == ([], True)
