"""Where the characters of a folded, quoted or substituted scalar stand in its file."""

from __future__ import annotations

import re

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def place_of(written: str, text: str, index: int) -> int | None:
    """The index in a scalar as it is written of a character of the text that it means; None when that is not certain.

    The two differ in their white space, in quotes, and where the value of a `${NAME}` stands: what comes before the
    first of them is found from the start, what comes after the last one from the end.
    """
    found = _from_start(written, text, index)
    if found is None and (last := [match.end() for match in _REFERENCE.finditer(written)][-1:]):
        found = _from_end(written, text, index, last[0])
    return found


def _from_start(written: str, text: str, index: int) -> int | None:
    quote = written[:1] if written[:1] in ("'", '"') else ""
    at = written.find("\n") + 1 if written[:1] == ">" else len(quote)
    for number, character in enumerate(text):
        if character.isspace():
            if number == index:
                return at
            continue
        at = _behind_blanks(written, at, quote)
        if _REFERENCE.match(written, at):
            return None
        size = _size(character, written, at, quote)
        if not size:
            return None
        if number == index:
            return at
        at += size
    return at


def _from_end(written: str, text: str, index: int, first: int) -> int | None:
    """From the end on, back to `first`; only what is written as it is meant."""
    quoted = written[:1] in ("'", '"')
    at = len(written) - 1 if quoted else len(written)
    for number in range(len(text) - 1, index - 1, -1):
        if text[number].isspace():
            continue
        at -= 1
        while at >= first and written[at].isspace():
            at -= 1
        if at < first or written[at] != text[number] or (quoted and written[at] in "'\"\\"):
            return None
    return at


def _behind_blanks(written: str, at: int, quote: str) -> int:
    while written[at : at + 1].isspace() or (quote == '"' and written.startswith(("\\\n", "\\\r"), at)):
        at += 1
    return at


def _size(character: str, written: str, at: int, quote: str) -> int:
    """How many characters of the file stand for one of the text; 0 when others stand there."""
    pair = written[at : at + 2]
    if (quote == "'" and pair == "''") or (quote == '"' and pair in ('\\"', "\\\\", "\\/")):
        return 2 if pair[1] == character else 0
    return 1 if pair[:1] == character and pair[:1] != quote and not (quote == '"' and character == "\\") else 0
