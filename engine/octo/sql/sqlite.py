"""SQLite databases, through the standard library."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from octo.sql.connection import DatabaseError, Result, Scalar, Wanted, left_open, one_line
from octo.sql.values import records
from octo.values import Json

LOCK_SECONDS = 30.0
"""How long a query waits for a lock that another connection holds."""

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_ON_ITS_OWN = re.compile(
    r"(\s|--[^\n]*(\n|$)|/\*.*?\*/)*(begin|commit|end|rollback|savepoint|release|pragma|vacuum|attach|detach)\b",
    re.IGNORECASE | re.DOTALL,
)
"""A statement that begins or ends a transaction, or cannot stand in one."""


class SqliteConnection:
    """A connection that waits for locks in its own thread and can be interrupted there."""

    lost = False

    def __init__(self, dsn: str, *, lock_seconds: float = LOCK_SECONDS) -> None:
        self._dsn = dsn
        self._lock_seconds = lock_seconds
        self._interrupted = threading.Event()
        self._raw: sqlite3.Connection | None = None
        try:
            self._raw = sqlite3.connect(
                dsn, uri=dsn.startswith("file:"), timeout=0, isolation_level=None, check_same_thread=False
            )
            self._raw.text_factory = _text
            self._run(self._raw, "PRAGMA schema_version", (), "none")
        except sqlite3.Error as error:
            self.close()
            raise self._unopened(error) from error

    def execute(self, query: str, args: Sequence[Scalar], wanted: Wanted) -> Result:
        raw = self._raw
        if raw is None:
            raise DatabaseError("the connection is closed")
        self._interrupted.clear()
        # The driver binds arguments to one statement only, and says so when there are several.
        script = [query] if args else list(statements(query))
        try:
            if len(script) > 1 and not any(map(_ON_ITS_OWN.match, script)):
                script = ["BEGIN IMMEDIATE", *script, "COMMIT"]
            rows: list[dict[str, Json]] = []
            affected = 0
            for statement in script:
                result = self._run(raw, statement, args, wanted)
                rows, affected = result.rows or rows, affected + result.affected
            if raw.in_transaction:
                raise left_open()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._failed(error) from error
        finally:
            if raw.in_transaction:
                raw.rollback()
        return Result(rows, affected)

    def alive(self) -> bool:
        return True

    def interrupt(self) -> None:
        self._interrupted.set()
        if self._raw is not None:
            self._raw.interrupt()

    def close(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()

    def _run(self, raw: sqlite3.Connection, statement: str, args: Sequence[Scalar], wanted: Wanted) -> Result:
        """Run one statement; when a lock is in its way, again and again until the lock is gone."""
        deadline, pause = time.monotonic() + self._lock_seconds, 0.001
        while True:
            try:
                return _result(raw.execute(statement, tuple(args)), wanted)
            except sqlite3.OperationalError as error:
                # The lowest byte is the kind of the error, the others its details.
                if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() >= deadline:
                    raise
                if self._interrupted.wait(pause):
                    raise
                pause = min(pause * 2, 0.05)

    def _failed(self, error: Exception) -> DatabaseError:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY and not self._interrupted.is_set():
            return DatabaseError(
                f"{one_line(str(error))}: another connection held the lock for {self._lock_seconds:g} s",
                hint=f"find the program that keeps a transaction open on `{self._dsn}`",
            )
        return DatabaseError(one_line(str(error)))

    def _unopened(self, error: Exception) -> DatabaseError:
        file = Path(self._dsn.removeprefix("file:").partition("?")[0])
        hint = None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN and not file.parent.is_dir():
            hint = f"the directory `{file.parent}` does not exist"
        return DatabaseError(f"cannot open `{self._dsn}`: {one_line(str(error))}", hint=hint)


def statements(script: str) -> Iterator[str]:
    """The statements of a script: a semicolon ends one unless it stands in text, a comment or a trigger."""
    start = 0
    for semicolon in re.finditer(";", script):
        piece = script[start : semicolon.end()]
        if sqlite3.complete_statement(piece):
            yield piece
            start = semicolon.end()
    if script[start:].strip():
        yield script[start:]


def _result(cursor: sqlite3.Cursor, wanted: Wanted) -> Result:
    rows = []
    if cursor.description is not None:
        names = [column[0] for column in cursor.description]
        if wanted == "all":
            rows = records(names, cursor)
        else:
            rows = records(names, cursor.fetchmany(1)) if wanted == "first" else []
            for _ in cursor:  # a change that returns rows is done when the last of them was read
                pass
    affected = max(cursor.rowcount, 0)
    cursor.close()
    return Result(rows, affected)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
