"""What is known of models by their names."""

from __future__ import annotations

from typing import Final

_CLAUDE_WITH_SAMPLING: Final = (
    "claude-2",
    "claude-3",
    "claude-instant",
    "haiku",
    "sonnet",
    "opus-4-0",
    "opus-4-1",
    "opus-4-2",
    "opus-4-5",
    "opus-4-6",
)
"""Fragments of the names of Claude models that take a temperature; later ones do not, and refuse it.

`opus-4-2` is the date of the first Opus 4.
"""


def takes_temperature(model: str) -> bool:
    """Whether a model takes a temperature; an unknown one counts as the newest of its family."""
    name = model.lower().replace(".", "-")
    return "claude" not in name or any(fragment in name for fragment in _CLAUDE_WITH_SAMPLING)
