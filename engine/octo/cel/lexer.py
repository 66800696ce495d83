"""From source text to tokens with columns."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from octo.cel.values import UINT_MAX, UInt, Value
from octo.errors import ExpressionError

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\n\r\f]+|//[^\n]*)
    |(?P<text>(?P<prefix>[rR][bB]?|[bB][rR]?)?(?P<quote>\"\"\"|'''|"|'))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|\d*\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.X,
)
_STOPS = {
    **{quote: re.compile(rf"\\|\n|{quote}") for quote in "\"'"},
    **{quote: re.compile(rf"\\|{quote}") for quote in ('"""', "'''")},
}
"""Where to look closer on the way to the end of a text that began with this quote."""
_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\'\"`?])|[xX](?P<byte>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))"
)
_SIMPLE = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_SLIPS = {
    "=": "to compare, write `==`",
    "&": "to join conditions, write `&&`",
    "|": "to join conditions, write `||`",
    "\u201c": "text stands between straight quotes",
    "\u201d": "text stands between straight quotes",
    "$": "an environment variable is read as `env.NAME`",
}


class Token(NamedTuple):
    kind: str
    """`name`, `quoted`, `literal`, `end`; an operator, a bracket and `in` are their own kind."""

    text: str
    value: Value
    column: int
    length: int

    def __str__(self) -> str:
        return "end of expression" if self.kind == "end" else f"`{self.text}`"


def tokenize(source: str) -> list[Token]:
    """The tokens of an expression, the last one of kind `end`."""
    tokens: list[Token] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise _stray(source, position)
        end = match.end()
        kind = match.lastgroup
        if kind == "text":
            value, end = _text(source, match)
            tokens.append(Token("literal", source[position:end], value, position + 1, end - position))
        elif kind != "blank":
            tokens.append(_token(kind or "", match.group(), source, position))
        position = end
    tokens.append(Token("end", "", None, len(source) + 1, 1))
    return tokens


def _token(kind: str, text: str, source: str, position: int) -> Token:
    column, length = position + 1, len(text)
    if kind == "number":
        return Token("literal", text, _number(text, source, column), column, length)
    if kind == "quoted":
        return Token("quoted", text, text[1:-1], column, length)
    if kind == "sign" or text == "in":
        return Token(text, text, None, column, length)
    return Token("name", text, text, column, length)


def _stray(source: str, position: int) -> ExpressionError:
    character = source[position]
    hint = _SLIPS.get(character)
    return ExpressionError(f"unexpected character `{character}`", source=source, column=position + 1, hint=hint)


def _number(text: str, source: str, column: int) -> int | float:
    digits = text.rstrip("uU")
    if digits[:2] in ("0x", "0X"):
        number: int | float = int(digits, 16)
    elif digits.isdigit():
        number = int(digits) if len(digits) < 400 else UINT_MAX + 1
    else:
        double = float(text)
        if math.isinf(double):
            hint = "no double is larger than about 1.8e308"
            raise ExpressionError("double out of range", source=source, column=column, length=len(text), hint=hint)
        return double
    if digits == text:
        return number
    if number > UINT_MAX:
        raise ExpressionError("unsigned integer out of range", source=source, column=column, length=len(text))
    return UInt(number)


def _text(source: str, match: re.Match[str]) -> tuple[str | bytes, int]:
    """The value of a text or bytes literal, and where it ends."""
    quote = match["quote"]
    prefix = (match["prefix"] or "").lower()
    start = match.end()
    end = _closing(source, start, quote, raw="r" in prefix)
    if end is None:
        raise ExpressionError(f"text is not closed: `{quote}` is missing", source=source, column=match.start() + 1)
    inner = source[start:end]
    as_bytes = "b" in prefix
    if "r" in prefix or "\\" not in inner:
        return inner.encode() if as_bytes else inner, end + len(quote)
    return _unescape(source, start, end, as_bytes), end + len(quote)


def _closing(source: str, position: int, quote: str, *, raw: bool) -> int | None:
    while match := _STOPS[quote].search(source, position):
        match match.group():
            case "\\":
                position = match.end() if raw else match.end() + 1
            case "\n":
                return None
            case _:
                return match.start()
    return None


def _unescape(source: str, start: int, end: int, as_bytes: bool) -> str | bytes:
    parts: list[bytes] = []
    position = start
    while position < end:
        backslash = source.find("\\", position, end)
        stop = end if backslash < 0 else backslash
        parts.append(source[position:stop].encode())
        if backslash < 0:
            break
        match = _ESCAPE.match(source, backslash, end)
        part = match and _escaped(match, as_bytes)
        if match is None or part is None:
            shown = source[backslash : backslash + 2]
            raise ExpressionError(
                f"unknown escape `{shown}`",
                source=source,
                column=backslash + 1,
                length=2,
                hint="a backslash itself is written `\\\\`",
            )
        parts.append(part)
        position = match.end()
    joined = b"".join(parts)
    return joined if as_bytes else joined.decode()


def _escaped(match: re.Match[str], as_bytes: bool) -> bytes | None:
    """The UTF-8 bytes of an escape; None for a code point that does not exist, or has no place in bytes."""
    kind = match.lastgroup
    text = match[kind or 0]
    if kind == "simple":
        return _SIMPLE.get(text, text).encode()
    code = int(text, 8 if kind == "octal" else 16)
    if as_bytes:
        return bytes((code,)) if kind in ("byte", "octal") else None
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return None
    return chr(code).encode()
