"""The picture of a config as a tree for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from octo.graph.picture import Inlet, Lane, Outlet, Picture, Step, Stream

Style: TypeAlias = Literal[
    "plain", "title", "source", "type", "name", "branch", "tool", "events", "default", "error", "link", "faint"
]


class Span(NamedTuple):
    """A piece of a line, and what kind of thing it is."""

    text: str
    style: Style = "plain"


Line: TypeAlias = tuple[Span, ...]

_FORK: Final = ("├─ ", "│  ")
_LAST: Final = ("└─ ", "   ")
_WIDTH: Final = 80
"""How much of a setting is shown."""


def lines(picture: Picture) -> Iterator[Line]:
    """The lines of the tree, one for each flow, block, branch and connector, and an empty one between the parts."""
    for index, stream in enumerate(picture.flows):
        if index:
            yield ()
        yield from _stream(stream)
    if picture.connectors:
        if picture.flows:
            yield ()
        yield (Span("connectors", "title"),)
        yield from _below("", picture.connectors)


def cut(line: Line, width: int | None) -> Line:
    """The line, not longer than a width."""
    left = width if width is not None else sum(len(span.text) for span in line)
    kept: list[Span] = []
    for index, span in enumerate(line):
        rest = sum(len(other.text) for other in line[index:])
        if rest > left and len(span.text) >= left:
            return (*kept, Span(span.text[: max(left - 1, 0)] + "…", span.style))
        kept.append(span)
        left -= len(span.text)
    return tuple(kept)


def _stream(stream: Stream) -> Iterator[Line]:
    callers = f"  called by {', '.join(stream.called_by)}" if stream.called_by else ""
    yield from _trimmed(Span(stream.name, "title"), Span(_spaced(stream.description)), Span(callers, "faint"))
    source = [stream.source] if stream.source else []
    error = [Lane("on error", "error", (), stream.error)] if stream.error else []
    yield from _below("", [*source, *stream.steps, *error])


def _below(indent: str, nodes: Sequence[Inlet | Step | Lane | Outlet]) -> Iterator[Line]:
    for index, node in enumerate(nodes):
        tip, rest = _LAST if index == len(nodes) - 1 else _FORK
        start = Span(indent + tip, "faint")
        match node:
            case Inlet():
                yield from _trimmed(start, *_inlet(node))
            case Step():
                yield from _trimmed(start, *_step(node))
                yield from _below(indent + rest, node.lanes)
            case Lane():
                yield from _trimmed(start, *_lane(node))
                yield from _below(indent + rest, node.steps)
            case Outlet():
                yield from _trimmed(start, *_outlet(node))


def _inlet(inlet: Inlet) -> Line:
    connector = f"  [{inlet.connector}]" if inlet.connector else ""
    settings = ", ".join(_short(setting.line) for setting in inlet.settings)
    return (
        Span("from ", "source"),
        Span(inlet.type, "type"),
        Span(connector, "link"),
        Span(_spaced(settings), "faint"),
    )


def _step(step: Step) -> Line:
    links = [Span(f"  agent {step.agent}", "link")] if step.agent else []
    links += [Span(f"  → {flow}", "link") for flow in step.calls] + [Span(f"  [{name}]", "link") for name in step.uses]
    settings = ", ".join(_short(setting.line) for setting in step.settings)
    return Span(step.type, "type"), Span(_spaced(step.name), "name"), *links, Span(_spaced(settings), "faint")


def _lane(lane: Lane) -> Line:
    word = "tool " if lane.role == "tool" else ""
    links = [Span(f"  → {flow}", "link") for flow in lane.calls]
    empty = "" if lane.steps or lane.calls else "  (nothing)"
    return Span(word + lane.name, lane.role), *links, Span(_spaced(lane.about)), Span(empty, "faint")


def _outlet(outlet: Outlet) -> Line:
    users = ", ".join(step.address for step in outlet.users)
    feeds = f"feeds {', '.join(outlet.feeds)}" if outlet.feeds else ""
    used = f"used by {users}" if users else "" if feeds else "used by nothing"
    return (
        Span(outlet.name, "name"),
        Span(_spaced(outlet.type), "type"),
        Span(_spaced(", ".join(filter(None, (feeds, used)))), "faint"),
    )


def _trimmed(*spans: Span) -> Iterator[Line]:
    yield tuple(span for span in spans if span.text)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _spaced(text: str) -> str:
    return f"  {text}" if text else ""
