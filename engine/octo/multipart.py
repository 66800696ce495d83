"""Multipart form data: a parts map, as expressions and messages have it, to bytes and back.

A parts map leads from the name of a part to a part object, or to a list of them when the name is repeated.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Final, NamedTuple

from octo.values import Json, clean_text, kind_of, render

PARTS_MAX: Final = 256
HEAD_MAX: Final = 16 * 1024
"""Bytes of the headers of one part."""

_PART_KEYS: Final = frozenset({"data", "filename", "contentType", "encoding"})
"""A mapping that has none of these is no part."""
_WRITTEN: Final = frozenset({"content-disposition", "content-type"})
"""Headers of a part that follow from its other keys."""
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n")
_LINE_END: Final = re.compile(r"\r?\n")
_FOLDED: Final = re.compile(r"\r?\n[ \t]+")
_PARAMETER: Final = re.compile(r""";\s*([^\s=;"]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s;"]*))""", re.S)
_ESCAPED: Final = re.compile(r'\\(["\\])')


class _Part(NamedTuple):
    name: str
    filename: str
    content_type: str
    encoding: str
    data: str
    content: bytes
    headers: dict[str, str]
    """What is neither the disposition nor the content type."""

    def shown(self) -> dict[str, Json]:
        """The part object."""
        return {
            "name": self.name,
            "filename": self.filename,
            "contentType": self.content_type,
            "encoding": self.encoding,
            "size": float(len(self.content)),
            "data": self.data,
            "headers": dict(self.headers),
        }


def part(name: str, value: Json) -> dict[str, Json]:
    """The part object of a value: a scalar is a text field, a mapping has what is needed of a part object.

    Raises ValueError.
    """
    return _read(name, value).shown()


def add(parts: dict[str, Json], name: str, part: Json) -> dict[str, Json]:
    """The parts map with one more part; the parts of one name become a list."""
    if name not in parts:
        return {**parts, name: part}
    there = parts[name]
    return {**parts, name: [*there, part] if isinstance(there, list) else [there, part]}


# ---------------------------------------------------------------- to bytes


def encode(parts: Json, boundary: str) -> bytes:
    """The body of a `multipart/form-data` request with that boundary, parts in the order of their names.

    Raises ValueError.
    """
    if not isinstance(parts, dict):
        raise ValueError(f"expected a parts map, found {kind_of(parts)}")
    if _BOUNDARY.fullmatch(boundary) is None:
        raise ValueError("a boundary has 1 to 70 letters, digits and signs, and no other characters")
    delimiter = f"--{boundary}".encode()
    body = bytearray()
    for name in sorted(parts):
        for item in parts[name] if isinstance(parts[name], list) else [parts[name]]:
            written = _read(clean_text(name), item)
            if delimiter in written.content:
                raise ValueError(f"{_called(name)}: the boundary `{boundary}` occurs in its data")
            head = "\r\n".join(f"{header}: {value}" for header, value in _head(written))
            body += delimiter + f"\r\n{head}\r\n\r\n".encode() + written.content + b"\r\n"
    return bytes(body + delimiter + b"--\r\n")


def _called(name: str) -> str:
    return f'part "{_LINE_BREAK.sub(" ", name)}" of the parts map'


def _read(name: str, item: Json) -> _Part:
    try:
        given = _as_mapping(item)
        data, encoding = clean_text(_text(given, "data")), _text(given, "encoding") or "text"
        return _Part(
            name=_one_line(clean_text(name), "the name"),
            filename=_line(given, "filename"),
            content_type=_line(given, "contentType"),
            encoding=encoding,
            data=data,
            content=_content(data, encoding),
            headers=dict(_further(given.get("headers") or {})),
        )
    except ValueError as error:
        raise ValueError(f"{_called(name)}: {error}") from None


def _as_mapping(item: Json) -> dict[str, Json]:
    if isinstance(item, list):
        raise ValueError("expected a value or a part, found a list in a list")
    if not isinstance(item, dict):
        return {"data": "" if item is None else render(item)}
    if not item.keys() & _PART_KEYS:
        raise ValueError("expected a part with `data`, found a mapping without it")
    return item


def _content(data: str, encoding: str) -> bytes:
    if encoding == "text":
        return data.encode()
    if encoding != "base64":
        raise ValueError(f"`encoding` must be `text` or `base64`, got `{encoding}`")
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise ValueError("`data` is not base64") from None


def _further(headers: Json) -> Iterator[tuple[str, str]]:
    if not isinstance(headers, dict):
        raise ValueError(f"`headers` must be a mapping, got {kind_of(headers)}")
    for header, value in headers.items():
        if not _HEADER_NAME.fullmatch(header):
            raise ValueError(f"`{header}` is not the name of a header")
        if header.lower() not in _WRITTEN:
            yield header, _one_line(clean_text(render(value)), f"header `{header}`")


def _head(part: _Part) -> Iterator[tuple[str, str]]:
    disposition = f"form-data; name={_quoted(part.name)}"
    if part.filename:
        disposition += f"; filename={_quoted(part.filename)}"
    yield "Content-Disposition", disposition
    content_type = part.content_type or ("application/octet-stream" if part.filename else "")
    if content_type:
        yield "Content-Type", content_type
    yield from part.headers.items()


def _text(part: dict[str, Json], key: str) -> str:
    value = part.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"`{key}` must be text, got {kind_of(value)}")
    return value


def _line(part: dict[str, Json], key: str) -> str:
    return _one_line(clean_text(_text(part, key)), f"`{key}`")


def _one_line(text: str, what: str) -> str:
    if _LINE_BREAK.search(text):
        raise ValueError(f"{what} holds a line break")
    return text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# ---------------------------------------------------------------- from bytes


def decode(data: bytes, content_type: str) -> dict[str, Json]:
    """The parts map of a body with that content type. Files are base64, fields are text. Raises ValueError."""
    boundary = _parameters(content_type).get("boundary", "")
    if not boundary:
        raise ValueError(f"content type `{content_type}` has no boundary")
    parts: dict[str, Json] = {}
    for number, piece in enumerate(_pieces(data, boundary)):
        if number == PARTS_MAX:
            raise ValueError(f"there are more than {PARTS_MAX} parts")
        found = _parsed(piece)
        parts = add(parts, found.name, found.shown())
    return parts


def _pieces(data: bytes, boundary: str) -> Iterator[bytes]:
    """What stands between the delimiters, up to the closing one."""
    delimiter = re.compile(rb"(?:\A|\r?\n)--" + re.escape(boundary.encode()) + rb"(--)?[ \t]*(?=\r?\n|\Z)")
    marks = list(islice(delimiter.finditer(data), PARTS_MAX + 2))
    if not marks:
        raise ValueError(f"the boundary `{boundary}` does not occur in the data")
    for mark, following in pairwise(marks):
        if mark[1]:
            return
        yield data[mark.end() : following.start()]
    if not marks[-1][1]:
        raise ValueError(f"the data ends before `--{boundary}--`")


def _parsed(piece: bytes) -> _Part:
    """A part from its lines: headers, a blank line, the content."""
    blank = _BLANK_LINE.search(piece)
    head = piece[: blank.start()] if blank else piece
    content = piece[blank.end() :] if blank else b""
    if len(head) > HEAD_MAX:
        raise ValueError(f"a part has more than {HEAD_MAX // 1024} KiB of headers")
    headers = dict(_header_lines(head))
    known = {name.lower(): value for name, value in headers.items()}
    disposition = _parameters(known.get("content-disposition", ""))
    filename = disposition.get("filename", "")
    return _Part(
        name=disposition.get("name", ""),
        filename=filename,
        content_type=known.get("content-type", ""),
        encoding="base64" if filename else "text",
        data=base64.b64encode(content).decode("ascii") if filename else content.decode("utf-8", errors="replace"),
        content=content,
        headers={name: value for name, value in headers.items() if name.lower() not in _WRITTEN},
    )


def _header_lines(head: bytes) -> Iterator[tuple[str, str]]:
    text = head.decode("utf-8", errors="replace")
    for line in filter(None, _LINE_END.split(_FOLDED.sub(" ", text))):
        name, colon, value = line.partition(":")
        if not colon or not _HEADER_NAME.fullmatch(name.strip()):
            raise ValueError("a part begins with a line that is no header")
        yield name.strip(), value.strip()


def _parameters(header: str) -> dict[str, str]:
    """The parameters behind the first `;` of a header, `filename*` as `filename`."""
    found: dict[str, str] = {}
    for match in _PARAMETER.finditer(header):
        value = match[3] if match[2] is None else _ESCAPED.sub(r"\1", match[2])
        found.setdefault(match[1].lower(), value)
    charset, quotes, escaped = found.pop("filename*", "").partition("''")
    if quotes and charset.lower() == "utf-8":
        from urllib.parse import unquote

        found["filename"] = unquote(escaped, errors="replace")
    return found
