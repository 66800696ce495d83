"""Read and write files below the root of a `file` connector."""

import asyncio
import base64
import binascii
from typing import Annotated, Final, Literal

from octo.block import Block
from octo.connectors.file import Folder
from octo.errors import OctoError
from octo.fields import ConnectorName, Expression, Text, one_of
from octo.message import Message
from octo.run import Run, RunError
from octo.values import clean_text, dumps

Encoding = Annotated[Literal["text", "base64"], one_of("text", "base64")]

TYPES: Final = {
    ".csv": "text/csv; charset=utf-8",
    ".env": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".toml": "application/toml",
    ".tsv": "text/tab-separated-values; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
"""Content types that are the same on every host."""


class FileName(ConnectorName):
    """The name of a configured `file` connector."""

    __slots__ = ()
    type = "file"


class FileRead(Block, type="file-read", group="integration"):
    """Read a file; the body becomes its raw content."""

    connector: FileName
    """The `file` connector, below whose root the file lies."""

    path: Expression[str]
    """Path of the file, relative to the root; `..` and links may not lead out of it."""

    encoding: Encoding = "text"
    """`text` reads UTF-8, with U+FFFD for what is none; `base64` is for binary files."""

    content_type: Text | None = None
    """MIME type of the raw content; by default it follows from the extension."""

    result_var: Text | None = None
    """Variable that gets the content; the body then stays as it is."""

    async def execute(self, message: Message, run: Run) -> Message:
        path = run.evaluate(self.path, message, "file-read path")
        folder = run.connector(self.connector, Folder)
        try:
            data = await asyncio.to_thread(folder.read, path)
        except OctoError as error:
            raise RunError(f"file-read: {error.message}") from error
        if self.encoding == "base64":
            content = base64.b64encode(data).decode("ascii")
        else:
            content = data.decode("utf-8", errors="replace")
        if self.result_var:
            message.vars[self.result_var] = content
        else:
            message.set_raw(self.content_type or content_type(path), content)
        return message


class FileWrite(Block, type="file-write", group="integration"):
    """Write a file as a whole; the message passes unchanged."""

    connector: FileName
    """The `file` connector, below whose root the file lies."""

    path: Expression[str]
    """Path of the file, relative to the root; `..` and links may not lead out of it."""

    content: Expression[str] | None = None
    """What is written; by default the body: raw content as it is, anything else as JSON."""

    encoding: Encoding = "text"
    """`text` writes UTF-8; `base64` decodes the content first."""

    result_var: Text | None = None
    """Variable that becomes `{path, bytes}`: the path as given, and how many bytes were written."""

    async def execute(self, message: Message, run: Run) -> Message:
        path = run.evaluate(self.path, message, "file-write path")
        data = self._data(message, run)
        folder = run.connector(self.connector, Folder)
        try:
            await asyncio.to_thread(folder.write, path, data)
        except OctoError as error:
            raise RunError(f"file-write: {error.message}") from error
        if self.result_var:
            message.vars[self.result_var] = {"path": path, "bytes": float(len(data))}
        return message

    def _data(self, message: Message, run: Run) -> bytes:
        if self.content is not None:
            content = run.evaluate(self.content, message, "file-write content")
        elif message.raw:
            content = str(message.body["rawData"])
        else:
            content = dumps(message.body)
        if self.encoding == "text":
            return clean_text(content).encode()
        try:
            return base64.b64decode("".join(content.split()), validate=True)
        except (binascii.Error, ValueError):
            raise RunError("file-write: content is not base64") from None


def content_type(path: str) -> str:
    """The MIME type that belongs to the extension of a path."""
    import mimetypes

    name = path.rpartition("/")[2]
    extension = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    known, compression = mimetypes.guess_type(f"file{extension}")
    if compression == "gzip":
        return "application/gzip"
    return TYPES.get(extension) or known or "application/octet-stream"
