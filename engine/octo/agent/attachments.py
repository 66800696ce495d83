"""Files that ride on the opening turn, and files that a model produced."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from octo.block import Block, Finding
from octo.chat_connector import ChatConnector
from octo.errors import OctoError
from octo.llm.chat import File
from octo.values import Json, clean_text, kind_of

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.fields import Expression
    from octo.message import Message
    from octo.run import Run

MAX_BYTES: Final = 30 * 1024 * 1024
"""The largest file that is sent, before it is encoded for the provider."""

_DATA_URL: Final = re.compile(r"data:(.*?);base64,", re.IGNORECASE | re.DOTALL)
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")


def check(block: Block, connector: str, config: Config) -> Iterator[Finding]:
    """What is wrong with sending files to a connector."""
    found = config.connector(connector)
    if isinstance(found, ChatConnector) and not found.reads_files:
        yield Finding(
            f'{block.type}: connector "{connector}" reads text only, so `attachments` cannot be sent', ("attachments",)
        )


def check_fixed(block: Block, value: Json) -> Iterator[Finding]:
    """What is wrong with files that are the same for all messages."""
    try:
        read(value, lambda text: None)
    except OctoError as error:
        yield Finding(f"{block.type}: {error.message}", ("attachments",), error.hint)


def evaluated(block: Block, expression: Expression | None, message: Message, run: Run) -> tuple[File, ...]:
    """The files of a block's setting `attachments`. Raises OctoError."""
    if expression is None:
        return ()
    return of_block(block, run.evaluate(expression, message, f"{block.type}: attachments"), run)


def of_block(block: Block, value: Json, run: Run) -> tuple[File, ...]:
    """The files that a block's setting `attachments` has given. Raises OctoError."""
    try:
        return read(value, lambda text: run.log("warn", text, block=block.address))
    except OctoError as error:
        raise OctoError(f"{block.type}: {error.message}", hint=error.hint) from None


def read(value: Json, note: Callable[[str], None]) -> tuple[File, ...]:
    """The files that an `attachments` expression gave, in order. A stated type that is wrong is noted.

    Raises OctoError with the position of the first entry that is no file; none is left out in silence.
    """
    if value is None:
        return ()
    if not isinstance(value, list):
        raise OctoError(
            f"`attachments` must evaluate to a list, got {kind_of(value)}",
            hint="write `has(body.files) ? body.files : []` for files that may be missing",
        )
    return tuple(_file(index, entry, note) for index, entry in enumerate(value))


def _file(index: int, entry: Json, note: Callable[[str], None]) -> File:
    where = f"attachment {index}"
    if not isinstance(entry, dict):
        raise OctoError(f"{where}: expected a mapping with `mimeType` and `data`, got {kind_of(entry)}")
    data = entry.get("data")
    if not isinstance(data, str):
        found = kind_of(data) if "data" in entry else "nothing"
        raise OctoError(f"{where}: `data` must be base64 text or a data URL, got {found}")
    name = _text(entry.get("name"))
    url = _DATA_URL.match(data)
    stated = _text(entry.get("mimeType")) or (_text(url[1]) if url else "")
    try:
        content = decode(data[url.end() :] if url else data)
    except ValueError as error:
        raise OctoError(f"{where}: `data` {error}") from None
    return File(_mime_type(where, content, stated, name, note), content, name)


def _text(value: Json) -> str:
    return clean_text(value).strip() if isinstance(value, str) else ""


def decode(text: str) -> bytes:
    """The bytes of base64 text: standard or URL-safe alphabet, padding optional, line breaks ignored."""
    if not text.isascii():
        raise ValueError("is not base64 text")
    encoded = text.encode("ascii").translate(_URL_SAFE, b"\r\n").rstrip(b"=")
    if len(encoded) > MAX_BYTES * 4 // 3 + 4:
        raise ValueError(f"holds more than {MAX_BYTES >> 20} MiB, which is the most that one file may have")
    try:
        content = binascii.a2b_base64(encoded + b"=" * (-len(encoded) % 4), strict_mode=True)
    except binascii.Error:
        raise ValueError("is not base64 text") from None
    if len(content) > MAX_BYTES:
        raise ValueError(f"holds more than {MAX_BYTES >> 20} MiB, which is the most that one file may have")
    return content


def _mime_type(where: str, content: bytes, stated: str, name: str, note: Callable[[str], None]) -> str:
    """The type of the bytes when they are recognised, else the stated one, else what the name suggests."""
    from octo.llm.media import sniff

    seen = sniff(content)
    if seen is not None:
        if stated and stated.lower().partition(";")[0].strip() != seen:
            note(f"{where} is {seen} by its bytes, not {stated}")
        return seen
    if stated:
        return stated
    import mimetypes

    guessed = mimetypes.guess_type(name)[0]
    if guessed is None:
        raise OctoError(f"{where}: `mimeType` is missing, and the bytes do not tell the type")
    return guessed


def as_value(file: File) -> Json:
    """A file as the body holds it, in the form in which it can be an attachment again."""
    name = file.name or f"image.{file.mime_type.partition('/')[2]}"
    return {"mimeType": file.mime_type, "name": name, "data": base64.b64encode(file.data).decode("ascii")}


def with_produced(existing: Json, files: Iterable[File]) -> list[Json]:
    """The list of produced files with some more; anything but a list is replaced."""
    entries = [
        {
            "name": file.name,
            "mimeType": file.mime_type,
            "size": float(len(file.data)),
            "data": base64.b64encode(file.data).decode("ascii"),
        }
        for file in files
    ]
    return [*(existing if isinstance(existing, list) else ()), *entries]
