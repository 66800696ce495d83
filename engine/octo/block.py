"""One step of a flow, and the chains that steps stand in: what every block builds on."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pydantic import ValidationInfo
from pydantic_core import CoreSchema, core_schema

from octo.errors import OctoError, did_you_mean
from octo.fields import Model, Text
from octo.message import Message
from octo.refusals import ECHO, LoadContext, refusal, stray
from octo.values import Json, kind_of

if TYPE_CHECKING:
    from octo.config.model import Config, Flow
    from octo.run import Run
    from octo.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands. Given to it once, when its config is loaded."""

    name: str
    """The block's `name`; empty when it has none."""
    label: str
    """The block's `name`, else its type: what error texts call it."""
    selector: str
    """What an address calls it: its `name`, else its `ref`, else its type."""
    address: str = ""
    """`flow.block[branch].block`."""
    path: tuple[str | int, ...] = ()
    """The path of keys that leads to it in the config."""
    ref: str = ""
    """The processor that it refers to, if it does."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A chain inside a block: its name in addresses, and the path of keys that leads to it."""

    name: str
    path: tuple[str | int, ...]
    chain: Chain
    lone: bool = False
    """Whether the chain is one block that stands at the path itself, not in a list."""

    def path_of(self, index: int) -> tuple[str | int, ...]:
        """The path of keys that leads to a block of the chain."""
        return self.path if self.lone else (*self.path, index)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a block finds wrong once the whole config is known. `path` is below the block, in YAML spelling."""

    message: str
    path: tuple[str | int, ...] = ()
    hint: str | None = None
    warning: bool = False


class Block(Model):
    """One step of a flow: fields are its YAML keys, `execute` is what it does.

    A block is immutable after loading and shared by all runs. It keeps nothing between messages: state lives on
    the message, in the run, or in what connectors hold open.
    """

    type: ClassVar[str] = ""
    group: ClassVar[str] = ""
    composite: ClassVar[bool] = False
    """Whether its keys stand only beside `type`, not under `settings:`."""
    place: ClassVar[Place] = Place("", "", "")

    def __init_subclass__(cls, *, type: str = "", group: str = "", composite: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if type:
            cls.type, cls.group, cls.composite = type, group, composite

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        if cls is Block:
            return core_schema.with_info_plain_validator_function(_build)
        return handler(source)  # type: ignore[no-any-return]  # the default of every model

    async def execute(self, message: Message, run: Run) -> Message:
        """Take one message and give one message; raise `Dropped` to filter it out, OctoError to fail."""
        raise TypeError(f"block type `{self.type}` has no execute method")

    def check(self, config: Config) -> Iterator[Finding]:
        """What this block alone cannot see when it is validated."""
        return iter(())

    @property
    def label(self) -> str:
        return self.place.label

    @property
    def address(self) -> str:
        return self.place.address

    def branches(self) -> Iterator[Branch]:
        """The chains inside this block, derived from the fields that hold them."""
        for key, name in self.yaml_keys().items():
            yield from _branches_of(getattr(self, name), key, (key,))

    def put_at(self, place: Place) -> None:
        """Say where the block stands."""
        self.__dict__["place"] = place


Chain: TypeAlias = tuple[Block, ...]
"""An ordered list of blocks."""


class SubFlow(Model):
    """A chain inside a composite block."""

    name: Text | None = None
    """Name of the branch, for addresses."""

    process: Chain = ()
    """The blocks that run, in order."""


class Takeover(Block):
    """A block that decides what goes on through the rest of its chain, and when.

    It stands directly in a flow's `process` or `error` chain, with blocks after it.
    """

    async def execute(self, message: Message, run: Run) -> Message:
        message = await self.take(message, run, self.rest(run.runtime.config))
        message.stop()
        return message

    async def take(self, message: Message, run: Run, rest: Flow) -> Message:
        """Take one message and give the one that its flow completes with. What goes on goes through `rest`."""
        raise TypeError(f"block type `{self.type}` has no take method")

    def background(self, runtime: Runtime) -> Coroutine[Any, Any, None] | None:
        """What there is to do as long as the runtime is open, such as a timer."""
        return None

    def rest(self, config: Config) -> Flow:
        """What follows the block, as a flow of its own, which recovers as the whole flow does."""
        _, index, chain, position = self.place.path
        flow = config.flows[int(index)]
        if chain == "error":
            return flow.model_copy(update={"process": (flow.error or ())[int(position) + 1 :], "error": None})
        return flow.model_copy(update={"process": flow.process[int(position) + 1 :]})

    def check(self, config: Config) -> Iterator[Finding]:
        if len(self.place.path) != 4:
            yield Finding(
                f"`{self.type}` stands directly in the `process` or `error` chain of a flow, not inside another block",
                hint="put it into a flow of its own and call that with `flow-ref`",
            )
        elif not self.rest(config).process:
            yield Finding(
                f"`{self.type}` cannot be the last block of its chain",
                hint="the blocks after it are what its messages go through",
            )


def _branches_of(value: object, name: str, path: tuple[str | int, ...]) -> Iterator[Branch]:
    match value:
        case SubFlow():
            yield Branch(name, (*path, "process"), value.process)
        case tuple() if value and all(isinstance(item, Block) for item in value):
            yield Branch(name, path, value)
        case tuple():
            for index, item in enumerate(value):
                yield from branches_of(item, (*path, index))


def branches_of(item: object, path: tuple[str | int, ...]) -> Iterator[Branch]:
    """The chain of an entry of a list: its `process`, or the one block that stands in its place."""
    name = getattr(item, "name", None) or str(path[-1])
    process = getattr(item, "process", None)
    if isinstance(process, tuple):
        yield Branch(name, (*path, "process"), process)
    for key, attribute in item.yaml_keys().items() if isinstance(item, Model) else ():
        block = getattr(item, attribute)
        if isinstance(block, Block):
            yield Branch(name, (*path, key), (block,), lone=True)


# ---------------------------------------------------------------- from data to a block


def _build(data: Any, info: ValidationInfo) -> Block:
    if isinstance(data, Block):
        return data
    context: LoadContext | None = info.context
    if context is None or not isinstance(data, dict):
        raise refusal(f"expected a block, found {kind_of(data)}", "a block is a mapping with a `type`")
    name = _word(data, "name")
    ref = _word(data, "ref")
    given_type = _word(data, "type")
    settings: dict[str, Json] = {}
    if ref is None:
        if given_type is None:
            raise stray(data, ("type", "ref")) or refusal(
                "block requires a type or a ref", "for example `type: set-payload`"
            )
        block_type = given_type
    else:
        block_type, settings = _definition(ref, given_type, context)
    try:
        cls: type[Block] = context.block(block_type)
    except OctoError as error:
        raise (ECHO if ref else refusal(error.message, error.hint, at="type")) from error
    if ref is not None:
        _enter(ref, context)
    try:
        block = cls.model_validate(settings | _fold(data, cls), context=context)
    finally:
        if ref is not None:
            context.refs.pop()
    block.put_at(Place(name or "", name or block_type, name or ref or block_type, ref=ref or ""))
    return block


def _enter(ref: str, context: LoadContext) -> None:
    if ref in context.refs:
        cycle = " → ".join([*context.refs[context.refs.index(ref) :], ref])
        raise refusal(f"processor `{ref}` contains itself: {cycle}", "a processor cannot refer to itself", at="ref")
    context.refs.append(ref)


def _word(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise refusal(f"expected text for `{key}`, found {kind_of(value)}", at=key)
    return str(value)


def _definition(ref: str, given_type: str | None, context: LoadContext) -> tuple[str, dict[str, Json]]:
    definition = context.processors.get(ref)
    if definition is None:
        hint = did_you_mean(ref, context.processors) or "define it under `processors`"
        raise refusal(f'block ref "{ref}" is not a defined processor', hint, at="ref", refers=True)
    block_type = definition.get("type")
    if not isinstance(block_type, str):
        raise ECHO
    if given_type is not None and given_type != block_type:
        raise refusal(f"`{ref}` is a `{block_type}`, not a `{given_type}`", "leave `type` out", at="type")
    settings = definition.get("settings")
    return str(block_type), dict(settings) if isinstance(settings, dict) else {}


RESERVED = frozenset({"type", "name", "ref", "settings"})


def _fold(data: Mapping[str, Json], cls: type[Block]) -> dict[str, Json]:
    """Settings under `settings:` and keys beside `type` are one set of settings."""
    beside = {key: value for key, value in data.items() if key not in RESERVED and not key.startswith("x-")}
    settings = data.get("settings")
    if settings is None:
        return beside
    if not isinstance(settings, dict):
        raise refusal(f"expected a mapping under `settings`, found {kind_of(settings)}", at="settings")
    if cls.composite:
        raise refusal(
            f"the keys of `{cls.type}` stand beside `type`, not under `settings`",
            "move them one level up",
            at="settings",
        )
    for key in settings:
        if key in beside:
            raise refusal(
                f"`{key}` is given both at the top level and under settings", "keep one of them", at=f"key:{key}"
            )
    return beside | settings
