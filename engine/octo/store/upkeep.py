"""Looking after the store as a whole: what is in it, a copy of it, and less of it."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octo.errors import OctoError, UsageError
from octo.store import entries
from octo.store.store import Store

if TYPE_CHECKING:
    from sqlite3 import Connection


_INDEXES: Final = ("kept_", "turns_index")
"""How the names of tables begin that only serve to find what stands in others."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store holds."""

    version: int
    size: int
    """Bytes of the file."""
    log: int
    """Bytes that wait in the write-ahead log beside it."""
    rows: dict[str, int]
    """How many rows each table has that is not empty."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning took away."""

    expired: int
    """Cache entries that had expired."""
    freed: int
    """Bytes on the disk."""


async def contents(store: Store) -> Contents | None:
    """What a store holds; None when there is no store yet."""

    def work(db: Connection) -> Contents:
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names: list[str] = [name for (name,) in tables if not name.startswith(("sqlite_", *_INDEXES))]
        counts = {name: db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in sorted(names)}
        rows = {name: count for name, count in counts.items() if count}
        return Contents(version, _size(store.path), _size(_log(store.path)), rows)

    return await store.read(work, None)


async def backup(store: Store, target: Path, *, force: bool = False) -> int:
    """Copy the store as it is at this moment into one file, while others go on writing; how many bytes that are.

    The file appears complete or not at all. Raises UsageError when it exists already, unless `force` is given.
    """
    spare = _spare_file(target, force=force)
    try:
        await store.maintain(lambda db: _copy(db, spare, target))
        return _put_in_place(spare, target, force=force)
    finally:
        _remove(spare)


async def prune(store: Store, *, now: int) -> Pruned:
    """Remove what has expired and give its room back to the disk."""
    if not store.exists():
        return Pruned(0, 0)
    expired = await store.write(lambda db: entries.delete_expired(db, now=now))
    await store.maintain(_empty_the_log)
    before = _size(store.path)
    await store.maintain(lambda db: db.execute("VACUUM"))
    await store.maintain(_empty_the_log)
    return Pruned(expired, max(0, before - _size(store.path)))


async def scrub(store: Store) -> None:
    """Take what was deleted out of the bytes of the store, too: out of its free room, and out of its log.

    Raises StoreError when another process reads the log for longer than the store's patience.
    """
    await store.maintain(lambda db: db.execute("PRAGMA secure_delete = ON"))
    await store.maintain(lambda db: db.execute("VACUUM"))
    await store.maintain(_truncate_the_log)


def _truncate_the_log(db: Connection) -> None:
    """Empty the log. While somebody reads it, it is locked."""
    import sqlite3

    busy: int = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        locked = sqlite3.OperationalError("the log is read by others")
        locked.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise locked


def _spare_file(target: Path, *, force: bool) -> Path:
    """An empty file beside the target, for the owner only."""
    try:
        if not force and os.path.lexists(target):
            raise _exists(target)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise _unwritable(target, error) from error
    os.close(handle)
    return Path(name)


def _copy(db: Connection, spare: Path, target: Path) -> None:
    import sqlite3

    try:
        db.execute("VACUUM INTO ?", (str(spare),))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise UsageError(f"cannot write `{target}`: {error}", hint="free some space") from error
        raise


def _put_in_place(spare: Path, target: Path, *, force: bool) -> int:
    """Give the finished copy its name; its size."""
    try:
        with spare.open("rb+") as file:
            os.fsync(file.fileno())
        if force:
            spare.replace(target)
        else:
            target.hardlink_to(spare)  # fails when the name was taken in the meantime, as a rename does not
    except FileExistsError as error:
        raise _exists(target) from error
    except OSError as error:
        raise _unwritable(target, error) from error
    return _size(target)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _empty_the_log(db: Connection) -> None:
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _log(path: Path | None) -> Path | None:
    return Path(f"{path}-wal") if path else None


def _size(path: Path | None) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size if path else 0
    return 0


def _exists(target: Path) -> OctoError:
    return UsageError(f"`{target}` exists already", hint="name another file, or replace it with `--force`")


def _unwritable(target: Path, error: OSError) -> OctoError:
    return UsageError(f"cannot write `{target}`: {(error.strerror or str(error)).lower()}")
