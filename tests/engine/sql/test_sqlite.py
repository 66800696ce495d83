"""octo/sql/sqlite.py: SQLite connections."""

import sqlite3
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo.sql.connection import DatabaseError, Result
from octo.sql.sqlite import SqliteConnection, statements
from octo.sql.values import bound
from servers import interrupting


@pytest.fixture
def connection():
    opened = SqliteConnection(":memory:")
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, data BLOB)", (), "none")
    yield opened
    opened.close()


def rows(connection, query, *args):
    return connection.execute(query, args, "all").rows


def count(connection):
    return rows(connection, "SELECT count(*) AS n FROM t")[0]["n"]


def test_values_arrive_as_json(connection):
    connection.execute("INSERT INTO t VALUES (?, ?, ?)", (1, "é\0", None), "none")
    connection.execute("INSERT INTO t VALUES (2, CAST(x'61ff' AS TEXT), x'ff62')", (), "none")

    assert rows(connection, "SELECT *, 1.5 AS x, 9e999 AS big FROM t ORDER BY id") == [
        {"id": 1.0, "name": "é\0", "data": None, "x": 1.5, "big": "Infinity"},
        {"id": 2.0, "name": "a\ufffd", "data": "\ufffdb", "x": 1.5, "big": "Infinity"},
    ]


def test_arguments_are_bound_and_never_part_of_the_text(connection):
    text = "x'); DROP TABLE t; --"
    connection.execute("INSERT INTO t (name) VALUES (?)", (text,), "none")

    assert rows(connection, "SELECT name FROM t WHERE name = ?", text) == [{"name": text}]


@given(st.one_of(st.none(), st.text(), st.floats(-1e300, 1e300), st.integers(-(2**53), 2**53)))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_bound_comes_back(connection, value):
    (row,) = rows(connection, "SELECT ? AS x", bound(value))

    assert row["x"] == value


def test_half_a_character_is_bound_as_the_mark_for_none(connection):
    assert rows(connection, "SELECT ? AS x", bound("a\ud800b")) == [{"x": "a\ufffdb"}]


@pytest.mark.parametrize(
    ("query", "wanted", "expected"),
    [
        ("INSERT INTO t (name) VALUES ('a'), ('b') RETURNING id", "all", Result([{"id": 1.0}, {"id": 2.0}], 2)),
        ("INSERT INTO t (name) VALUES ('a'), ('b') RETURNING id", "first", Result([{"id": 1.0}], 2)),
        ("INSERT INTO t (name) VALUES ('a'), ('b') RETURNING id", "none", Result([], 2)),
        ("DELETE FROM t", "none", Result([], 0)),
        ("CREATE TABLE u (x)", "none", Result([], 0)),
        ("SELECT 1 AS a; INSERT INTO t (name) VALUES (';'); -- that is all", "all", Result([{"a": 1.0}], 1)),
        ("-- nothing", "all", Result([], 0)),
    ],
)
def test_a_query_gives_rows_and_the_count_of_changes(connection, query, wanted, expected):
    assert connection.execute(query, (), wanted) == expected


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("INSERT INTO t (id) VALUES (1), (2), (1)", 0),
        ("INSERT INTO t (id) VALUES (1); INSERT INTO t (id) VALUES (1)", 0),
        ("BEGIN; INSERT INTO t (id) VALUES (1); INSERT INTO t (id) VALUES (1); COMMIT", 0),
        ("BEGIN; INSERT INTO t (id) VALUES (1); COMMIT; INSERT INTO t (id) VALUES (1)", 1),
    ],
    ids=["several rows", "several statements", "a transaction of its own", "after its own commit"],
)
def test_what_fails_in_the_middle_is_rolled_back(connection, query, left):
    with pytest.raises(DatabaseError, match=r"UNIQUE constraint failed: t\.id"):
        connection.execute(query, (), "none")

    assert count(connection) == left


