"""Relational databases: SQLite, PostgreSQL, MySQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import model_validator

from octo.connector import Connector
from octo.errors import missing_extra
from octo.fields import Duration, Int, Text, one_of
from octo.refusals import Refusals

if TYPE_CHECKING:
    from octo.runtime import Runtime
    from octo.sql.connection import Connection
    from octo.sql.pool import Pool

Driver = Literal["postgres", "sqlite", "mysql"]

PLACEHOLDERS: Final[dict[Driver, str]] = {"postgres": "`$1`, `$2`, …", "sqlite": "`?`", "mysql": "`?`"}
"""What stands in a query for an argument."""

_PACKAGES: Final = {"postgres": "psycopg", "mysql": "pymysql"}
_HALF_AN_HOUR: Final = 1800.0


class Database(Connector, type="database"):
    """A pool of connections to a SQLite, PostgreSQL or MySQL database, which `sql` blocks use."""

    driver: Annotated[Driver, one_of(*PLACEHOLDERS)]
    """Kind of database; `postgres` and `mysql` need an extra: `pip install 'octo-runner[postgres]'`."""

    dsn: Text
    """Where the database is: `file:ledger.db?mode=rwc` or a path for SQLite, relative to the working directory;
    `postgres://user@host:5432/db?sslmode=require` or `host=… user=… dbname=…`; `mysql://user@host:3306/db`."""

    password: Text | None = None
    """Password, as it is, without any escaping; it replaces one in `dsn`. Not for SQLite."""

    max_open_conns: Int = 0
    """The most connections at once; 0 or less means 16, and 1 for SQLite."""

    max_idle_conns: Int = 0
    """The most connections that are kept while nobody uses them; 0 or less means 16, and 1 for SQLite."""

    conn_max_lifetime: Duration | None = None
    """After how long a connection is replaced; `30m` by default, never for SQLite."""

    acquire_timeout: Duration | None = None
    """How long a query waits for a free connection before it fails; without it as long as it must."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        package = _PACKAGES.get(self.driver)
        if package and (hint := missing_extra(package, self.driver)):
            refusals.add(f"driver `{self.driver}` needs the package `{package}`", "driver", hint=hint)
        if not self.dsn.strip():
            refusals.add("expected where the database is, found blank text", "dsn")
        if self.driver == "sqlite":
            self._check_sqlite(refusals)
        refusals.raise_if_any()
        return self

    def _check_sqlite(self, refusals: Refusals) -> None:
        if self.password is not None:
            refusals.add("`password` has no use with `driver: sqlite`", "password", hint="leave it out")
        if "://" in self.dsn and not self.dsn.startswith("file:"):
            refusals.add(
                "expected a path or `file:PATH` for `driver: sqlite`, found a URL", "dsn", hint="is `driver` right?"
            )
        if self._limit(self.max_open_conns) > 1 and _is_private_memory(self.dsn):
            refusals.add(
                "a database in memory belongs to one connection",
                "maxOpenConns",
                hint="leave `maxOpenConns` out, or write `dsn: file::memory:?cache=shared`",
            )

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Pool]:
        from octo.sql.pool import Limits, Pool

        connect = self._connect(runtime)
        lifetime = None if self.driver == "sqlite" else _HALF_AN_HOUR
        if self.conn_max_lifetime and self.conn_max_lifetime.ns:
            lifetime = self.conn_max_lifetime.seconds
        patience = self.acquire_timeout.seconds if self.acquire_timeout and self.acquire_timeout.ns else None
        limits = Limits(self._limit(self.max_open_conns), self._limit(self.max_idle_conns), lifetime, patience)
        pool = Pool(connect, limits)
        try:
            await pool.check()
            yield pool
        finally:
            await pool.close()

    def _limit(self, given: int) -> int:
        return given if given > 0 else 1 if self.driver == "sqlite" else 16

    def _connect(self, runtime: Runtime) -> Callable[[], Connection]:
        if self.driver == "sqlite":
            from octo.sql.sqlite import SqliteConnection

            return partial(SqliteConnection, self.dsn)
        connect: Callable[[], Connection]
        if self.driver == "postgres":
            from octo.sql import postgres

            options, replaced = postgres.options(self.dsn, self.password)
            connect = partial(postgres.PostgresConnection, options)
        else:
            from octo.sql import mysql

            options, replaced = mysql.options(self.dsn, self.password)
            connect = partial(mysql.MysqlConnection, options)
        if replaced:
            runtime.log("warn", f'connector "{self.instance}" ({self.type}): `password` replaces the one in `dsn`')
        return connect


def _is_private_memory(dsn: str) -> bool:
    """Whether each connection has a SQLite database of its own, in memory."""
    in_memory = dsn.startswith((":memory:", "file::memory:")) or "mode=memory" in dsn
    return in_memory and "cache=shared" not in dsn
