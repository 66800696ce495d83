"""Texts as vectors: what is asked, and what comes back in the order of the texts."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from octo.errors import BadRequest
from octo.llm.chat import Usage

Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts to embed, all in one call. `dimensions` 0 leaves the length of the vectors to the model."""

    texts: tuple[str, ...]
    model: str
    dimensions: int = 0


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector for each text, in the order of the texts."""

    vectors: tuple[Vector, ...]
    usage: Usage | None = None


def check(request: EmbedRequest) -> None:
    """Raises BadRequest for a request that says nothing."""
    if not request.model:
        raise BadRequest("no model for embeddings is named", hint="set `model` on the block")
    if not request.texts:
        raise BadRequest("there is no text to embed")


def narrowed(numbers: Iterable[float]) -> Vector:
    """Numbers as they are in 32 bits, which is all that a vector tells."""
    values = tuple(numbers)
    form = f"<{len(values)}f"
    return struct.unpack(form, struct.pack(form, *values))
