"""Text. All positions are code points."""

from __future__ import annotations

from octo.cel.functions import Whole, function
from octo.cel.values import Failure, Value, guard_size

_BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


@function(".contains")
def contains(text: str, part: str) -> bool:
    """Whether the part occurs in the text."""
    return part in text


@function(".startsWith")
def starts_with(text: str, prefix: str) -> bool:
    """Whether the text begins with the prefix."""
    return text.startswith(prefix)


@function(".endsWith")
def ends_with(text: str, suffix: str) -> bool:
    """Whether the text ends with the suffix."""
    return text.endswith(suffix)


@function(".charAt")
def char_at(text: str, index: Whole) -> str:
    """The character at a position; the position behind the last gives an empty text."""
    return text[_position(text, index) : index + 1]


@function(".indexOf")
def index_of(text: str, part: str, start: Whole = 0) -> int:
    """Where the part first occurs from a position on; -1 if it does not."""
    return text.find(part, _position(text, start))


@function(".lastIndexOf")
def last_index_of(text: str, part: str, start: Whole | None = None) -> int:
    """Where the part last occurs, beginning at a position or before it; -1 if it does not."""
    if start is None:
        return text.rfind(part)
    return text.rfind(part, 0, _position(text, start) + len(part))


@function(".join")
def join(texts: list[Value], separator: str = "") -> str:
    """The texts of a list as one, with the separator between them."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise Failure(f"`join` needs a list of text, element {number} is none")
    guard_size(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


@function(".lowerAscii")
def lower_ascii(text: str) -> str:
    """The text with its letters A to Z in lower case."""
    return text.translate(_LOWER)


@function(".upperAscii")
def upper_ascii(text: str) -> str:
    """The text with its letters a to z in upper case."""
    return text.translate(_UPPER)


@function(".replace")
def replace(text: str, old: str, new: str, limit: Whole = -1) -> str:
    """The text with `new` in the place of `old`, everywhere or for the first so many times."""
    if len(new) > len(old):
        found = text.count(old)
        guard_size(len(text) + (min(found, limit) if limit >= 0 else found) * (len(new) - len(old)))
    return text.replace(old, new, limit)


@function(".split")
def split(text: str, separator: str, limit: Whole = -1) -> list[str]:
    """The parts between the separators, at most so many; an empty separator splits into characters."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


@function(".substring")
def substring(text: str, start: Whole, end: Whole | None = None) -> str:
    """The characters from a position up to another, or to the end."""
    stop = len(text) if end is None else _position(text, end)
    if _position(text, start) > stop:
        raise Failure(f"index out of range: {start} is behind {stop}")
    return text[start:stop]


@function(".trim")
def trim(text: str) -> str:
    """The text without blanks at its ends."""
    return text.strip(_BLANKS)


@function(".reverse")
def reverse(text: str) -> str:
    """The characters from last to first."""
    return text[::-1]


@function("strings.quote")
def quote(text: str) -> str:
    """The text in double quotes, with escapes for what cannot stand there."""
    return f'"{text.translate(_QUOTED)}"'


def _position(text: str, index: int) -> int:
    if 0 <= index <= len(text):
        return index
    raise Failure(f"index out of range: {index}")
