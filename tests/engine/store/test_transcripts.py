"""octo/store/transcripts.py: conversations as people read them."""

import pytest

from octo.store import transcripts
from octo.store.store import Store
from octo.store.transcripts import Conversation, Row

ONE, OTHER = "0c3f4b5e-0000-4000-8000-00000000000a", "0c3f4b5e-0000-4000-8000-00000000000b"
ASKED = Row("user", "Where is it?", 10)
USED = Row("tool", "Used find", 20, True, "r1", "answer", "", '{"n":1}', '"é"')
SAID = Row("assistant", "There.", 30, True, "r1", "answer", "Hm.")


@pytest.fixture
async def store():
    def work(db):
        transcripts.begin(db, ONE, flow="chat", title="Where is it?", now=5)
        transcripts.begin(db, OTHER, flow="order", title="Order", now=6)
        transcripts.append(db, ONE, [ASKED, USED])
        transcripts.append(db, ONE, [SAID])

    with Store() as opened:
        await opened.write(work)
        yield opened


async def test_rows_come_back_in_the_order_of_the_conversation(store):
    assert await store.read(lambda db: transcripts.rows(db, ONE), []) == [ASKED, USED, SAID]


async def test_the_latest_rows_are_found(store):
    assert await store.read(lambda db: transcripts.rows(db, ONE, last=2), []) == [USED, SAID]


async def test_conversations_tell_their_size_the_latest_first(store):
    assert await store.read(transcripts.conversations, []) == [
        Conversation(ONE, "chat", "Where is it?", 5, 30, 3, len("Where is it?Used find{'n':1}'éx'There.Hm.")),
        Conversation(OTHER, "order", "Order", 6, 6, 0, 0),
    ]


async def test_conversations_of_a_flow_are_found(store):
    found = await store.read(lambda db: transcripts.conversations(db, flow="order"), [])

    assert [conversation.id for conversation in found] == [OTHER]


async def test_a_conversation_begins_once(store):
    await store.write(lambda db: transcripts.begin(db, ONE, flow="order", title="Again", now=99))

    found = await store.read(lambda db: transcripts.conversations(db, id=ONE), [])
    assert [(conversation.title, conversation.rows) for conversation in found] == [("Where is it?", 3)]


async def test_rows_of_no_conversation_are_not_kept(store):
    unknown = ONE.replace("a", "c")
    await store.write(lambda db: transcripts.append(db, unknown, [ASKED]))

    assert await store.read(lambda db: transcripts.rows(db, unknown), []) == []


async def test_a_conversation_is_deleted_with_its_rows(store):
    assert await store.write(lambda db: transcripts.delete(db, ONE)) == 1
    assert await store.read(lambda db: transcripts.rows(db, ONE), []) == []
    assert await store.write(lambda db: transcripts.delete(db, ONE)) == 0
