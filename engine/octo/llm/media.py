"""What a file is by its bytes, and whether a model takes it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Final

from octo.errors import BadRequest
from octo.llm.chat import ChatMessage, File, Part

FILE_LIMIT: Final = 30 * 1024 * 1024
"""The most bytes that one file may have, before it is encoded."""

_log = logging.getLogger("octo.llm")

_HEADS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_IFF: Final = {b"AIFF": "audio/aiff", b"AIFC": "audio/aiff"}
_BRANDS: Final = {
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis"), "image/heic"),
    **dict.fromkeys((b"mif1", b"msf1"), "image/heif"),
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    b"qt  ": "video/quicktime",
    **dict.fromkeys((b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42"), "video/mp4"),
    **dict.fromkeys((b"avc1", b"M4V ", b"dash", b"mmp4", b"MSNV"), "video/mp4"),
}
"""The major brand of a file of the ISO base media format."""


def sniff(data: bytes) -> str | None:
    """The MIME type that the bytes show, or None when they are not recognised."""
    for head, mime_type in _HEADS:
        if data.startswith(head):
            return mime_type
    kind = data[8:12]
    match data[:4]:
        case b"RIFF":
            return _RIFF.get(kind)
        case b"FORM":
            return _IFF.get(kind)
    if data[4:8] == b"ftyp":
        return _BRANDS.get(kind)
    return _mpeg_audio(data) or ("image/svg+xml" if _is_svg(data) else None)


def _mpeg_audio(data: bytes) -> str | None:
    """MPEG audio without tags begins with a frame header: twelve set bits, then version, layer and rates."""
    if len(data) < 4 or data[0] != 0xFF or data[1] & 0xF0 != 0xF0:
        return None
    layer = data[1] >> 1 & 0b11
    if layer == 0:
        return "audio/aac"
    rates_are_valid = data[2] >> 4 != 0b1111 and data[2] >> 2 & 0b11 != 0b11
    return "audio/mpeg" if rates_are_valid else None


def _is_svg(data: bytes) -> bool:
    head = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith(b"<svg") or (head.startswith((b"<?xml", b"<!")) and b"<svg" in head)


def plain_type(mime_type: str) -> str:
    """A MIME type in lower case and without parameters."""
    return mime_type.partition(";")[0].strip().lower()


def pdf_name(name: str) -> str:
    """The name of a PDF file with its extension, by which vendors tell what a file is."""
    stem = re.sub(r"\.[a-z0-9]{1,5}$", "", name.strip(), flags=re.IGNORECASE)
    return name.strip() if name.strip().lower().endswith(".pdf") else f"{stem or 'document'}.pdf"


def with_true_types(messages: Iterable[ChatMessage], accepted: frozenset[str] | None) -> tuple[ChatMessage, ...]:
    """The conversation with each file of a user turn under the type that its bytes show.

    Raises BadRequest for a file that the model does not take; `accepted` None means that it takes all types.
    """
    return tuple(
        replace(message, parts=_checked(message.parts, accepted)) if message.role == "user" else message
        for message in messages
    )


def _checked(parts: Iterable[Part], accepted: frozenset[str] | None) -> tuple[Part, ...]:
    index = count()
    return tuple(_true(part, next(index), accepted) if isinstance(part, File) else part for part in parts)


def _true(file: File, index: int, accepted: frozenset[str] | None) -> File:
    which = f"file `{file.name}`" if file.name.strip() else f"file at index {index}"
    stated = plain_type(file.mime_type)
    mime_type = sniff(file.data) or stated
    if not file.data:
        raise BadRequest(f"{which} is empty")
    if len(file.data) > FILE_LIMIT:
        raise BadRequest(f"{which} has {len(file.data) / 2**20:.1f} MiB, at most 30 MiB can be sent")
    if accepted is not None and mime_type not in accepted:
        known = ", ".join(f"`{one}`" for one in sorted(accepted))
        kind = f"of type `{mime_type}`" if mime_type else "of an unknown type"
        raise BadRequest(f"{which} is {kind}, accepted {'are ' + known if known else 'is text only'}")
    if stated and mime_type != stated:
        _log.warning("%s is stated to be `%s`, but its bytes are `%s`", which, stated, mime_type)
    return replace(file, mime_type=mime_type)
