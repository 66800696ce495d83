"""octo/connectors/database.py: the settings of database connectors."""

import sys

import pytest

from octo.errors import ConfigError, ConnectorError
from octo.observe import LogLine, Observer
from octo.sql.pool import Limits, Pool
from octo.testing.harness import config, runtime
from servers import PASSWORD


def yaml(*settings: str) -> str:
    lines = "".join(f"\n                {line}" for line in settings)
    return f"""
        connectors:
          - name: ledger
            type: database
            settings:{lines}
    """


class Lines(Observer):
    """Keeps the lines of the process log."""

    kinds = frozenset({LogLine})

    def __init__(self):
        self.lines = []

    def notify(self, event):
        self.lines.append((event.level, event.text))


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ((), Limits(1, 1)),
        (("maxOpenConns: 0", "maxIdleConns: -1", "connMaxLifetime: 0", "acquireTimeout: 0"), Limits(1, 1)),
        (
            ("maxOpenConns: 4", "maxIdleConns: 2", "connMaxLifetime: 5m", "acquireTimeout: 2s"),
            Limits(4, 2, lifetime=300.0, patience=2.0),
        ),
    ],
    ids=["defaults", "zero means default", "all"],
)
async def test_the_limits_of_a_sqlite_pool(tmp_path, settings, limits):
    async with runtime(yaml("driver: sqlite", f"dsn: {tmp_path}/a.db", *settings)) as opened:
        assert opened.live("ledger", Pool).limits == limits


async def test_the_limits_of_a_postgres_pool(postgres):
    settings = ("driver: postgres", f"dsn: {postgres.dsn}", f"password: '{PASSWORD}'")
    async with runtime(yaml(*settings)) as opened:
        pool = opened.live("ledger", Pool)
        assert (await pool.execute("SELECT current_user AS name")).rows == [{"name": "octo"}]

        assert pool.limits == Limits(16, 16, lifetime=1800.0)


@pytest.mark.parametrize("server", ["postgres", "mysql"])
async def test_a_password_replaces_one_in_the_dsn_with_a_warning_that_does_not_show_it(server, request):
    running = request.getfixturevalue(server)
    dsn = running.dsn.replace("octo@", "octo:0ld@")
    log = Lines()
    async with runtime(yaml(f"driver: {server}", f"dsn: {dsn}", f"password: '{PASSWORD}'"), observers=[log]) as opened:
        assert (await opened.live("ledger", Pool).execute("SELECT 1 AS one")).rows == [{"one": 1.0}]

    assert log.lines == [("warn", 'connector "ledger" (database): `password` replaces the one in `dsn`')]


@pytest.mark.parametrize(
    ("settings", "line", "message"),
    [
        (("driver: sqlit", "dsn: a.db"), 0, "expected `postgres` or `sqlite` or `mysql`, found `sqlit`"),
        (("driver: sqlite",), None, "connector of type `database` requires `dsn`"),
        (("driver: sqlite", "dsn: ' '"), 1, "expected where the database is, found blank text"),
        (("driver: sqlite", "dsn: a.db", "password: x"), 2, "`password` has no use with `driver: sqlite`"),
        (
            ("driver: sqlite", "dsn: postgres://db/shop"),
            1,
            "expected a path or `file:PATH` for `driver: sqlite`, found a URL",
        ),
        (
            ("driver: sqlite", "dsn: ':memory:'", "maxOpenConns: 2"),
            2,
            "a database in memory belongs to one connection",
        ),
        (
            ("driver: sqlite", "dsn: a.db", "connMaxLifetime: -5m"),
            2,
            "expected a duration, found `-5m`, which is negative",
        ),
        (("driver: sqlite", "dsn: a.db", "connMaxLifetime: soon"), 2, "expected a duration, found `soon`"),
    ],
    ids=["driver", "no dsn", "blank dsn", "password", "URL", "memory", "negative lifetime", "no duration"],
)
def test_settings_that_cannot_work_are_refused_where_they_stand(settings, line, message):
    with pytest.raises(ConfigError) as caught:
        config(yaml(*settings))

    (problem,) = caught.value.problems
    assert problem.message == message
    assert problem.location is not None
    assert problem.location.line == (3 if line is None else line + 6)


@pytest.mark.parametrize(("driver", "package"), [("postgres", "psycopg"), ("mysql", "pymysql")])
def test_a_driver_whose_extra_is_missing_is_refused_with_the_command_that_installs_it(monkeypatch, driver, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as caught:
        config(yaml(f"driver: {driver}", f"dsn: {driver}://u@db/shop"))

    (problem,) = caught.value.problems
    assert problem.message == f"driver `{driver}` needs the package `{package}`"
    assert problem.hint == f"install it: pip install 'octo-runner[{driver}]'"


async def test_a_database_that_cannot_be_reached_stops_the_start(tmp_path):
    with pytest.raises(ConnectorError) as caught:
        async with runtime(yaml("driver: sqlite", f"dsn: {tmp_path}/no/a.db")):
            pass

    assert str(caught.value) == (
        f'connector "ledger" (database): cannot open `{tmp_path}/no/a.db`: unable to open database file'
    )
    assert caught.value.hint == f"the directory `{tmp_path}/no` does not exist"


@pytest.mark.parametrize("driver", ["postgres", "mysql"])
async def test_a_server_that_is_not_there_stops_the_start(driver):
    with pytest.raises(ConnectorError, match="Connection refused"):
        async with runtime(yaml(f"driver: {driver}", f"dsn: {driver}://u@127.0.0.1:1/shop")):
            pass
