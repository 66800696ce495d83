"""octo/store/memories.py: what agents remember, row by row."""

import pytest

from octo.store import memories
from octo.store.memories import Place, Row
from octo.store.store import Store

KEY, OTHER = "a50aa946-4690-51c3-a731-9eda2ff3b248", "045ba5f9-e7a7-5d0c-94be-b26ce016d91c"
CHAT = Place("shop", KEY, "chat.answer")
ORDER = Place("shop", KEY, "order.each[body].check")
FAR = Place("shop", OTHER, "chatter.answer")


@pytest.fixture
async def store():
    with Store() as opened:
        for at, place in enumerate((CHAT, ORDER, FAR)):
            await opened.write(lambda db, place=place, at=at: memories.save(db, place, f'["é{at}"]', 1, now=at))
        yield opened


async def test_a_row_is_read_as_it_was_written(store):
    assert await store.read(lambda db: memories.load(db, CHAT), None) == '["é0"]'


async def test_a_row_that_was_never_written_is_none(store):
    assert await store.read(lambda db: memories.load(db, CHAT._replace(workspace="")), None) is None


async def test_a_later_write_takes_the_place_of_an_earlier_one(store):
    await store.write(lambda db: memories.save(db, CHAT, '["a", "b"]', 2, now=9))

    assert await store.read(lambda db: memories.rows(db, key=KEY), []) == [Row(CHAT, 2, 10, 9), Row(ORDER, 1, 7, 1)]


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        pytest.param({}, [FAR, ORDER, CHAT], id="all, the latest first"),
        pytest.param({"key": KEY}, [ORDER, CHAT], id="of a key"),
        pytest.param({"block": "chat.answer"}, [CHAT], id="of a block"),
        pytest.param({"flow": "chat"}, [CHAT], id="of a flow"),
        pytest.param({"flow": "order", "key": OTHER}, [], id="of both"),
    ],
)
async def test_rows_are_found_by_what_is_given(store, wanted, places):
    found = await store.read(lambda db: memories.rows(db, **wanted), [])

    assert [row.place for row in found] == places


@pytest.mark.parametrize(("block", "count", "left"), [("", 2, [FAR]), ("chat.answer", 1, [FAR, ORDER])])
async def test_a_memory_is_deleted_whole_or_for_one_block(store, block, count, left):
    assert await store.write(lambda db: memories.delete(db, KEY, block)) == count
    assert [row.place for row in await store.read(memories.rows, [])] == left
