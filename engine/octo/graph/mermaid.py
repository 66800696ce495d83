"""The picture of a config as a Mermaid flowchart.

Thick arrows are the way of a message along a chain. Thin ones lead into a branch, dotted ones into a tool, an error
path or another flow; after a branch the message goes on behind its block.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from octo.graph.picture import Lane, Picture, Role, Step, Stream, walk

_WIDTH: Final = 60
"""Longer texts are cut, since Mermaid sets each on one line."""
_ARROWS: Final[Mapping[Role, str]] = {
    "branch": "-->",
    "default": "-->",
    "tool": "-.->",
    "events": "-.->",
    "error": "-.->",
}
_LOOKS: Final = (
    "classDef flow stroke:#2563eb,stroke-width:2px",
    "classDef source stroke:#16a34a,stroke-width:2px",
    "classDef tool stroke:#7c3aed",
    "classDef error stroke:#dc2626",
    "classDef connector stroke:#64748b,stroke-dasharray:4 3",
)


def lines(picture: Picture) -> Iterator[str]:
    """The lines of the flowchart, ready to be put between Mermaid fences."""
    names = _names(picture)
    flows = {stream.name: names[stream.id] for stream in picture.flows}
    connectors = {outlet.name: names[outlet.id] for outlet in picture.connectors}
    yield "flowchart TD"
    for stream in picture.flows:
        yield from _stream(stream, names, flows)
    for outlet in picture.connectors:
        yield f"  {names[outlet.id]}[({_quoted(outlet.name, outlet.type)})]:::connector"
    for stream in picture.flows:
        if stream.source is not None and stream.source.connector in connectors:
            yield f"  {names[stream.id]}i -.- {connectors[stream.source.connector]}"
        for step in walk((*stream.steps, *stream.error)):
            yield from (f"  {names[step.id]} -. calls .-> {flows[name]}" for name in step.calls if name in flows)
            for lane in step.lanes:
                arrow = f"-.->|{_quoted(f'tool {lane.name}')}|"
                yield from (f"  {names[step.id]} {arrow} {flows[name]}" for name in lane.calls if name in flows)
            yield from (f"  {names[step.id]} -.- {connectors[name]}" for name in step.uses if name in connectors)
    yield from (f"  {look}" for look in _LOOKS)


def _names(picture: Picture) -> dict[str, str]:
    """What flows, blocks and connectors are called in the chart: short, and no word that means something to Mermaid."""
    steps = [step for stream in picture.flows for step in walk((*stream.steps, *stream.error))]
    names = {stream.id: f"f{number}" for number, stream in enumerate(picture.flows, start=1)}
    names |= {outlet.id: f"c{number}" for number, outlet in enumerate(picture.connectors, start=1)}
    return names | {step.id: f"b{number}" for number, step in enumerate(steps, start=1)}


def _stream(stream: Stream, names: Mapping[str, str], flows: Collection[str]) -> Iterator[str]:
    start = names[stream.id]
    yield f"  subgraph {start}s[{_quoted(stream.name)}]"
    yield f"    {start}([{_quoted(stream.name)}]):::flow"
    if stream.source is not None:
        about = [setting.line for setting in stream.source.settings[:1]]
        yield f"    {start}i>{_quoted(stream.source.type, *about)}]:::source"
        yield f"    {start}i ==> {start}"
    yield from _chain(start, "==>", stream.steps, "", names, flows)
    yield from _chain(start, f"-.->|{_quoted('on error')}|", stream.error, ":::error", names, flows)
    yield "  end"


def _chain(
    before: str, arrow: str, steps: tuple[Step, ...], look: str, names: Mapping[str, str], flows: Collection[str]
) -> Iterator[str]:
    """The blocks of a chain, the first one reached by an arrow of its own."""
    for step in steps:
        here = names[step.id]
        agent = (f"agent {step.agent}",) if step.agent else ()
        text = _quoted(*filter(None, (step.name, step.type)), *agent)
        yield f"    {here}{{{{{text}}}}}{look}" if step.lanes else f"    {here}[{text}]{look}"
        yield f"    {before} {arrow} {here}"
        for number, lane in enumerate(step.lanes, start=1):
            yield from _lane(here, number, lane, names, flows)
        before, arrow = here, "==>"


def _lane(block: str, number: int, lane: Lane, names: Mapping[str, str], flows: Collection[str]) -> Iterator[str]:
    """A branch; one that calls a flow of the picture is an arrow to that."""
    arrow = f"{_ARROWS[lane.role]}|{_quoted(f'tool {lane.name}' if lane.role == 'tool' else lane.name)}|"
    look = f":::{lane.role}" if lane.role in ("tool", "error") else ""
    if lane.calls and not set(lane.calls) <= set(flows):
        yield f"    {block} {arrow} {block}n{number}([{_quoted(*lane.calls)}]){look}"
    elif not lane.steps and not lane.calls:
        yield f"    {block} {arrow} {block}n{number}(( )){look}"
    yield from _chain(block, arrow, lane.steps, look, names, flows)


def _quoted(*rows: str) -> str:
    """Text in quotes; what Mermaid or HTML reads as markup is written as character codes."""
    return '"' + "<br/>".join(map(_escaped, rows)) + '"'


def _escaped(row: str) -> str:
    words = " ".join(row.split())
    words = words if len(words) <= _WIDTH else words[: _WIDTH - 1] + "…"
    words = words.replace("\\n", "\\\u200bn")  # which would be a line break, in whatever way it is written
    return re.sub(r"[^\w .,!?()…-]", lambda match: f"#{ord(match[0])};", words) or "#32;"
