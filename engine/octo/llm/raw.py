"""A JSON object as it came: its fields, and its text with some of them set anew while every other byte stays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from octo.values import Json

_SPACE: Final = " \t\r\n"


class RawObject:
    """The text of one JSON object. Raises ValueError for bytes that are none."""

    def __init__(self, raw: bytes) -> None:
        self.raw: Final = raw
        self.fields: Final[dict[str, Json]] = {}
        try:
            self._text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8 at byte {error.start}") from None
        self._spans: list[tuple[str, int, int]] = []
        """Where the value of each field begins and ends."""
        try:
            self._read()
        except json.JSONDecodeError as error:
            raise ValueError(f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}") from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except IndexError:
            raise ValueError("it ends too early") from None

    def text(self, name: str) -> str:
        """A field, if it is text; else empty."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def with_fields(self, changes: Mapping[str, str]) -> RawObject:
        """The object with fields set to texts; one that it does not have comes first."""
        changes = {name: value for name, value in changes.items() if self.fields.get(name) != value}
        if not changes:
            return self
        parts, end = [], 0
        for name, start, stop in self._spans:
            if name in changes:
                parts += [self._text[end:start], json.dumps(changes[name])]
                end = stop
        rest = "".join([*parts, self._text[end:]])
        added = [
            f"{json.dumps(name)}:{json.dumps(value)}" for name, value in changes.items() if name not in self.fields
        ]
        if added:
            head, brace, tail = rest.partition("{")
            rest = f"{head}{brace}{','.join(added)}{',' if self.fields else ''}{tail}"
        return RawObject(rest.encode())

    def _read(self) -> None:
        at = self._expect("{", self._skip(0))
        at = self._skip(at)
        if self._text[at] == "}":
            return self._expect_end(at + 1)
        while True:
            self._expect('"', at)
            name, at = _strict.raw_decode(self._text, at)
            at = self._skip(self._expect(":", self._skip(at)))
            value, end = _strict.raw_decode(self._text, at)
            self.fields[name] = value
            self._spans.append((name, at, end))
            at = self._skip(end)
            if self._text[at] == "}":
                return self._expect_end(at + 1)
            at = self._skip(self._expect(",", at))

    def _skip(self, at: int) -> int:
        while self._text[at : at + 1] in _SPACE and at < len(self._text):
            at += 1
        return at

    def _expect(self, character: str, at: int) -> int:
        if self._text[at : at + 1] != character:
            raise ValueError(f"expected `{character}` at character {at}")
        return at + 1

    def _expect_end(self, at: int) -> None:
        if self._skip(at) < len(self._text):
            raise ValueError(f"more follows the object at character {at}")


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"`{name}` is not JSON")


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"a number has {len(digits)} digits") from None


_strict: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_integer)
