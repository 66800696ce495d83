"""Mocks, spies, a breakpoint and written models: what replaces and watches parts of a config for one call.

A mock stands in for its block before the config is validated, so that nothing of the block is built. Spies and the
breakpoint watch from the chain. A model is replaced when its connector opens. What a call was asked to double is a
value (`Doubles`); what it saw is on its `Stage`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from octo.block import Block, Place
from octo.cel import Timestamp
from octo.config import address
from octo.config.document import Path
from octo.config.outline import outline, put
from octo.errors import ConfigError, OctoError, Problem, UsageError, did_you_mean
from octo.message import Dropped, Message
from octo.run import RunError
from octo.values import Json, Ordered, clone

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.connector import Connector
    from octo.debug import MockCase, MockSpec
    from octo.run import Run

Report: TypeAlias = Callable[[Path, str, str | None], Problem]
"""Makes a problem of what is wrong at a path of a debug config: the path, the text, a hint."""

CANCELLED: Final = "cancelled before it was done"
"""What a spy notes of a block that was still running when its run ended."""


def _nowhere(path: Path, message: str, hint: str | None) -> Problem:
    return Problem(message, hint=hint)


@dataclass(frozen=True)
class Doubles:
    """What a call replaces and watches; nothing of it is tied to a config yet."""

    mocks: Mapping[str, MockSpec] = field(default_factory=dict)
    """Block addresses, each with what stands in for the block."""
    spies: Sequence[str] = ()
    """Addresses of blocks whose messages are recorded."""
    break_at: str = ""
    """Address of the block after which the flow halts; empty for none."""
    models: Mapping[str, Connector] = field(default_factory=dict)
    """Names of connectors to models, each with the connector whose written replies are given instead."""
    report: Report = _nowhere
    """Knows the place of a problem in the file that asked for all this."""

    @property
    def watching(self) -> bool:
        """Whether there are spies or a breakpoint, so that an envelope tells what they saw."""
        return bool(self.spies or self.break_at)

    def rewrite(self, data: dict[str, Json]) -> tuple[dict[str, Json], list[Problem]]:
        """The merged data of a config with stand-ins for the mocked blocks; a step of loading the config.

        It depends on the addresses of the mocks only. The problems are those of addresses that name no block, or
        one that another mock replaces.
        """
        written = outline(data)
        problems: list[Problem] = []
        replaced: dict[str, Block] = {}
        for name in self.mocks:
            if address.linked(written, name):
                continue
            try:
                block = address.find(written, name)
                _check_overlap(block.place, replaced)
            except UsageError as error:
                problems.append(self._bad("mock", name, ("mocks", name), error))
                continue
            replaced[name] = block
            data = put(data, block.place.path, StandIn.of(block, name))
        if problems:  # nothing will run: so that one report holds all that is wrong
            problems += self._misplaced(written)
        return data, problems

    def _misplaced(self, config: Config) -> Iterator[Problem]:
        """The problems of spies and a breakpoint whose addresses name no block."""
        watched: list[tuple[str, str, Path]] = [
            ("spy", name, ("spies", index)) for index, name in enumerate(self.spies)
        ]
        watched += [("breakpoint", self.break_at, ("breakAt",))] if self.break_at else []
        for kind, name, path in watched:
            try:
                if not address.linked(config, name):
                    address.find(config, name)
            except UsageError as error:
                yield self._bad(kind, name, path, error)

    def on(self, config: Config) -> Stage | None:
        """The doubles on their places in a config that was loaded with `rewrite`; None when there are none.

        Raises ConfigError for addresses that name no block, or one inside a mock, and for models that nothing names.
        """
        if not (self.mocks or self.models or self.watching):
            return None
        problems: list[Problem] = []

        def find(kind: str, name: str, path: Path) -> Path:
            try:
                return (name,) if address.linked(config, name) else address.find(config, name).place.path
            except UsageError as error:
                problems.append(self._bad(kind, name, path, _inside_mock(config, name) or error))
                return ()

        mocks = {find("mock", name, ("mocks", name)): spec for name, spec in self.mocks.items()}
        break_at = find("breakpoint", self.break_at, ("breakAt",)) if self.break_at else None
        spies = [(name, find("spy", name, ("spies", index))) for index, name in enumerate(self.spies)]
        for index, name in enumerate(self.spies):
            if name in self.spies[:index]:
                repeated = UsageError("the address is given twice", hint="remove one of them")
                problems.append(self._bad("spy", name, ("spies", index), repeated))
        problems += self._models_of_nothing(config)
        if problems:
            raise ConfigError(problems)
        return Stage(mocks, spies, self.break_at, break_at, models=self.models, report=self.report)

    def _models_of_nothing(self, config: Config) -> Iterator[Problem]:
        known = {connector.instance: connector for connector in config.connectors}
        fitting = [name for name, connector in known.items() if connector.category == "llm"]
        for name in self.models:
            if name in fitting:
                continue
            hint = did_you_mean(name, fitting) or "the config declares no connector to a model"
            text = f"no connector has this name (models: {', '.join(fitting) or 'none'})"
            if name in known:
                text = f"it is a connector of type `{known[name].type}`, which is no model"
            yield self._bad("model", name, ("models", name), UsageError(text, hint=hint))

    def _bad(self, kind: str, name: str, path: Path, error: UsageError) -> Problem:
        return self.report(path, f'{kind} "{name}": {error.message}', error.hint)


def _check_overlap(place: Place, replaced: Mapping[str, Block]) -> None:
    """Raises UsageError for a block that another mock replaces, and for one inside it or around it."""
    for name, block in replaced.items():
        here, there = place.path, block.place.path
        if here == there:
            text = f'it names the same block as mock "{name}"'
        elif here[: len(there)] == there:
            text = f'it lies inside the block that mock "{name}" replaces'
        elif there[: len(here)] == here:
            text = f'it replaces a block around that of mock "{name}"'
        else:
            continue
        raise UsageError(text, hint="remove one of them")


def _inside_mock(config: Config, name: str) -> UsageError | None:
    """The error of an address that leads into a mocked block."""
    segments = name.split(".")
    for end in range(2, len(segments)):
        outer = ".".join([*segments[: end - 1], segments[end - 1].partition("[")[0]])
        try:
            block = address.find(config, outer)
        except UsageError:
            return None
        if isinstance(block, StandIn):
            hint = "nothing inside a mocked block runs; remove one of them"
            return UsageError(f'it lies inside the block that mock "{block.mocked_as}" replaces', hint=hint)
    return None


class StandIn(Block):
    """Stands in for a mocked block, with its name and type. What it does, the stage of the run knows."""

    mocked_as: ClassVar[str] = ""
    """The address that named the block."""

    @classmethod
    def of(cls, block: Block, name: str) -> StandIn:
        """What stands in for a block that was named by an address."""
        stand_in = cls.model_construct()
        stand_in.put_at(block.place)
        stand_in.__dict__.update(type=block.type, mocked_as=name)
        return stand_in

    async def execute(self, message: Message, run: Run) -> Message:
        stage = run.runtime.stage
        spec = stage.mocks.get(self.place.path) if stage else None
        if spec is None:
            raise RunError("it is mocked, but nothing says what the mock does")
        return _mocked(spec, message, run)


def _mocked(spec: MockSpec, message: Message, run: Run) -> Message:
    """What a mock makes of a message."""
    case = _matching(spec, message, run)
    if case is None:
        raise RunError("no case of the mock matches, and it has no default")
    if case.drop:
        raise Dropped
    if case.error:
        raise RunError(case.error)
    message.body = clone(case.body)
    message.vars.update(clone(case.vars))
    return message


def _matching(spec: MockSpec, message: Message, run: Run) -> MockCase | None:
    for index, case in enumerate(spec.cases):
        if case.when is not None and run.evaluate(case.when, message, f"mock case {index}"):
            return case
    return spec.default


class Stage:
    """The doubles of one call on their places, and what they saw.

    The place of a block is its path in the config. One of an agent that is looked up has no such place: it is known by
    its address.
    """

    def __init__(
        self,
        mocks: Mapping[Path, MockSpec],
        spies: Sequence[tuple[str, Path]],
        break_at: str,
        breakpoint: Path | None,
        *,
        models: Mapping[str, Connector] = MappingProxyType({}),
        report: Report = _nowhere,
    ) -> None:
        self.mocks = mocks
        self.break_at = break_at
        self.snapshot: Ordered | None = None
        """The message after the block of the breakpoint, once it was reached."""
        self.failure: str = ""
        """Why the block of the breakpoint failed, when it did."""
        self.records: dict[str, list[Json]] = {name: [] for name, _ in spies}
        """What each spy saw, by its address, in the order in which the block was left."""
        self.problems: list[Problem] = []
        """What was wrong with the doubles themselves: replies that were asked for and are not written."""
        self.reached: set[Path] = set()
        """The places of the blocks that were run."""
        self.asked: Counter[str] = Counter()
        """How many replies were asked of each written model."""
        self._models = models
        self._report = report
        self._breakpoint = breakpoint
        self._spies: dict[Path, list[list[Json]]] = {}
        for name, path in spies:
            self._spies.setdefault(path, []).append(self.records[name])
        self._seq = 0
        places = [*mocks, *self._spies, *([breakpoint] if breakpoint else [])]
        self._by_address = frozenset(place for place in places if len(place) == 1)

    def _place(self, block: Block) -> Path:
        here = (block.place.address,)
        return here if here in self._by_address else block.place.path

    def opening(self, connector: Connector) -> Connector:
        """The connector to open for one of the config: itself, or the one that acts in its place."""
        return self._models.get(connector.instance, connector)

    def used_up(self, model: str, call: int, asked: str) -> None:
        """Note that a model was asked for a reply that is not written."""
        text = f'model "{model}": turn {call} is not written, which was asked with {asked}'
        self.problems.append(
            self._report(("models", model), text, "add a turn, or find out why there is one more call")
        )

    async def execute(self, block: Block, message: Message, run: Run) -> Message:
        """Run a block under the eyes of its spies; halt after it if the breakpoint stands there."""
        path = self._place(block)
        self.reached.add(block.place.path)
        try:
            watch = self._spied if path in self._spies else self._halting
            after = await watch(block, message, run)
        except OctoError as error:
            if path == self._breakpoint:
                self.failure = error.message
            raise
        if path == self._breakpoint:
            if self.snapshot is None:
                self.snapshot = after.clone().shown()
            after.stop()
        return after

    async def _halting(self, block: Block, message: Message, run: Run) -> Message:
        """Run a block. One that fails because what it holds has halted halts as well, so that nothing recovers."""
        spec = self.mocks.get((block.place.address,)) if self._by_address else None
        try:
            return _mocked(spec, message, run) if spec is not None else await block.execute(message, run)
        except OctoError:
            if self.snapshot is None:
                raise
            message.stop()
            return message

    async def _spied(self, block: Block, message: Message, run: Run) -> Message:
        before = message.clone().shown()
        try:
            after = await self._halting(block, message, run)
        except Dropped:
            self._note(block, before, run, dropped=True)
            raise
        except OctoError as error:
            self._note(block, before, run, error=error.message)
            raise
        except asyncio.CancelledError:
            self._note(block, before, run, error=CANCELLED)
            raise
        self._note(block, before, run, output=after.clone().shown())
        return after

    def _note(self, block: Block, before: Ordered, run: Run, **result: Json) -> None:
        self._seq += 1
        at = str(Timestamp(run.runtime.clock()))
        for records in self._spies[self._place(block)]:
            records.append(Ordered(seq=self._seq, at=at, input=before, **result))
