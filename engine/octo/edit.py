"""Files of the user that octo writes: each of them whole, or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from octo.errors import OctoError, UsageError

_NEW: int = 0o666
"""The mode of a new file, less what the umask takes away."""


def read(path: Path) -> bytes:
    """The bytes of a file; raises UsageError when there are none to be had."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read `{path}`: {_reason(error)}") from error


def replace(path: Path, content: bytes) -> None:
    """Put content into a file, new or not. Links are followed, mode and owner stay what they are.

    A reader sees the old content or the new one. A pipe or a device takes the content as it is.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        target = path.resolve()
        with _beside(target, content) as temporary:
            with suppress(FileNotFoundError):
                before = target.stat()
                if not os.access(target, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                with suppress(PermissionError):  # a file of somebody else becomes ours
                    os.chown(temporary, before.st_uid, before.st_gid)
                temporary.chmod(stat.S_IMODE(before.st_mode))
            temporary.replace(target)
    except OSError as error:
        raise OctoError(f"cannot write `{path}`: {_reason(error)}") from error


def create(directory: Path, files: Mapping[str, str]) -> None:
    """Make new files in a directory, which is made too: all of them, or none.

    Raises UsageError when one of them is there already; nothing is ever overwritten.
    """
    made: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _refuse_existing([directory / name for name in files])
        for name, text in files.items():
            with _beside(directory / name, text.encode("utf-8")) as temporary:
                os.link(temporary, directory / name)  # unlike a rename it fails when there is a file
            made.append(directory / name)
    except BaseException as error:
        for path in made:
            path.unlink(missing_ok=True)
        if isinstance(error, FileExistsError):
            _refuse_existing([directory / name for name in files])
            raise UsageError(f"`{directory}` is no directory", hint="name another one") from error
        if isinstance(error, OSError):
            raise OctoError(f"cannot write into `{directory}`: {_reason(error)}") from error
        raise


def _refuse_existing(paths: list[Path]) -> None:
    there = [f"`{path}`" for path in paths if os.path.lexists(path)]
    if there:
        verb = "is" if len(there) == 1 else "are"
        raise UsageError(f"{', '.join(there)} {verb} there already", hint="name another directory")


@contextmanager
def _beside(target: Path, content: bytes) -> Iterator[Path]:
    """A complete file beside its target, which goes when it has not been moved."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_NEW & ~_umask())
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
