"""What is different between two JSON values, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from octo.values import Json, dumps, kind_of

Keys = tuple[str | int, ...]

MISSING: Final = object()
"""Stands for what one of the values does not have."""

_MOST: Final = 10
"""How many differences are told."""
_LONG: Final = 60
_AROUND: Final = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """A part that is not the same."""

    keys: Keys
    want: object
    got: object

    def __str__(self) -> str:
        """The difference in words, without its place."""
        if self.got is MISSING:
            return f"want {_shown(self.want)}, which is missing"
        if self.want is MISSING:
            return f"got {_shown(self.got)}, which is one too many"
        if isinstance(self.want, str) and isinstance(self.got, str):
            return _texts(self.want, self.got)
        return f"want {_shown(self.want)}, got {_shown(self.got)}{only_kinds(self.want, self.got)}"


def differences(want: Json, got: Json, keys: Keys = ()) -> Iterator[Difference]:
    """Every part that is not the same, deepest first told. The values are as JSON has them: numbers are doubles."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            yield from _part(want.get(key, MISSING), got.get(key, MISSING), (*keys, key))
    elif isinstance(want, list) and isinstance(got, list):
        for index in range(max(len(want), len(got))):
            yield from _part(_at(want, index), _at(got, index), (*keys, index))
    elif type(want) is not type(got) or want != got:
        yield Difference(keys, want, got)


def _part(want: Json, got: Json, keys: Keys) -> Iterator[Difference]:
    if want is MISSING or got is MISSING:
        yield Difference(keys, want, got)
    else:
        yield from differences(want, got, keys)


def _at(items: list[Json], index: int) -> Json:
    return items[index] if index < len(items) else MISSING


def told(found: list[Difference]) -> list[str]:
    """Lines that tell the differences of two values, if that helps beyond showing both."""
    inner = [difference for difference in found if difference.keys]
    lines = [f"{dotted(difference.keys)}: {difference}" for difference in inner[:_MOST]]
    return [*lines, f"and {len(inner) - _MOST} more"] if len(inner) > _MOST else lines


def dotted(keys: Keys) -> str:
    """A path of keys as one reads it: `lines[0].total`."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def only_kinds(want: object, got: object) -> str:
    """What to add when two values look the same and differ in their kind only."""
    if isinstance(want, (dict, list)) or isinstance(got, (dict, list)) or type(want) is type(got):
        return ""
    if _bare(want) != _bare(got):
        return ""
    return f" (only the kind differs: {_kind(want)} against {_kind(got)})"


def _kind(value: object) -> str:
    return kind_of(value).removeprefix("a ")


def _bare(value: object) -> str:
    return value if isinstance(value, str) else dumps(value)


def _texts(want: str, got: str) -> str:
    """Two texts; of long ones what surrounds the first character that differs."""
    if max(len(want), len(got)) <= _LONG:
        return f"want {dumps(want)}, got {dumps(got)}"
    same = next(
        (index for index, (a, b) in enumerate(zip(want, got, strict=False)) if a != b), min(len(want), len(got))
    )
    return f"from character {same + 1} on: want {_piece(want, same)}, got {_piece(got, same)}"


def _piece(text: str, at: int) -> str:
    start, end = max(0, at - _AROUND), at + _AROUND
    return f"{'…' if start else ''}{dumps(text[start:end])}{'…' if end < len(text) else ''}"


def _shown(value: object) -> str:
    text = dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
