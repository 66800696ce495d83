"""Changes one thing of a config at a time, and finds the changes that no case notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from octo.block import Block, SubFlow
from octo.config.address import walk
from octo.config.document import Path as Keys
from octo.config.model import Config
from octo.config.outline import edit
from octo.errors import ConfigError, Location
from octo.fields import Expression, Model
from octo.message import Message
from octo.run import Run
from octo.testing.coverage import Coverage
from octo.testing.runner import Runner, Surroundings
from octo.testing.trial import Trial
from octo.values import Json, number_text


@dataclass(frozen=True)
class Mutant:
    """One change of a config."""

    what: str
    """What is different, in words."""
    location: Location
    block: Keys
    """The place of the block that must run for the change to have an effect; of a flow, that of the flow."""
    keys: Keys
    """The place of what is changed."""
    change: Callable[[Json], Json]

    def rewrite(self, data: dict[str, Json]) -> dict[str, Json]:
        """The merged data of the config with the change. Raises KeyError when there is nothing to change."""
        return edit(data, self.keys, self.change)


@dataclass(frozen=True)
class Mutations:
    """What became of the changes of one config."""

    path: Path
    total: int
    unnoticed: Sequence[Mutant]


async def mutations(
    runner: Runner, around: Surroundings, trials: Sequence[Trial], tick: Callable[[int, int], object]
) -> list[Mutations]:
    """Run the cases again for each change of their configs. The runner has run them and knows what they reach.

    `tick` hears how many changes of how many were tried.
    """
    work = [(coverage, mutant) for coverage in runner.coverage.values() for mutant in _valid(runner, coverage)]
    unnoticed: dict[Path, list[Mutant]] = {path: [] for path in runner.coverage}
    for number, (coverage, mutant) in enumerate(work):
        tick(number, len(work))
        concerned = [trial for trial in trials if trial.pair.config == coverage.path]
        reached = _is_reached(mutant, coverage.reached)
        if not reached or not await _is_noticed(runner, around, concerned, mutant):
            unnoticed[coverage.path].append(mutant)
    totals = Counter(coverage.path for coverage, _ in work)
    return [Mutations(path, totals[path], unnoticed[path]) for path in sorted(runner.coverage)]


def _valid(runner: Runner, coverage: Coverage) -> Iterator[Mutant]:
    """The changes of a config after which it still loads; none of blocks that all cases mock, and of what is inside."""
    for mutant in mutants(coverage.config):
        if any(mutant.block[: len(keys)] == keys for keys in coverage.mocked):
            continue
        try:
            runner.build(coverage.path, mutant, environ=coverage.config.environ)
        except (ConfigError, KeyError):
            continue
        yield mutant


def _is_reached(mutant: Mutant, reached: set[Keys]) -> bool:
    return any(keys[: len(mutant.block)] == mutant.block for keys in reached)


async def _is_noticed(runner: Runner, around: Surroundings, trials: Sequence[Trial], mutant: Mutant) -> bool:
    again = Runner(replace(around, mutant=mutant, fail_fast=True, repeat=1, command=()), documents=runner.documents)
    noticed: list[bool] = []
    try:
        await again.run(trials, lambda result: noticed.append(result.fell_short))
    finally:
        again.workspace.remove()
    return any(noticed)


# ---------------------------------------------------------------- the changes


def mutants(config: Config) -> Iterator[Mutant]:
    """The changes that are worth a try, in the order of the config."""
    locate = config.origin.locate
    for index, flow in enumerate(config.flows):
        place: Keys = ("flows", index)
        for chain in (flow.process, flow.error or ()):
            for block in walk(chain):
                yield from _of_block(block, config)
        if flow.error:
            what = f"{flow.title}: the `error` chain is left out"
            yield Mutant(what, locate((*place, "error")), place, place, _without("error"))


def _of_block(block: Block, config: Config) -> Iterator[Mutant]:
    place, locate = block.place.path, config.origin.locate
    yield Mutant(f"{block.address} does nothing", locate(place), place, place, lambda node: _idle(node, block))
    for key, name in block.yaml_keys().items():
        value = getattr(block, name)
        if isinstance(value, SubFlow) and type(block).model_fields[name].default is None:
            what = f"{block.address}[{key}] is left out"
            yield Mutant(what, locate((*place, key, "process", 0)), place, place, _without(key))
        elif name in block.model_fields_set:
            for keys, what, change in _of_value(value, (key,)):
                shown = f"{block.address}: `{_dotted(keys)}` {what}"
                yield Mutant(shown, locate((*place, *keys)), place, (*place, *keys), change)


def _of_value(value: object, keys: Keys) -> Iterator[tuple[Keys, str, Callable[[Json], Json]]]:
    """The changes within a setting: expressions, numbers, and what is on or off."""
    match value:
        case Expression():
            yield keys, *_of_expression(value)
        case bool():
            yield keys, f"is {str(not value).lower()}, not {str(value).lower()}", lambda _: not value
        case int() | float():
            yield keys, f"is {number_text(value + 1)}, not {number_text(value)}", lambda _: value + 1
        case Block() | SubFlow():
            return
        case Model():
            for key, name in value.yaml_keys().items():
                if name in value.model_fields_set:
                    yield from _of_value(getattr(value, name), (*keys, key))
        case tuple():
            for index, item in enumerate(value):
                yield from _of_value(item, (*keys, index))
        case dict():
            for key, item in value.items():
                if isinstance(item, (Expression, Model)):
                    yield from _of_value(item, (*keys, key))


def _of_expression(expression: Expression[Json]) -> tuple[str, Callable[[Json], Json]]:
    if expression.kind is bool:
        return "is turned round", lambda source: f"!({source})"
    if expression.kind is list:
        return "is empty", lambda _: "[]"
    return "is null", lambda _: "null"


def _without(key: str) -> Callable[[Json], Json]:
    def change(node: Json) -> Json:
        if isinstance(node, Block):
            return node
        return {name: value for name, value in node.items() if name != key}

    return change


def _dotted(keys: Keys) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


def _idle(node: Json, block: Block) -> Block:
    """What stands in for a block and does nothing; one that is mocked stays."""
    if isinstance(node, Block):
        return node
    idle = Idle.model_construct()
    idle.put_at(block.place)
    idle.__dict__["type"] = block.type
    return idle


class Idle(Block):
    """Gives each message on as it is."""

    async def execute(self, message: Message, run: Run) -> Message:
        return message
