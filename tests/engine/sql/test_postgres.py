"""octo/sql/postgres.py: connections to a real PostgreSQL server."""

import pytest

from octo.sql.connection import DatabaseError, Result
from octo.sql.postgres import PostgresConnection, options, places_of
from servers import PASSWORD, interrupting

FORM = "write `postgres://user@host:5432/database?sslmode=require` or `host=… user=… dbname=…`"


@pytest.fixture
def connection(postgres):
    opened = PostgresConnection(options(postgres.dsn, PASSWORD)[0])
    opened.execute("CREATE TEMPORARY TABLE t (id int PRIMARY KEY, name text, price numeric)", (), "none")
    yield opened
    opened.close()


def rows(connection, query, *args):
    return connection.execute(query, args, "all").rows


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("7", 7.0),
        ("9007199254740993", 9007199254740992.0),
        ("1.25::numeric", 1.25),
        ("'NaN'::float8", "NaN"),
        ("NULL::text", None),
        ("true", True),
        ("'é'", "é"),
        (r"'\xff61'::bytea", "\ufffda"),
        ("timestamptz '2024-01-02 03:04:05.12+02'", "2024-01-02T01:04:05.12Z"),
        ("timestamp '2024-01-02 03:04:05'", "2024-01-02T03:04:05Z"),
        ("date '2024-01-02'", "2024-01-02T00:00:00Z"),
        ("'infinity'::timestamptz", "infinity"),
        ("time '01:02:03'", "01:02:03"),
        ("interval '1 day 2 hours'", "1 day 02:00:00"),
        ("""'{"a": 1}'::jsonb""", '{"a": 1}'),
        ("'6f0a8f0d-8889-4d50-9000-1e83769ce4d3'::uuid", "6f0a8f0d-8889-4d50-9000-1e83769ce4d3"),
        ("ARRAY[1, NULL]", [1.0, None]),
        ("int4range(1, 5)", "[1,5)"),
        ("inet '127.0.0.1'", "127.0.0.1"),
    ],
)
def test_values_arrive_as_json(connection, sql, expected):
    assert rows(connection, f"SELECT {sql} AS x") == [{"x": expected}]


def test_arguments_are_bound_in_the_kind_of_their_column(connection):
    assert connection.execute("INSERT INTO t VALUES ($1, $2, $3)", (70000, "a'b", 1.5), "none") == Result([], 1)
    assert rows(connection, "SELECT * FROM t WHERE id = $1 AND price = $2 AND name = $3", 70000, 1.5, "a'b") == [
        {"id": 70000.0, "name": "a'b", "price": 1.5}
    ]
    assert rows(connection, "SELECT $1::boolean AS a, $2::text AS b, 5 % 3 AS c", False, None) == [
        {"a": False, "b": None, "c": 2.0}
    ]


def test_of_several_statements_the_last_rows_and_all_changes_count(connection):
    script = "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2), (3) RETURNING id"

    assert connection.execute(script, (), "first") == Result([{"id": 2.0}], 3)


@pytest.mark.parametrize(
    ("query", "args", "text"),
    [
        ("SELEC", (), 'syntax error at or near "SELEC"'),
        ("SELECT * FROM missing", (), 'relation "missing" does not exist'),
        ("SELECT $1", (), "the query has places for 1 arguments, found 0"),
        ("SELECT 1", (1,), "the query has places for 0 arguments, found 1"),
        ("BEGIN", (), "the query leaves a transaction open; it was rolled back"),
        (
            "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)",
            (),
            'duplicate key value violates unique constraint "t_pkey"',
        ),
        (
            "BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); COMMIT",
            (),
            'duplicate key value violates unique constraint "t_pkey"',
        ),
        ("INSERT INTO t VALUES (1), ($1)", ("x",), 'invalid input syntax for type integer: "x"'),
    ],
    ids=["syntax", "table", "too few", "too many", "open transaction", "in a script", "in a transaction", "kind"],
)
def test_what_fails_is_rolled_back_and_the_connection_goes_on(connection, query, args, text):
    with pytest.raises(DatabaseError) as caught:
        connection.execute(query, args, "all")

    assert str(caught.value) == text
    assert rows(connection, "SELECT count(*) AS n FROM t") == [{"n": 0.0}]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT $2 || $1", 2),
        ("SELECT '$3', \"$4\", $1::int", 1),
        (r"SELECT E'it\'s $3' || 'it''s $2'", 0),
        ("SELECT $tag$ $1 $$ $tag$ || $$ $2 $$", 0),
        ("SELECT 1 -- $1\n/* $2 */ + $1", 1),
        ("SELECT a$1 FROM t", 0),
    ],
)
def test_only_places_outside_of_text_and_comments_count(query, expected):
    assert places_of(query) == expected


def test_a_running_query_can_be_interrupted_and_the_connection_goes_on(connection):
    with interrupting(connection), pytest.raises(DatabaseError, match="canceling statement due to user request"):
        connection.execute("SELECT pg_sleep(30)", (), "all")
    assert (connection.lost, rows(connection, "SELECT 1 AS one")) == (False, [{"one": 1.0}])


def test_a_connection_that_the_server_closed_is_lost(connection, postgres):
    other = PostgresConnection(options(postgres.dsn, PASSWORD)[0])
    (backend,) = rows(connection, "SELECT pg_backend_pid() AS pid")
    assert (connection.alive(), connection.lost) == (True, False)
    rows(other, "SELECT pg_terminate_backend($1)", int(backend["pid"]))
    other.close()

    with pytest.raises(DatabaseError, match="terminating connection due to administrator command"):
        connection.execute("SELECT 1", (), "all")
    assert (connection.alive(), connection.lost) == (False, True)


@pytest.mark.parametrize(
    ("dsn", "password", "expected", "replaced"),
    [
        ("postgres://ann@db:5433/shop", "p@ss", {"user": "ann", "host": "db", "port": "5433", "dbname": "shop"}, False),
        ("host=db user=ann dbname=shop port=5433 password=x", "p@ss", {"user": "ann", "host": "db"}, True),
        ("postgresql://ann:x@db/shop?sslmode=require", "p@ss", {"sslmode": "require"}, True),
        ("postgres://ann:p%40ss@db/shop?connect_timeout=3", None, {"connect_timeout": "3"}, False),
    ],
    ids=["url", "keywords", "replaced", "own"],
)
def test_a_password_needs_no_escaping(dsn, password, expected, replaced):
    found, has_replaced = options(dsn, password)

    assert found | expected == found
    assert (found["password"], has_replaced) == ("p@ss", replaced)


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        ("ann:s3cret@db", "`dsn` cannot be read"),
        ("postgres://ann:s3cret@[db/shop", "`dsn` cannot be read"),
        ("postgres://ann:s3cret@db/shop?sslmod=x", "`dsn` has an unknown option `sslmod`"),
        ("password=s3cret hots=db", "`dsn` has an unknown option `hots`"),
    ],
)
def test_a_dsn_that_cannot_be_read_is_not_repeated(dsn, text):
    with pytest.raises(DatabaseError) as caught:
        options(dsn, None)

    assert (str(caught.value), caught.value.hint) == (text, FORM)


def test_who_is_not_let_in_reads_why(postgres):
    with pytest.raises(DatabaseError) as caught:
        PostgresConnection(options(postgres.dsn, "wrong")[0])

    assert str(caught.value) == (
        f'cannot connect: connection to server at "127.0.0.1", port {postgres.port} failed: '
        'FATAL: password authentication failed for user "octo"'
    )
