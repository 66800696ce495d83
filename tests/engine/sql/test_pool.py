"""octo/sql/pool.py, octo/sql/connection.py: few connections, many queries."""

import asyncio
import threading
import time
from contextlib import asynccontextmanager

import pytest

from octo.sql.connection import DatabaseError, Result
from octo.sql.pool import Limits, Pool


class Database:
    """A database whose queries say what happens: `wait` waits for `go`, `lose` loses the connection."""

    def __init__(self):
        self.opened = 0
        self.open = 0
        self.most = 0
        self.busy = 0
        self.dead = False
        self.down = False
        self.go = threading.Event()
        self.lock = threading.Lock()

    def connect(self):
        if self.down:
            raise DatabaseError("cannot connect")
        self.opened += 1
        self.open += 1
        return FakeConnection(self, self.opened)


class FakeConnection:
    def __init__(self, database, number):
        self.database = database
        self.number = number
        self.lost = False
        self.interrupted = threading.Event()

    def execute(self, query, args, wanted):
        database = self.database
        with database.lock:
            database.busy += 1
            database.most = max(database.most, database.busy)
        try:
            if query == "lose":
                self.lost = True
                raise DatabaseError("connection lost")
            while query == "wait" and not database.go.wait(0.005):
                if self.interrupted.is_set():
                    raise DatabaseError("interrupted")
            if query == "nap":
                time.sleep(0.01)
        finally:
            with database.lock:
                database.busy -= 1
        return Result([{"connection": self.number}], 0)

    def alive(self):
        return not self.database.dead

    def interrupt(self):
        self.interrupted.set()

    def close(self):
        self.database.open -= 1


@asynccontextmanager
async def pool(database, **limits):
    opened = Pool(database.connect, Limits(**({"open": 2, "idle": 2} | limits)))
    try:
        yield opened
    finally:
        await opened.close()


async def connection_of(pool, query="quick"):
    return (await pool.execute(query)).rows[0]["connection"]


async def test_queries_share_connections_and_never_use_more_than_allowed():
    database = Database()
    async with pool(database) as shared:
        results = await asyncio.gather(*(shared.execute("nap") for _ in range(20)))

    assert len(results) == 20
    assert (database.most, database.opened, database.open) == (2, 2, 0)


async def test_a_query_waits_for_a_free_connection_without_stopping_the_others():
    database = Database()
    async with pool(database, open=1) as shared:
        first = asyncio.create_task(shared.execute("wait"))
        second = asyncio.create_task(shared.execute("quick"))
        await asyncio.sleep(0.05)
        assert not second.done()
        database.go.set()

        assert [result.rows for result in await asyncio.gather(first, second)] == [[{"connection": 1}]] * 2


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (1, "no connection became free within 0.05 s: the only one is in use"),
        (2, "no connection became free within 0.05 s: all 2 are in use"),
    ],
)
async def test_a_query_that_has_waited_long_enough_fails_clearly(limit, text):
    database = Database()
    async with pool(database, open=limit, patience=0.05) as shared:
        waiting = [asyncio.create_task(shared.execute("wait")) for _ in range(limit)]
        await asyncio.sleep(0)
        with pytest.raises(DatabaseError) as caught:
            await shared.execute("quick")
        database.go.set()
        await asyncio.gather(*waiting)

        assert await connection_of(shared) in (1, 2)

    assert (str(caught.value), caught.value.hint) == (text, "raise `maxOpenConns` or `acquireTimeout` of the connector")


async def test_a_cancelled_query_is_interrupted_and_its_connection_comes_back():
    database = Database()
    async with pool(database, open=1) as shared:
        waiting = asyncio.create_task(shared.execute("wait"))
        await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert await asyncio.wait_for(connection_of(shared), 2) == 1


async def test_a_caller_that_is_cancelled_while_it_waits_takes_no_place():
    database = Database()
    async with pool(database, open=1) as shared:
        first = asyncio.create_task(shared.execute("wait"))
        second = asyncio.create_task(shared.execute("quick"))
        await asyncio.sleep(0.02)
        second.cancel()
        database.go.set()
        await first

        assert await asyncio.wait_for(connection_of(shared), 2) == 1


async def test_closing_ends_what_still_runs():
    database = Database()
    async with pool(database) as shared:
        waiting = asyncio.create_task(shared.execute("wait"))
        await asyncio.sleep(0.02)

    with pytest.raises(DatabaseError, match="interrupted"):
        await waiting
    assert database.open == 0


async def test_after_a_lost_connection_the_next_query_gets_a_new_one():
    database = Database()
    async with pool(database) as shared:
        await asyncio.gather(shared.execute("nap"), shared.execute("nap"))
        with pytest.raises(DatabaseError, match="connection lost"):
            await shared.execute("lose")

        assert await connection_of(shared) == 3
    assert database.open == 0


async def test_a_connection_that_has_died_in_idleness_is_replaced_unnoticed():
    database = Database()
    async with pool(database) as shared:
        assert await connection_of(shared) == 1
        await asyncio.sleep(1.05)
        database.dead = True

        assert await connection_of(shared) == 2


async def test_a_connection_past_its_lifetime_is_replaced():
    database = Database()
    async with pool(database, lifetime=0.02) as shared:
        assert await connection_of(shared) == 1
        await asyncio.sleep(0.03)

        assert await connection_of(shared) == 2
    assert database.open == 0


async def test_only_some_connections_are_kept_idle():
    database = Database()
    async with pool(database, open=3, idle=1) as shared:
        await asyncio.gather(*(shared.execute("nap") for _ in range(3)))

        assert database.open == 1


async def test_a_server_that_is_back_is_used_again():
    database = Database()
    database.down = True
    async with pool(database, open=1) as shared:
        with pytest.raises(DatabaseError, match="cannot connect"):
            await shared.check()
        database.down = False

        assert await connection_of(shared) == 1