def test_a_transaction_that_is_left_open_is_rolled_back_and_fails(connection):
    with pytest.raises(DatabaseError) as caught:
        connection.execute("/* mine */ BEGIN; INSERT INTO t (id) VALUES (1)", (), "none")

    assert str(caught.value) == "the query leaves a transaction open; it was rolled back"
    assert count(connection) == 0


@pytest.mark.parametrize(
    ("query", "args", "text"),
    [
        ("SELEC", (), 'near "SELEC": syntax error'),
        ("SELECT * FROM missing", (), "no such table: missing"),
        (
            "SELECT ?",
            (1, 2),
            "Incorrect number of bindings supplied. The current statement uses 1, and there are 2 supplied.",
        ),
        ("SELECT ?; SELECT 1", (1,), "You can only execute one statement at a time."),
    ],
    ids=["syntax", "table", "arity", "arguments for several statements"],
)
def test_the_database_says_what_is_wrong(connection, query, args, text):
    with pytest.raises(DatabaseError) as caught:
        connection.execute(query, args, "all")

    assert str(caught.value) == text
    assert rows(connection, "SELECT 1 AS one") == [{"one": 1.0}]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT ';'; ", ["SELECT 1;", " SELECT ';';"]),
        (
            "CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END; SELECT 1",
            ["CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END;", " SELECT 1"],
        ),
        (" ", []),
    ],
    ids=["one", "two", "trigger", "none"],
)
def test_a_script_falls_into_statements(script, expected):
    assert list(statements(script)) == expected


def test_a_lock_is_waited_for(tmp_path):
    file = tmp_path / "a.db"
    waiting = SqliteConnection(str(file))
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    waiting.execute("CREATE TABLE t (x)", (), "none")
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.1, lambda: other.execute("COMMIT")).start()

    started = time.monotonic()
    assert waiting.execute("INSERT INTO t VALUES (1)", (), "none") == Result([], 1)
    assert time.monotonic() - started > 0.08
    waiting.close()
    other.close()


def test_a_lock_that_stays_is_an_error_that_names_the_database(tmp_path):
    file = tmp_path / "a.db"
    waiting = SqliteConnection(str(file), lock_seconds=0.05)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(DatabaseError) as caught:
        waiting.execute("CREATE TABLE t (x)", (), "none")
    waiting.close()
    other.close()

    assert str(caught.value) == "database is locked: another connection held the lock for 0.05 s"
    assert caught.value.hint == f"find the program that keeps a transaction open on `{file}`"


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_a_running_query_can_be_interrupted_and_the_connection_goes_on(connection):
    with interrupting(connection), pytest.raises(DatabaseError, match="interrupted"):
        connection.execute(ENDLESS, (), "all")
    assert count(connection) == 0


def test_waiting_for_a_lock_can_be_interrupted(tmp_path):
    file = tmp_path / "a.db"
    waiting = SqliteConnection(str(file))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with interrupting(waiting), pytest.raises(DatabaseError, match="database is locked"):
        waiting.execute("CREATE TABLE t (x)", (), "none")
    waiting.close()
    other.close()


def test_a_file_that_does_not_exist_is_created_empty(tmp_path):
    SqliteConnection(f"file:{tmp_path}/new.db?mode=rwc").close()

    assert (tmp_path / "new.db").read_bytes() == b""


def test_what_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "text.db").write_text("This is no database. " * 100, encoding="utf-8")
    dsns = [f"{tmp_path}/no/a.db", f"file:{tmp_path}/a.db?mode=ro", f"{tmp_path}/text.db", str(tmp_path)]
    found = []
    for dsn in dsns:
        with pytest.raises(DatabaseError) as caught:
            SqliteConnection(dsn)
        found.append((str(caught.value), caught.value.hint))

    assert found == [
        (f"cannot open `{dsns[0]}`: unable to open database file", f"the directory `{tmp_path}/no` does not exist"),
        (f"cannot open `{dsns[1]}`: unable to open database file", None),
        (f"cannot open `{dsns[2]}`: file is not a database", None),
        (f"cannot open `{dsns[3]}`: unable to open database file", None),
    ]
