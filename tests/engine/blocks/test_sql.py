"""octo/blocks/sql.py: SQL on a database."""

import asyncio
import sqlite3

import pytest

from octo.errors import BlockError, ConfigError
from octo.testing.harness import config, runtime
from servers import PASSWORD


def flow(tmp_path, *blocks: str, settings: str = "", driver: str = "sqlite", dsn: str = "") -> str:
    lines = "".join(f"\n                - {{ type: sql, connector: ledger, {block} }}" for block in blocks)
    return f"""
          connectors:
            - name: ledger
              type: database
              settings: {{ driver: {driver}, dsn: '{dsn or f"{tmp_path}/ledger.db"}', {settings} }}
          flows:
            - name: main
              process:{lines}
    """


@pytest.fixture
def ledger(tmp_path):
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.executescript("""
            CREATE TABLE account (code TEXT PRIMARY KEY, balance INTEGER CHECK (balance >= 0)) STRICT;
            INSERT INTO account VALUES ('a', 5), ('b', 7);
        """)
    connection.close()
    return tmp_path


@pytest.mark.parametrize(
    ("block", "body"),
    [
        ("query: SELECT * FROM account", [{"code": "a", "balance": 5.0}, {"code": "b", "balance": 7.0}]),
        ("query: SELECT 1 WHERE false", []),
        ("query: SELECT * FROM account, single: true", {"code": "a", "balance": 5.0}),
        ("query: SELECT 1 WHERE false, single: true", None),
        ("query: 'INSERT INTO account VALUES (?, ?)', args: ['\"c\"', '1.0']", []),
        ("query: UPDATE account SET balance = balance + ?, args: [body.delta], exec: true", {"rowsAffected": 2.0}),
        ("query: CREATE TABLE more (x), exec: true", {"rowsAffected": 0.0}),
    ],
    ids=["query", "no rows", "single", "single without a row", "insert as a query", "exec", "exec without a count"],
)
async def test_the_body_becomes_the_result(run_flow, ledger, block, body):
    message = await run_flow(flow(ledger, block), {"delta": 3.0})

    assert (message.body, message.vars) == (body, {})


async def test_a_result_ends_raw_mode(run_flow, tmp_path):
    text = flow(tmp_path, "query: SELECT 1 AS one").replace(
        "process:", "process:\n                - { type: set-payload, value: '\"x\"', rawBody: true, contentType: a/b }"
    )
    message = await run_flow(text)

    assert (message.body, message.raw) == ([{"one": 1.0}], False)


async def test_text_numbers_booleans_and_null_are_bound_in_order(run_flow, tmp_path):
    block = "query: 'SELECT ? AS a, ? AS b, ? AS c, ? AS d', args: [body.text, '0.5', 'true', 'null'], single: true"
    text = "'); DROP TABLE account; --"

    assert (await run_flow(flow(tmp_path, block), {"text": text})).body == {"a": text, "b": 0.5, "c": 1.0, "d": None}


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ("query: SELEC", 'sql query: near "SELEC": syntax error'),
        ("query: DELETE FROM missing, exec: true", "sql exec: no such table: missing"),
        (
            "query: UPDATE account SET balance = balance - 6, exec: true",
            "sql exec: CHECK constraint failed: balance >= 0",
        ),
        ("query: SELECT ?, args: ['[1]']", "sql args[0] must be text, a number, a boolean or null, got a list"),
        ("query: SELECT ?, args: ['{}']", "sql args[0] must be text, a number, a boolean or null, got a mapping"),
        ("query: SELECT ?, args: [body.x]", "sql args[0]: evaluate expression: no such key: x"),
    ],
    ids=["syntax", "table", "constraint", "list", "mapping", "expression"],
)
async def test_a_failure_fails_the_block_and_the_next_message_works(ledger, block, text):
    async with runtime(flow(ledger, block)) as octo:
        for _ in range(2):
            with pytest.raises(BlockError) as caught:
                await octo.invoke("main", {})

            assert str(caught.value) == f'block "sql": {text}'


async def test_parallel_messages_queue_for_the_one_connection_of_sqlite(ledger):
    block = "query: UPDATE account SET balance = balance + 1 WHERE code = ?, args: [body], exec: true"
    async with runtime(flow(ledger, block)) as octo:
        await asyncio.gather(*(octo.invoke("main", "a") for _ in range(20)))

    with sqlite3.connect(ledger / "ledger.db") as connection:
        assert connection.execute("SELECT balance FROM account WHERE code = 'a'").fetchone() == (25,)
    connection.close()


