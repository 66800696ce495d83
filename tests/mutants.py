"""Configs that are wrong in one place, in the ways people get YAML wrong: every sample and a config that uses every
structural block, with one fault each.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]

STRUCTURES = """
service: { name: shop, environment: test }
env:
  - { name: CITY, default: Oslo }
connectors:
  - name: model
    type: llm-scripted
    settings:
      chunkSize: 4
      turns: [ { text: hello } ]
processors:
  - { name: stamp, type: set-variable, settings: { name: stage, value: '"start"' } }
flows:
  - name: main
    description: Everything at once.
    process:
      - ref: stamp
        settings: { value: '"again"' }
      - type: if
        name: gate
        condition: 'has(body.vip)'
        then: { process: [ { type: log, level: info, message: '"vip"' } ] }
        else: { process: [ { type: delete-variable, settings: { name: stage } } ] }
      - type: switch
        cases:
          - { when: 'body.kind == "a"', name: first, process: [ { type: set-payload, settings: { value: '1' } } ] }
        default: { process: [ { type: flow-ref, settings: { flow: side, oneWay: true } } ] }
      - type: foreach
        items: body.rows
        as: row
        mode: map
        body: { process: [ { type: set-payload, settings: { value: vars.row } } ] }
      - type: handle-errors
        process: [ { type: set-payload, settings: { value: 'body.a' } } ]
        error: [ { type: log } ]
    error:
      - { type: log, full: true }
  - name: side
    process: []
"""

SOURCES = {"structures": STRUCTURES} | {
    path.name: path.read_text(encoding="utf-8")
    for path in sorted((REPOSITORY / "samples").glob("*.yaml"))
    if not path.stem.endswith("_test")
}
OPAQUE = {"inputs", "turns", "rules", "inputSchema", "args", "budget", "headers", "query", "setVars", "auth"}
"""Keys whose values are data of the author, or are tested by their own models."""

Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Mutant:
    kind: str
    data: object
    at: Path_
    """Where the problem must be reported."""
    key: bool
    hint: str | None
    """What the hint must contain; None when no hint is asked for."""


def mappings(node: object, path: Path_ = ()) -> Iterator[tuple[Path_, dict]]:
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            if key not in OPAQUE:
                yield from mappings(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from mappings(value, (*path, index))


def at(data: object, path: Path_):
    for step in path:
        data = data[step]
    return data


def parent_of(data: object, path: Path_) -> Path_ | None:
    """The path of the mapping around a mapping."""
    for end in range(len(path) - 1, -1, -1):
        if isinstance(at(data, path[:end]), dict):
            return path[:end]
    return None


def renamed(mapping: dict, old: str, new: str) -> dict:
    return {new if key == old else key: value for key, value in mapping.items()}


def replaced(data: object, path: Path_, value: object) -> object:
    result = copy.deepcopy(data)
    if not path:
        return value
    at(result, path[:-1])[path[-1]] = value
    return result


def mutants(data: object) -> Iterator[Mutant]:
    for path, mapping in mappings(data):
        for key, value in mapping.items():
            yield from misspelt(data, path, mapping, key)
            yield from moved(data, path, mapping, key, value)
            yield from broken_value(data, path, key, value)


def misspelt(data, path, mapping, key) -> Iterator[Mutant]:
    spellings = {"drop": key[:1] + key[2:], "double": key[:2] + key[1:], "case": key.swapcase()}
    for kind, new in spellings.items():
        if len(key) > 3 and new != key and new not in mapping:
            yield Mutant(f"misspelt-{kind}", replaced(data, path, renamed(mapping, key, new)), (*path, new), True, key)


def moved(data, path, mapping, key, value) -> Iterator[Mutant]:
    above = parent_of(data, path)
    free = {"name", "description", "settings"}
    folded = path[-1:] == ("settings",) and path[0] == "flows"
    if above and key not in at(data, above) and key not in free and not folded:
        result = copy.deepcopy(data)
        del at(result, path)[key]
        at(result, above)[key] = copy.deepcopy(value)
        yield Mutant("moved-up", result, (*above, key), True, key)
    for inner, child in mapping.items():
        fits = isinstance(child, dict) and key not in child and inner not in OPAQUE and key not in {"name", inner}
        if fits and path != ():
            result = copy.deepcopy(data)
            del at(result, path)[key]
            at(result, (*path, inner))[key] = copy.deepcopy(value)
            yield Mutant("moved-down", result, (*path, inner, key), True, key)


def broken_value(data, path, key, value) -> Iterator[Mutant]:
    here = (*path, key)
    if isinstance(value, bool):
        yield Mutant("boolean-yes", replaced(data, here, "yes"), here, False, "true")
    elif isinstance(value, int):
        yield Mutant("number-quoted", replaced(data, here, str(value)), here, False, "without quotes")
    elif isinstance(value, list):
        yield Mutant("list-as-text", replaced(data, here, "x"), here, False, None)
    elif isinstance(value, dict):
        yield Mutant("mapping-as-list", replaced(data, here, []), here, False, None)
    if key in {"connector", "ref", "type", "mode", "level"} and isinstance(value, str) and len(value) > 3:
        yield Mutant(f"unknown-{key}", replaced(data, here, value[:-2] + value[-1]), here, False, value)
    if key in {"condition", "when", "value", "items"} and isinstance(value, str) and "body" in value:
        yield Mutant("unknown-name", replaced(data, here, value.replace("body", "bdy", 1)), here, False, "`body`")
