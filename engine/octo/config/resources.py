"""Files below the config directory."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

from octo.errors import OctoError


def read_text(root: Path, resource: str) -> str:
    """The text of a UTF-8 file below the root; raises OctoError when it leaves the root or cannot be read."""
    path = locate(root, resource)
    try:
        data = content(path)
    except FileNotFoundError:
        raise OctoError(
            f"resource `{resource}` does not exist", hint=f"resources are looked for below `{root}`"
        ) from None
    except OSError as error:
        raise _unreadable(resource, error) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise OctoError(f"resource `{resource}` is not UTF-8 text (line {line})") from None


def content(path: Path) -> bytes:
    """The bytes of a regular file. Of a pipe one would wait for as long as nobody writes to it. Raises OSError."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is no regular file")
    return path.read_bytes()


def is_file(root: Path, resource: str) -> bool:
    """Whether there is such a file below the root."""
    try:
        return locate(root, resource).is_file()
    except OctoError:
        return False


def locate(root: Path, resource: str) -> Path:
    """Where a resource lies. `..` and symbolic links may not lead out of the root."""
    if not resource or "\0" in resource:
        raise OctoError("a resource id is a path below the config directory, found blank text")
    base = root.resolve()
    path = (base / resource).resolve()
    if not path.is_relative_to(base):
        raise OctoError(f'resource id "{resource}" escapes the resource root')
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # what is made of that is for the caller to say
    except OSError as error:
        raise _unreadable(resource, error) from error
    return path


def _unreadable(resource: str, error: OSError) -> OctoError:
    return OctoError(f"cannot read resource `{resource}`: {(error.strerror or str(error)).lower()}")