async def test_a_locked_database_does_not_stop_the_loop(ledger):
    other = sqlite3.connect(ledger / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with runtime(flow(ledger, "query: DELETE FROM account, exec: true")) as octo:
        waiting = asyncio.create_task(octo.invoke("main"))
        late = 0.0
        for _ in range(30):
            before = asyncio.get_running_loop().time()
            await asyncio.sleep(0.005)
            late = max(late, asyncio.get_running_loop().time() - before)
        assert not waiting.done()
        other.execute("COMMIT")

        assert (await waiting).body == {"rowsAffected": 2.0}
    other.close()
    assert late < 5


async def test_a_flow_that_runs_out_of_time_leaves_its_query_behind(ledger):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    async with runtime(flow(ledger, f"query: '{endless}'")) as octo:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(octo.invoke("main"), 0.1)


async def test_a_pool_that_runs_dry_fails_when_it_has_waited_long_enough(ledger):
    other = sqlite3.connect(ledger / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    text = flow(ledger, "query: DELETE FROM account, exec: true", settings="acquireTimeout: 50ms")
    async with runtime(text) as octo:
        waiting = asyncio.create_task(octo.invoke("main"))
        await asyncio.sleep(0.01)
        with pytest.raises(BlockError) as caught:
            await octo.invoke("main")
        other.execute("COMMIT")
        await waiting
    other.close()

    assert str(caught.value) == (
        'block "sql": sql exec: no connection became free within 0.05 s: the only one is in use'
    )


@pytest.mark.parametrize(("server", "places"), [("postgres", "$1, $2"), ("mysql", "?, ?")])
async def test_servers_are_used_by_many_messages_at_once(request, server, places):
    running = request.getfixturevalue(server)
    text = flow(
        "",
        f"query: 'INSERT INTO booking VALUES ({places})', args: [body.id, body.text], exec: true",
        settings=f"password: '{PASSWORD}', maxOpenConns: 4",
        driver=server,
        dsn=running.dsn,
    )
    setup = flow(
        "",
        "query: DROP TABLE IF EXISTS booking, exec: true",
        "query: 'CREATE TABLE booking (id integer PRIMARY KEY, note varchar(20))', exec: true",
        settings=f"password: '{PASSWORD}'",
        driver=server,
        dsn=running.dsn,
    )
    async with runtime(setup) as octo:
        await octo.invoke("main")
    async with runtime(text) as octo:
        results = await asyncio.gather(
            *(octo.invoke("main", {"id": float(n // 2), "text": "é"}) for n in range(40)), return_exceptions=True
        )

    failed = [str(result) for result in results if isinstance(result, BlockError)]
    assert len(failed) == 20
    assert {text.partition(" sql ")[2].partition(":")[0] for text in failed} == {"exec"}


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("query: ' '", "expected SQL, found blank text"),
        ('query: "a\\0b"', "the SQL holds a NUL character"),
        ("query: SELECT ?, args: body.x", "`args`: expected a list, found text"),
        ("args: []", "sql requires `query`"),
    ],
    ids=["blank", "NUL", "args", "missing"],
)
def test_settings_that_cannot_work_are_refused(tmp_path, block, message):
    with pytest.raises(ConfigError) as caught:
        config(flow(tmp_path, block))

    assert [problem.message for problem in caught.value.problems] == [message]


def test_the_connector_must_be_a_database():
    text = """
      connectors: [{ name: model, type: llm-scripted, settings: { turns: [{ text: hi }] } }]
      flows: [{ name: main, process: [{ type: sql, connector: model, query: SELECT 1 }] }]
    """
    with pytest.raises(ConfigError) as caught:
        config(text)

    (problem,) = caught.value.problems
    assert problem.message == 'connector "model" is a `llm-scripted`, which is no database connector'


@pytest.mark.parametrize(
    ("block", "driver", "message", "hint"),
    [
        (
            "query: SELECT 1, exec: true, single: true",
            "sqlite",
            "`single` has no effect with `exec`",
            "leave one of them out",
        ),
        (
            "query: SELECT 1, args: [body]",
            "sqlite",
            "`query` has no place for `args`",
            "with driver `sqlite` arguments stand as `?`",
        ),
        (
            "query: SELECT ?, args: [body]",
            "postgres",
            "`query` has no place for `args`",
            "with driver `postgres` arguments stand as `$1`, `$2`, …",
        ),
    ],
    ids=["single with exec", "no place", "question marks for postgres"],
)
def test_settings_that_make_no_sense_are_warned_of(tmp_path, block, driver, message, hint):
    (warning,) = config(flow(tmp_path, block, driver=driver)).warnings

    assert (warning.message, warning.hint) == (message, hint)


@pytest.mark.parametrize("place", ["?", "?1", "$1", ":a", "@a"])
def test_every_place_that_sqlite_knows_takes_arguments(tmp_path, place):
    assert config(flow(tmp_path, f"query: 'SELECT {place}', args: [body]")).warnings == ()
