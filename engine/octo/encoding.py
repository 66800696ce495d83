"""Text is UTF-8: what is wrong with bytes that are not, and where."""

from __future__ import annotations

from typing import Final, NamedTuple

_MARKS: Final = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
"""What texts in other encodings begin with; the longer marks first."""

HINT: Final = "save the file as UTF-8"


class Misfit(NamedTuple):
    """The first thing in some bytes that is not UTF-8."""

    message: str
    before: str
    """The text up to there."""
    encoding: str
    """The other encoding that the bytes are in as a whole, when they say so."""


def misfit(data: bytes) -> Misfit | None:
    """What is wrong with bytes that are to be UTF-8, with a byte order mark or without; None when they are."""
    encoding = marked(data)
    if encoding:
        return Misfit(f"the file is {encoding}", "", encoding)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        return Misfit(f"byte 0x{data[error.start]:02x} is not UTF-8", before, "")
    return None


def marked(data: bytes) -> str:
    """The encoding other than UTF-8 that a byte order mark at the beginning tells; empty for none."""
    return next((name for mark, name in _MARKS.items() if data.startswith(mark)), "")
