"""One SQLite file in a directory of its own, shared by any number of processes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

from octo.errors import StoreError
from octo.store import migrations

if TYPE_CHECKING:
    import sqlite3
    from sqlite3 import Connection

T = TypeVar("T")

FILE_NAME: Final = "octo.db"
PATIENCE: Final = 30.0
"""Seconds that a write waits for other processes."""

_FIRST_WAIT: Final = 0.02
"""Seconds that SQLite itself waits for a lock; the event loop stands still for as long."""
_LONGEST_PAUSE: Final = 0.025
_WRITER_BYTE: Final = "120"
"""Where in the `-shm` file of a write-ahead log the one writer holds its lock."""
_ELSEWHERE: Final = "name another directory with `--store DIR`"


class Store:
    """A store directory. Nothing is opened before the first use, nothing is created before the first write.

    A file that cannot be written, or whose directory cannot be, is read all the same. It is opened anew each time, so
    a store that can be written by then is one like any other.

    Work on the store is a function of a connection. It runs without a pause, so no transaction is ever open while
    other tasks run; it may be called again when another process was in the way, so it touches nothing but the
    connection. `sqlite3` is imported with the first use, too.
    """

    def __init__(self, directory: Path | None = None, *, patience: float = PATIENCE) -> None:
        """Without a directory the store is in memory and ends when it is closed."""
        self.path = directory / FILE_NAME if directory else None
        self.patience = patience
        self._db: Connection | None = None

    def __str__(self) -> str:
        return str(self.path or ":memory:")

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Do work in one transaction: all of it is in the file when this returns, or nothing is."""
        return await self._patiently(lambda: _transaction(self._connection(), "BEGIN IMMEDIATE", work))

    async def read(self, work: Callable[[Connection], T], otherwise: T) -> T:
        """Do work that only reads, on one state of the store; `otherwise` when there is no store yet."""
        if not self.exists():
            return otherwise

        def attempt() -> T:
            with self._to_read() as db:
                return _transaction(db, "BEGIN", work)

        return await self._patiently(attempt)

    async def maintain(self, work: Callable[[Connection], T]) -> T:
        """Do work on the whole file that cannot stand in a transaction. Raises StoreError when there is no store."""
        if not self.exists():
            raise StoreError(f"there is no store `{self}`", hint="it is created when something is first kept in it")

        def attempt() -> T:
            with self._to_read() as db:
                return work(db)

        return await self._patiently(attempt)

    @asynccontextmanager
    async def to_search(self) -> AsyncIterator[Store]:
        """A store for work that keeps an index of what it reads: this one, or a copy in memory of a read-only one."""
        if not self._is_read_only():
            yield self
            return
        with Store() as copy:
            await self.maintain(lambda db: db.backup(copy._connection()))
            yield copy

    def exists(self) -> bool:
        """Whether there is something to read."""
        if self._db is not None or self.path is None:
            return True
        try:
            self.path.stat()
        except FileNotFoundError:
            return False
        except NotADirectoryError as error:
            raise self._no_place(self.path.parent, error) from error
        except OSError as error:
            raise StoreError(f"cannot read the store `{self}`: {_reason(error)}", hint=_ELSEWHERE) from error
        return True

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ waiting for others

    async def _patiently(self, attempt: Callable[[], T]) -> T:
        """The result of an attempt, which is made again while another process holds the lock."""
        import sqlite3

        give_up: float | None = None
        pause = 0.001
        while True:
            try:
                return attempt()
            except sqlite3.Error as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise self._explained(error) from error
                now = time.monotonic()
                if give_up is None:
                    give_up = now + self.patience
                elif now >= give_up:
                    raise self._locked() from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    # ------------------------------------------------------------ opening

    def _connection(self) -> Connection:
        if self._db is None:
            self._db = self._open()
        return self._db

    @contextmanager
    def _to_read(self) -> Iterator[Connection]:
        """The connection, or one for this moment where nothing can be written."""
        if self.path is not None and self._is_read_only():
            with closing(self._open_to_read(self.path)) as db:
                yield db
        else:
            yield self._connection()

    def _is_read_only(self) -> bool:
        """Whether there is a file, not opened yet, that this process may read at most."""
        if self._db is not None or self.path is None:
            return False
        files = (self.path.parent, self.path, Path(f"{self.path}-wal"), Path(f"{self.path}-shm"))
        try:
            return self.path.is_file() and not all(os.access(file, os.W_OK) for file in files if file.exists())
        except OSError:  # it cannot even be looked at, and opening it says why
            return False

    def _open(self) -> Connection:
        import sqlite3

        if self.path is not None:
            if self._is_read_only():
                raise StoreError(
                    f"`{self}` cannot be written: the file or its directory is read-only",
                    hint=f"make the file and its directory writable, or {_ELSEWHERE}",
                )
            self._make_place(self.path)
        db = sqlite3.connect(self.path or ":memory:", timeout=_FIRST_WAIT, isolation_level=None)
        try:
            version = self._version(db)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            if version < migrations.LATEST:
                migrations.migrate(db)
        except BaseException:
            db.close()
            raise
        return db

    def _open_to_read(self, path: Path) -> Connection:
        """A connection to a store that cannot be written.

        Without a log nobody writes to it, and nothing need be made beside it. With a log, SQLite needs the file there
        by which those who read and those who write find out about each other.
        """
        import sqlite3

        log = Path(f"{path}-wal")
        mode = "mode=ro" if _size(log) else "immutable=1"
        address = f"{path.absolute().as_uri()}?{mode}"
        db = sqlite3.connect(address, uri=True, timeout=_FIRST_WAIT, isolation_level=None)
        try:
            version = self._version(db)
            if version < migrations.LATEST:
                raise StoreError(
                    f"`{self}` is of version {version}, and cannot be written to bring it to {migrations.LATEST}",
                    hint=f"make the file and its directory writable for once, or {_ELSEWHERE}",
                )
        except BaseException as error:
            db.close()
            if mode == "immutable=1" or _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            if _size(log):
                raise StoreError(
                    f"`{self}` cannot be read: its log `{log.name}` is not empty, and reading that takes write "
                    "access to the directory",
                    hint="make the directory writable, or copy both files to another and name it with `--store DIR`",
                ) from error
            return self._open_to_read(path)  # whoever had the log has ended
        return db

    def _make_place(self, path: Path) -> None:
        """The directory and an empty file, for the owner only.

        An existing file is not even opened: closing it would end the locks that this process has on it.
        """
        directory = path.parent
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not any(directory.iterdir()):
                (directory / ".gitignore").write_text("*\n", encoding="utf-8")
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError as error:
            if path.exists() and not path.is_file():  # SQLite would wait for the other end of a pipe
                raise StoreError(f"`{self}` is not an SQLite file", hint=f"move it away, or {_ELSEWHERE}") from error
            if not directory.is_dir():
                raise self._no_place(directory, error) from error
        except OSError as error:
            raise self._no_place(directory, error) from error

    def _no_place(self, directory: Path, error: OSError) -> StoreError:
        reason = "a file of that name exists" if directory.is_file() else _reason(error)
        return StoreError(f"cannot create the store `{directory}`: {reason}", hint=_ELSEWHERE)

    def _version(self, db: Connection) -> int:
        """How many migrations the file has seen; raises StoreError for a file that must be left alone."""
        db.execute("BEGIN")  # one look, for another process may be making the tables right now
        owner, version, tables = (
            db.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        db.execute("COMMIT")
        if owner != migrations.APPLICATION_ID and (owner or version or tables):
            raise StoreError(f"`{self}` is the SQLite file of another program", hint=_ELSEWHERE)
        if version > migrations.LATEST:
            raise StoreError(
                f"`{self}` is of version {version}, and this octo knows the versions up to {migrations.LATEST}",
                hint=f"install a newer octo, or {_ELSEWHERE}",
            )
        return int(version)

    # ------------------------------------------------------------ what went wrong

    def _locked(self) -> StoreError:
        holder = _holder(self.path) if self.path else None
        who = "another process" if holder is None else f"the process {holder}"
        return StoreError(
            f"`{self}` stayed locked by {who} for {self.patience:g} s",
            hint="nothing was written; run again when that process is done, or end it",
        )

    def _explained(self, error: sqlite3.Error) -> StoreError:
        import sqlite3

        match _code(error):
            case sqlite3.SQLITE_NOTADB:
                return StoreError(f"`{self}` is not an SQLite file", hint=f"move it away, or {_ELSEWHERE}")
            case sqlite3.SQLITE_CORRUPT:
                return StoreError(
                    f"`{self}` is damaged: {error}",
                    hint="put a backup in its place; `sqlite3 octo.db .recover` saves what is readable",
                )
            case sqlite3.SQLITE_READONLY:
                return StoreError(
                    f"`{self}` cannot be written: {error}",
                    hint=f"make the file and its directory writable, or {_ELSEWHERE}",
                )
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                return StoreError(
                    f"`{self}` cannot be opened: {error}",
                    hint=f"make the file and its directory readable and writable, or {_ELSEWHERE}",
                )
            case sqlite3.SQLITE_FULL:
                return StoreError(
                    f"`{self}` cannot grow: {error}", hint="free some space; what was stored before is intact"
                )
        return StoreError(f"`{self}`: {error}")


def _transaction(db: Connection, begin: str, work: Callable[[Connection], T]) -> T:
    db.execute(begin)
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return result


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _code(error: BaseException) -> int:
    """The primary result code of SQLite; 0 when the fault is not SQLite's."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _holder(path: Path) -> int | None:
    """The process that writes to a file, where the system tells: on Linux its lock on the index of the log."""
    try:
        inode = Path(f"{path}-shm").stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="utf-8")
    except OSError:
        return None
    for line in locks.splitlines():
        fields = line.split()
        if "WRITE" in fields and fields[-3].endswith(f":{inode}") and fields[-2] == _WRITER_BYTE:
            return int(fields[-4])
    return None
