"""A directory whose files blocks read and write."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from octo.connector import Connector
from octo.errors import ConnectorError, OctoError
from octo.fields import Bool, Text
from octo.refusals import Refusals
from octo.values import clean_text

if TYPE_CHECKING:
    from octo.runtime import Runtime


class File(Connector, type="file"):
    """A directory that `file-read` and `file-write` never leave."""

    root: Text
    """The directory; it must exist. A relative one is looked for in the working directory."""

    create_dirs: Bool = False
    """Whether `file-write` may create missing directories below it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if not self.root.strip():
            refusals.add("expected a directory, found blank text", "root")
        refusals.raise_if_any()
        return self

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Folder]:
        yield self._folder()

    def _folder(self) -> Folder:
        root = Path(self.root).absolute()
        if not root.is_dir():
            problem = "is no directory" if root.exists() else "does not exist"
            raise ConnectorError(f"root `{root}` {problem}", hint="create it, or name another one")
        return Folder(root, create_dirs=self.create_dirs)


class Folder:
    """Reads and writes whole files below a root.

    A path is judged by where it really leads, links followed, each time anew; from the root down to there it is
    then opened step by step without following links, so that nothing can be put in its way meanwhile. The functions
    wait for the disk: call them in a thread. They raise OctoError.
    """

    def __init__(self, root: Path, *, create_dirs: bool = False) -> None:
        self.root = root
        self.create_dirs = create_dirs

    def read(self, path: str) -> bytes:
        """The bytes of a file."""
        root, real = self._real(path)
        try:
            with _inside(root, real.parent) as (place, directory):
                # A pipe would keep a reader waiting for its writer.
                flags = os.O_RDONLY | _flag("O_NOFOLLOW") | _flag("O_NONBLOCK") | _flag("O_BINARY")
                descriptor = os.open(place / real.name, flags, dir_fd=directory)
                with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor has no path)
                    _refuse_other_kinds(path, os.fstat(descriptor).st_mode)
                    return file.read()
        except OSError as error:
            raise _failure(path, error) from error

    def write(self, path: str, data: bytes) -> None:
        """Replace a file as a whole, keeping its mode, or create it for its owner only.

        A reader sees the old or the new content. A link that stays below the root is followed.
        """
        root, real = self._real(path)
        try:
            with _inside(root, real.parent, create=self.create_dirs) as (place, directory):
                target, temporary = place / real.name, place / f".octo-{token_hex(8)}"
                mode = _mode(path, target, directory)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flag("O_BINARY")
                descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
                try:
                    with open(descriptor, "wb") as file:  # noqa: PTH123
                        file.write(data)
                    if mode is not None:
                        os.chmod(temporary, mode, dir_fd=directory)
                    os.replace(temporary, target, src_dir_fd=directory, dst_dir_fd=directory)
                except BaseException:
                    os.unlink(temporary, dir_fd=directory)
                    raise
        except OSError as error:
            raise _failure(path, error) from error

    def _real(self, path: str) -> tuple[Path, Path]:
        """Where the root and a path lead. It may neither by its text nor through links leave the root."""
        if not path.strip():
            raise OctoError("path is empty")
        if "\0" in path:
            raise OctoError("path holds a NUL character")
        path = clean_text(path)
        if Path(path).anchor or path.startswith("/"):
            raise OctoError(f'path "{path}" must be relative')
        folded = Path(os.path.normpath(path))
        if os.pardir in folded.parts:
            raise OctoError(f'path "{path}" escapes the root')
        try:
            root = self.root.resolve()
            real = (root / folded).resolve()
        except (OSError, RuntimeError):  # Python up to 3.12 raises the latter
            raise OctoError(f'path "{path}" leads in a circle of links') from None
        if not real.is_relative_to(root):
            raise OctoError(f'path "{path}" escapes the root through a link')
        if path.endswith("/") or real == root:
            number = errno.ENOTDIR if real.is_file() else errno.EISDIR
            raise _failure(path, OSError(number, os.strerror(number)))
        return root, real


@contextmanager
def _inside(root: Path, directory: Path, *, create: bool = False) -> Iterator[tuple[Path, int | None]]:
    """Open a directory below the root, of which no part may be a link; gives what its entries are relative to.

    Where the system cannot open step by step, entries are given by their whole path.
    """
    if os.open not in os.supports_dir_fd:
        if create:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield directory, None
        return
    flags = os.O_RDONLY | os.O_DIRECTORY
    descriptor = os.open(root, flags)
    try:
        for part in directory.relative_to(root).parts:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=descriptor)
            above, descriptor = descriptor, os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(above)
        yield Path(), descriptor
    finally:
        os.close(descriptor)


def _mode(path: str, target: Path, directory: int | None) -> int | None:
    """The permissions of the file that is there; None when there is none."""
    try:
        mode = os.stat(target, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    _refuse_other_kinds(path, mode)
    return stat.S_IMODE(mode)


def _refuse_other_kinds(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OctoError(f'path "{path}" is no regular file')


def _flag(name: str) -> int:
    """A flag that only some systems know."""
    return int(getattr(os, name, 0))


def _failure(path: str, error: OSError) -> OctoError:
    return OctoError(f'path "{path}": {(error.strerror or str(error)).lower()}')
