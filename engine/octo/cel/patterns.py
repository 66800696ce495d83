"""Regular expressions in the syntax of RE2, which has neither look-around nor references back to groups.

A pattern is translated for Python's `re`. That one backtracks, so it runs only where the pattern and the length of
the text bound its work; everything else goes to the `regex` package, which stops after a time limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

from octo.cel.values import Exceeded, Failure

Match: TypeAlias = Any
"""A match object of `re` or of `regex`: the two are used alike."""

_SECONDS_MAX = 0.1
_WORK_MAX = 2_000_000
_REPEAT_MAX = 1000
_UNBOUNDED = 99

_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,6})(?:(,)(\d{1,6})?)?\}", re.A)
_GROUP = re.compile(r"(?:P?<(?P<name>[A-Za-z_]\w*)>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))", re.A)
_PROPERTY = re.compile(r"[pP](?:([A-Z])|\{(\^?)([A-Za-z_]+)\})", re.A)
_CODE = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|([0-7]{3}|0[0-7]{0,2})", re.A)
_FOLDED = (("kK", "\u212a"), ("sS", "\u017f"))
"""Two letters of ASCII have a third form: the sign of Kelvin and the long s."""
_CONTROLS = dict(zip("afnrtv", "\a\f\n\r\t\v", strict=True))
_CLASSES = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": "\\t\\n\\f\\r ",
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class Pattern(NamedTuple):
    """A translated pattern, and what is known of its cost."""

    text: str
    flags: str
    degree: int
    """Work grows with the length of the text to the power of this, or without bound."""
    factor: int
    properties: bool
    """Uses Unicode properties, which only `regex` knows."""

    @property
    def groups(self) -> int:
        return int(_compile_re(self).groups) if not self.properties else int(_compile_regex(self).groups)

    def search(self, text: str) -> Match:
        return self._run("search", text)

    def all(self, text: str) -> Iterator[Match]:
        return self._limited(iter(self._run("finditer", text)))

    def _run(self, method: str, text: str) -> Any:
        if self._bounded(len(text)):
            return getattr(_compile_re(self), method)(text)
        try:
            return getattr(_compile_regex(self), method)(text, timeout=_SECONDS_MAX)
        except TimeoutError:
            raise _too_long() from None

    def _limited(self, matches: Iterator[Match]) -> Iterator[Match]:
        """Without the empty ones right behind another, which RE2 does not find."""
        end = -1
        try:
            for match in matches:
                if match.end() > end:
                    end = match.end()
                    yield match
        except TimeoutError:
            raise _too_long() from None

    def _bounded(self, length: int) -> bool:
        if self.properties or self.degree >= _UNBOUNDED:
            return False
        work: int = self.factor * max(length, 1) ** (self.degree + 1)
        return work <= _WORK_MAX


def _too_long() -> Exceeded:
    return Exceeded("regular expression exceeds its budget of 0.1 s")


@lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    """Translate a pattern. Raises Failure for what is none."""
    try:
        translated = _Translator(source).translate()
        _ = translated.groups
    except _Bad as bad:
        raise Failure(f"bad pattern `{source}`: {bad}") from None
    except (re.error, RecursionError, OverflowError) as error:
        raise Failure(f"bad pattern `{source}`: {error}") from None
    return translated


@lru_cache(maxsize=256)
def _compile_re(translated: Pattern) -> re.Pattern[str]:
    return re.compile(translated.text, re.A if translated.flags else 0)


@lru_cache(maxsize=256)
def _compile_regex(translated: Pattern) -> Any:
    import regex

    try:
        return regex.compile(translated.text, regex.V0 | (regex.A if translated.flags else 0))
    except regex.error as error:
        raise _Bad(str(error)) from None


class _Bad(Exception):
    """What is wrong with a pattern."""


class _Piece(NamedTuple):
    """A translated part and the work it may cause: `factor * length ** degree`."""

    text: str
    degree: int = 0
    factor: int = 1

    @property
    def flat(self) -> bool:
        """Matches in one way only, so that repeating it is no nesting."""
        return self.degree == 0 and self.factor == 1


class _Translator:
    """Recursive descent over a pattern: alternatives, sequences, quantified atoms."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.place = 0
        self.flags: frozenset[str] = frozenset()
        self.properties = False

    def translate(self) -> Pattern:
        piece = self.alternatives()
        if self.place < len(self.source):
            raise _Bad("`)` closes no group")
        ascii_only = self.source.isascii() and not self.properties
        return Pattern(piece.text, "a" if ascii_only else "", piece.degree, piece.factor, self.properties)

    def accept(self, text: str) -> bool:
        if self.source.startswith(text, self.place):
            self.place += len(text)
            return True
        return False

    def alternatives(self) -> _Piece:
        """Branches up to the end of the group. Flags set in one branch hold in the next ones too."""
        outer = self.flags
        branches = [self.sequence(outer)]
        while self.accept("|"):
            branches.append(self.sequence(outer))
        self.flags = outer
        degree = max(branch.degree for branch in branches)
        return _Piece("|".join(branch.text for branch in branches), degree, sum(branch.factor for branch in branches))

    def sequence(self, outer: frozenset[str]) -> _Piece:
        parts: list[str] = []
        scopes = 0
        degree, factor = 0, 1
        current = outer
        while True:
            if self.flags != current:
                parts.append(_scope(self.flags))
                scopes += 1
                current = self.flags
            if self.place >= len(self.source) or self.source[self.place] in "|)":
                break
            piece = self.quantified()
            parts.append(piece.text)
            degree, factor = min(degree + piece.degree, _UNBOUNDED), factor * piece.factor
        return _Piece("".join(parts) + ")" * scopes, degree, factor)

    def quantified(self) -> _Piece:
        atom = self.atom()
        match = _QUANTIFIER.match(self.source, self.place)
        if match is None:
            return atom
        if not atom.text:
            raise _Bad(f"nothing to repeat before `{match[0]}`")
        self.place = match.end()
        lazy = self.accept("?") != ("U" in self.flags)
        if (again := _QUANTIFIER.match(self.source, self.place)) is not None:
            raise _Bad(f"`{match[0]}` is repeated by `{again[0]}`")
        degree, factor = self.repeated(atom, match)
        return _Piece(atom.text + match[0] + ("?" if lazy else ""), degree, factor)

    def repeated(self, atom: _Piece, match: re.Match[str]) -> tuple[int, int]:
        if match[0] == "?":
            return atom.degree, atom.factor + 1
        if match[1] is None or (match[2] and not match[3]):
            least, most = int(match[1] or 0), None
        else:
            least, most = int(match[1]), int(match[3] or match[1])
            if most < least:
                raise _Bad(f"`{match[0]}` ends before it begins")
        if max(least, most or 0) > _REPEAT_MAX:
            raise _Bad(f"`{match[0]}` repeats more than {_REPEAT_MAX} times")
        if not atom.flat:
            return _UNBOUNDED, 1
        return (1, 1) if most is None else (0, most - least + 1)

    def atom(self) -> _Piece:
        character = self.source[self.place]
        self.place += 1
        match character:
            case "(":
                return self.group()
            case "[":
                return _Piece(self.character_class())
            case "\\":
                return _Piece(self.escape())
            case "$":
                return _Piece("$" if "m" in self.flags else r"\Z")
            case "^" | ".":
                return _Piece(character)
            case "*" | "+" | "?":
                raise _Bad(f"nothing to repeat before `{character}`")
        return _Piece(f"[{character}{self.folded(character)}]" if self.folded(character) else re.escape(character))

    def folded(self, low: str, high: str = "") -> str:
        """What else letters from `low` to `high` match when case does not count, and Python does not know of."""
        if "i" not in self.flags:
            return ""
        return "".join(other for letters, other in _FOLDED if any(low <= letter <= (high or low) for letter in letters))

    def group(self) -> _Piece:
        if not self.accept("?"):
            return self.enclosed("(")
        match = _GROUP.match(self.source, self.place)
        if match is None:
            shown = self.source[self.place - 2 : self.place + 2]
            raise _Bad(f"`{shown}` opens no group that is known; look-around is not supported")
        self.place = match.end()
        if match["name"]:
            return self.enclosed(f"(?P<{match['name']}>")
        outer = self.flags
        self.flags = (outer | set(match["on"])) - set(match["off"] or "")
        if match["end"] == ")":
            return _Piece("")
        piece = self.enclosed("(?:" if self.flags == outer else _scope(self.flags))
        self.flags = outer
        return piece

    def enclosed(self, opening: str) -> _Piece:
        inner = self.alternatives()
        if not self.accept(")"):
            raise _Bad("`)` is missing")
        return _Piece(f"{opening}{inner.text})", inner.degree, inner.factor)

    def escape(self) -> str:
        """What stands behind a backslash, outside of brackets."""
        if self.accept("Q"):
            literal, _, _ = self.source[self.place :].partition("\\E")
            self.place = min(self.place + len(literal) + 2, len(self.source))
            return f"(?:{re.escape(literal)})" if len(literal) > 1 else re.escape(literal)
        character = self.source[self.place : self.place + 1]
        if character in ("b", "B", "A"):
            self.place += 1
            return f"\\{character}"
        if self.accept("z"):
            return r"\Z"
        if character and character in "dwsDWS":
            self.place += 1
            return f"[{'^' if character.isupper() else ''}{_CLASSES[character.lower()]}]"
        return self.property() or re.escape(self.character())

    def property(self) -> str | None:
        """`\\pL`, `\\p{Greek}`, `\\P{Greek}`."""
        match = _PROPERTY.match(self.source, self.place)
        if match is None:
            return None
        self.place = match.end()
        self.properties = True
        negated = (match[0][0] == "P") != bool(match[2])
        return f"\\{'P' if negated else 'p'}{{{match[1] or match[3]}}}"

    def character(self) -> str:
        """The one character that an escape stands for."""
        match = _CODE.match(self.source, self.place)
        if match is not None:
            self.place = match.end()
            code = int(match[3], 8) if match[3] else int(match[1] or match[2], 16)
            if code > 0x10FFFF:
                raise _Bad(f"`\\{match[0]}` is no character")
            return chr(code)
        character = self.source[self.place : self.place + 1]
        self.place += 1
        if character in _CONTROLS:
            return _CONTROLS[character]
        if not character:
            raise _Bad("it ends with a backslash")
        if character.isdigit():
            raise _Bad(f"`\\{character}` refers back to a group, which is not supported")
        if character.isascii() and character.isalnum():
            raise _Bad(f"unknown escape `\\{character}`")
        return character

    def character_class(self) -> str:
        parts = ["[^" if self.accept("^") else "["]
        first = True
        while first or not self.source.startswith("]", self.place):
            if self.place >= len(self.source):
                raise _Bad("`]` is missing")
            first = False
            parts.append(self.class_item())
        self.place += 1
        return "".join(parts) + "]"

    def class_item(self) -> str:
        if named := re.compile(r"\[:(\^?)(\w+):\]", re.A).match(self.source, self.place):
            if named[2] not in _CLASSES or len(named[2]) == 1:
                raise _Bad(f"unknown class `{named[0]}`")
            self.place = named.end()
            return _complement(_CLASSES[named[2]]) if named[1] else _CLASSES[named[2]]
        following = self.source[self.place + 1 : self.place + 2]
        if self.source[self.place] == "\\" and following and following in "dwsDWS":
            self.place += 2
            members = _CLASSES[following.lower()]
            return _complement(members) if following.isupper() else members
        if self.source[self.place] == "\\":
            self.place += 1
            if found := self.property():
                return found
            self.place -= 1
        low = self.class_character()
        ahead = self.source[self.place : self.place + 2]
        if not ahead.startswith("-") or ahead in ("-", "-]"):
            return _in_class(low) + self.folded(low)
        self.place += 1
        high = self.class_character()
        if high < low:
            raise _Bad(f"the range `{low}-{high}` ends before it begins")
        return f"{_in_class(low)}-{_in_class(high)}{self.folded(low, high)}"

    def class_character(self) -> str:
        character = self.source[self.place : self.place + 1]
        self.place += 1
        return self.character() if character == "\\" else character


def _scope(flags: frozenset[str]) -> str:
    """The opening of a group in which exactly these flags hold."""
    on = "".join(sorted(flags - {"U"}))
    off = "".join(sorted({"i", "m", "s"} - flags))
    return f"(?{on}-{off}:" if off else f"(?{on}:"


def _in_class(character: str) -> str:
    return f"\\{character}" if character in "[]\\^-&~|" else character


@cache
def _complement(members: str) -> str:
    """The characters that are not members, as members of a class."""
    inside: Callable[[str], object] = re.compile(f"[{members}]").match
    outside = [code for code in range(128) if not inside(chr(code))]
    return "".join(f"\\x{code:02x}" for code in outside) + "\\x80-\U0010ffff"
