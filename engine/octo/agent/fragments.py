"""The pieces of an answer that is being streamed, made fit to be told: no character and no secret is cut in two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from octo import masking
from octo.llm.chat import CustomDelta, Delta, Retry, TextDelta, ThinkingDelta, ToolInput
from octo.values import clean_text

_Piece: TypeAlias = TextDelta | ThinkingDelta | ToolInput | CustomDelta


class Fragments:
    """Holds back the end of a piece for which the next one decides what it is. `secrets` are those in all forms."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = secrets
        self._held: dict[tuple[type[Delta], int], _Piece] = {}

    def ready(self, delta: Delta) -> Iterator[Delta]:
        """What can be told now."""
        if isinstance(delta, Retry):
            self._held.clear()
        yield from self.rest(but=type(delta))
        if not isinstance(delta, _Piece):
            yield delta
            return
        key = (type(delta), delta.index)
        before = self._held.pop(key, None)
        text = before.text + delta.text if before else delta.text
        end = self._whole(text)
        if end < len(text):
            self._held[key] = replace(delta, text=text[end:])
        if end:
            yield replace(delta, text=clean_text(text[:end]))

    def rest(self, but: type[Delta] | None = None) -> Iterator[Delta]:
        """What was held back, as it goes on no more; `but` is the kind that may."""
        for key in [key for key in self._held if key[0] is not but]:
            piece = self._held.pop(key)
            yield replace(piece, text=clean_text(piece.text))

    def _whole(self, text: str) -> int:
        """How much of a text can be told without its end."""
        end = masking.whole(text, self._secrets) if self._secrets else len(text)
        return end - 1 if end and "\ud800" <= text[end - 1] <= "\udbff" else end
