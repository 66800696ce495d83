"""Under which key the memory of an id is stored."""

from __future__ import annotations

import re
from hashlib import sha1
from typing import Final
from uuid import UUID

from octo.values import Json, clean_text, render

NAMESPACE: Final = UUID("53c19225-33ef-5d09-98ca-d77b9c9e026f")
"""Never changes: another one would detach every memory that has a name."""

_HYPHENS: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID: Final = re.compile(rf"(?:urn:uuid:)?{_HYPHENS}|\{{{_HYPHENS}\}}|[0-9a-f]{{32}}", re.ASCII)


def uuid(id: str) -> str | None:
    """The UUID that a text spells: with hyphens, without them, as a URN, or in braces. None for any other text.

    A lenient reader takes misplaced hyphens and odd braces as well, and so would give different ids one memory.
    """
    text = id.strip().lower()
    return str(UUID(text)) if _UUID.fullmatch(text) else None


def as_text(value: Json) -> str:
    """The id of a thread or of a person, as an expression gives it: text, or JSON of anything else; empty for null."""
    return "" if value is None else clean_text(render(value))


def key(id: str, *, workspace: str, flow: str) -> str:
    """The key of an id that is not blank, in the flow that a run started from.

    A UUID names one memory everywhere; any other text names one in each flow of each service.
    """
    named = f"{workspace}\0{flow}\0{id.strip()}\0"
    return uuid(id) or str(_version_5(clean_text(named)))


def _version_5(name: str) -> UUID:
    return UUID(bytes=sha1(NAMESPACE.bytes + name.encode(), usedforsecurity=False).digest()[:16], version=5)
