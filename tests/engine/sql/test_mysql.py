"""octo/sql/mysql.py: connections to a real server that speaks the protocol of MySQL."""

import pytest

from octo.sql.connection import DatabaseError, Result
from octo.sql.mysql import MysqlConnection, options
from servers import PASSWORD, interrupting

FORM = "write `mysql://user@host:3306/database`"


@pytest.fixture
def connection(mysql):
    opened = MysqlConnection(options(mysql.dsn, PASSWORD)[0])
    opened.execute("CREATE TEMPORARY TABLE t (id int PRIMARY KEY, name varchar(50), at timestamp NULL)", (), "none")
    yield opened
    opened.close()


def rows(connection, query, *args):
    return connection.execute(query, args, "all").rows


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("7", 7.0),
        ("1.25", 1.25),
        ("NULL", None),
        ("'é😀'", "é😀"),
        ("x'ff61'", "\ufffda"),
        ("timestamp '2024-01-02 03:04:05.12'", "2024-01-02T03:04:05.12Z"),
        ("date '2024-01-02'", "2024-01-02T00:00:00Z"),
        ("time '01:02:03'", "01:02:03"),
        ("json_object('a', 1)", '{"a": 1}'),
    ],
)
def test_values_arrive_as_json(connection, sql, expected):
    assert rows(connection, f"SELECT {sql} AS x") == [{"x": expected}]


@pytest.mark.parametrize("value", ["", "it's", '"\\', "é😀", "?", "%s", "x'); DROP TABLE t; -- "])
def test_text_is_bound_and_never_part_of_the_query(connection, value):
    connection.execute("INSERT INTO t VALUES (1, ?, NULL)", (value,), "none")

    assert rows(connection, "SELECT name FROM t WHERE name = ? AND '?' = '?'", value) == [{"name": value}]


def test_numbers_booleans_and_null_are_bound(connection):
    values = (7, -2.5, 1e300, 2**62, True, None)
    query = "SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e, ? AS f"

    assert connection.execute(query, values, "first").rows == [
        {"a": 7.0, "b": -2.5, "c": 1e300, "d": 2.0**62, "e": 1.0, "f": None}
    ]


def test_the_clock_of_a_session_is_utc(connection):
    connection.execute("INSERT INTO t VALUES (1, NULL, '2024-01-02 03:04:05')", (), "none")

    assert rows(connection, "SELECT at, @@session.time_zone AS zone FROM t") == [
        {"at": "2024-01-02T03:04:05Z", "zone": "+00:00"}
    ]


@pytest.mark.parametrize(
    ("query", "args", "text"),
    [
        ("SELECT * FROM missing", (), "Table 'octo.missing' doesn't exist"),
        ("SELECT ?", (1, 2), "Incorrect arguments to EXECUTE"),
        ("INSERT INTO t (id) VALUES (1), (2), (?)", (1,), "Duplicate entry '1' for key 'PRIMARY'"),
        ("BEGIN", (), "the query leaves a transaction open; it was rolled back"),
    ],
    ids=["table", "arity", "several rows", "open transaction"],
)
def test_what_fails_is_rolled_back_and_the_connection_goes_on(connection, query, args, text):
    with pytest.raises(DatabaseError) as caught:
        connection.execute(query, args, "all")

    assert str(caught.value) == text
    assert rows(connection, "SELECT count(*) AS n FROM t") == [{"n": 0.0}]


def test_changes_are_counted(connection):
    assert connection.execute("INSERT INTO t (id) VALUES (1), (2)", (), "none") == Result([], 2)
    assert connection.execute("DELETE FROM t WHERE id > ?", (0,), "none") == Result([], 2)


def test_a_running_query_can_be_interrupted_and_the_connection_goes_on(connection):
    with interrupting(connection), pytest.raises(DatabaseError, match="Query execution was interrupted"):
        connection.execute("SELECT count(*) FROM seq_1_to_1000000000 a, seq_1_to_1000000000 b", (), "all")
    assert (connection.lost, rows(connection, "SELECT 1 AS one")) == (False, [{"one": 1.0}])


def test_a_connection_that_the_server_closed_is_lost(connection, mysql):
    other = MysqlConnection(options(mysql.dsn, PASSWORD)[0])
    (session,) = rows(connection, "SELECT connection_id() AS id")
    assert (connection.alive(), connection.lost) == (True, False)
    other.execute(f"KILL {session['id']:.0f}", (), "none")
    other.close()

    with pytest.raises(DatabaseError):
        connection.execute("SELECT 1", (), "all")
    assert (connection.alive(), connection.lost) == (False, True)


def test_a_dsn_names_server_user_and_options():
    dsn = "mysql://ann%40x:old@db:3307/shop?connect_timeout=3&ssl_ca=/ca.pem&ssl_verify_identity=true"

    assert options(dsn, "p@ss") == (
        {
            "host": "db",
            "port": 3307,
            "user": "ann@x",
            "password": "p@ss",
            "database": "shop",
            "connect_timeout": 3,
            "ssl_ca": "/ca.pem",
            "ssl_verify_identity": True,
        },
        True,
    )
    assert options("mariadb://ann:a%23b@db", None) == (
        {"host": "db", "port": 3306, "user": "ann", "password": "a#b", "connect_timeout": 10},
        False,
    )


@pytest.mark.parametrize(
    ("dsn", "text", "hint"),
    [
        ("ann:s3cret@tcp(db:3306)/shop", "`dsn` is no URL of a MySQL database", FORM),
        ("mysql://ann:s3cret@db:port/shop", "`dsn` cannot be read", FORM),
        ("mysql://ann:s3cret@db/shop?charst=x", "`dsn` has an unknown option `charst`", "did you mean `charset`?"),
        ("mysql://ann:s3cret@db/shop?connect_timeout=x", "option `connect_timeout` of `dsn` is no number", FORM),
    ],
)
def test_a_dsn_that_cannot_be_read_is_not_repeated(dsn, text, hint):
    with pytest.raises(DatabaseError) as caught:
        options(dsn, None)

    assert (str(caught.value), caught.value.hint) == (text, hint)


def test_who_is_not_let_in_reads_why(mysql):
    with pytest.raises(DatabaseError) as caught:
        MysqlConnection(options(mysql.dsn, "wrong")[0])

    assert str(caught.value) == "cannot connect: Access denied for user 'octo'@'localhost' (using password: YES)"
