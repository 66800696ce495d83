"""PostgreSQL databases, through psycopg."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.pq import TransactionStatus
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from psycopg.types.numeric import FloatLoader
from psycopg.types.string import TextLoader

from octo.sql.connection import DatabaseError, Result, Scalar, Wanted, left_open, one_line
from octo.sql.values import records

_CONNECT_SECONDS = "10"

_PLACE = re.compile(
    r"""
      \b[eE]'(?:[^'\\]|\\.|'')*'  # in text nothing counts,
    | '[^']*'
    | "[^"]*"
    | (?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?P=tag)
    | --[^\n]*                  # nor in comments,
    | /\*.*?\*/
    | (?<![\w$])\$(?P<place>\d+)         # but here
    """,
    re.VERBOSE | re.DOTALL,
)


def options(dsn: str, password: str | None) -> tuple[dict[str, str], bool]:
    """The connection options of a DSN, and whether the password replaced one that was in it.

    Raises DatabaseError, which shows of the DSN at most the name of an option.
    """
    try:
        found: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as error:
        unknown = re.search(r'invalid (?:connection option|URI query parameter): ?"?(\w+)"?|option "(\w+)"', str(error))
        name = next((part for part in unknown.groups() if part), None) if unknown else None
        raise DatabaseError(
            f"`dsn` has an unknown option `{name}`" if name else "`dsn` cannot be read",
            hint="write `postgres://user@host:5432/database?sslmode=require` or `host=… user=… dbname=…`",
        ) from None
    replaced = password is not None and "password" in found
    if password is not None:
        found["password"] = password
    return {"connect_timeout": _CONNECT_SECONDS, "client_encoding": "UTF8"} | found, replaced


class PostgresConnection:
    """A connection in which every query is a transaction of its own."""

    def __init__(self, options: Mapping[str, str]) -> None:
        try:
            self._raw = psycopg.connect(
                **options,  # type: ignore[arg-type]  # the options of libpq, which take text
                autocommit=True,
                prepare_threshold=None,
                cursor_factory=psycopg.RawCursor,
            )
        except psycopg.Error as error:
            raise DatabaseError(f"cannot connect: {_reason(error).removeprefix('connection failed: ')}") from error
        for name, loader in _LOADERS.items():
            self._raw.adapters.register_loader(name, loader)

    def execute(self, query: str, args: Sequence[Scalar], wanted: Wanted) -> Result:
        if (places := places_of(query)) != len(args):
            raise DatabaseError(f"the query has places for {places} arguments, found {len(args)}")
        try:
            with self._raw.cursor() as cursor:
                cursor.execute(query.encode(), args or None)
                result = _result(cursor, wanted)
            if self._in_transaction():
                raise left_open()
        except psycopg.Error as error:
            raise DatabaseError(_reason(error)) from error
        finally:
            if self._in_transaction():
                self._roll_back()
        return result

    @property
    def lost(self) -> bool:
        return self._raw.closed

    def alive(self) -> bool:
        try:
            self._raw.execute(b"SELECT 1")
        except psycopg.Error:
            return False
        return True

    def interrupt(self) -> None:
        try:
            self._raw.cancel_safe(timeout=5)
        except psycopg.Error:
            self._raw.close()

    def close(self) -> None:
        self._raw.close()

    def _in_transaction(self) -> bool:
        return not self._raw.closed and self._raw.info.transaction_status != TransactionStatus.IDLE

    def _roll_back(self) -> None:
        try:
            self._raw.execute(b"ROLLBACK")
        except psycopg.Error:
            self._raw.close()


def places_of(query: str) -> int:
    """How many arguments a query takes: the highest `$n` in it. The server does not mind spare arguments."""
    return max((int(match["place"]) for match in _PLACE.finditer(query) if match["place"]), default=0)


def _result(cursor: psycopg.Cursor[Any], wanted: Wanted) -> Result:
    """The rows of the last statement that has some, and the changes of all."""
    rows, affected = [], 0
    while True:
        affected += max(cursor.rowcount, 0)
        if cursor.description is not None and wanted != "none":
            names = [column.name for column in cursor.description]
            rows = records(names, cursor.fetchmany(1) if wanted == "first" else cursor)
        if not cursor.nextset():
            return Result(rows, affected)


def _reason(error: psycopg.Error) -> str:
    """What went wrong, without the details: those quote the values of rows."""
    return one_line(error.diag.message_primary or str(error))


class _Date(DateLoader):
    """A date beyond the years 1 to 9999 stays the text that it is."""

    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


class _Timestamp(TimestampLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


class _Timestamptz(TimestamptzLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


def _or_text(load: Any, data: Buffer) -> Any:
    try:
        return load(data)
    except psycopg.DataError:
        return bytes(data).decode()


_RANGES = ("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange")

_LOADERS: dict[str, Any] = {
    "date": _Date,
    "timestamp": _Timestamp,
    "timestamptz": _Timestamptz,
    "numeric": FloatLoader,
    **dict.fromkeys(("json", "jsonb", "interval", "time", "timetz", "inet", "cidr", "uuid", *_RANGES), TextLoader),
}
"""How the values of types are read that would not become plain text, numbers and moments by themselves."""
