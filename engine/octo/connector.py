"""A named instance of something outside, and the sources it gives: what every connector builds on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Protocol, TypeAlias

from pydantic import BeforeValidator, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from octo import cel
from octo.errors import ExpressionError, OctoError, did_you_mean, near
from octo.fields import Expression, Model, compile_expression, natural_kinds
from octo.message import Message
from octo.refusals import ECHO, LoadContext, Refusals, refusal, stray
from octo.values import Json, clone, kind_of

if TYPE_CHECKING:
    from octo.block import Finding
    from octo.config.model import Config
    from octo.invocation import Outcome
    from octo.runtime import Runtime


class Deliver(Protocol):
    """Hands messages to a flow."""

    flow: str
    """Name of the flow."""

    async def __call__(self, message: Message) -> Outcome:
        """Wait until the flow has room for the message and is done with it; how it ended.

        Whoever gives up waiting does not end the work of the flow.
        """

    async def accept(self, message: Message) -> Awaitable[Outcome]:
        """Wait until the flow has room for the message; what to await for how it ends."""


class Source(Model):
    """Where a flow takes its messages from. The fields are the keys under `settings` of the flow's `source`."""

    type: ClassVar[str] = ""
    instance: ClassVar[str] = ""
    """The name of the connector instance."""
    asked: ClassVar[str] = ""
    """What stands under `connector`."""
    implied: ClassVar[Connector | None] = None
    """That instance, when the config declares none of its type: one without settings."""
    given: ClassVar[Json] = {}
    """The settings as they are written, for expressions."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        if cls is Source:
            return core_schema.with_info_plain_validator_function(_build_source)
        return handler(source)  # type: ignore[no-any-return]  # the default of every model

    async def listen(self, live: Any, deliver: Deliver) -> None:
        """Hand messages to the flow until cancelled; `live` is what the connector has open.

        What was taken from outside when the end comes is still handed over. Raises OctoError when there is nothing to
        listen to any more.
        """
        raise TypeError(f"source type `{self.type}` has no listen method")

    def evaluate(self, expression: Expression, runtime: Runtime, *, now: int) -> Json:
        """The value of one of its expressions at a time in ns since 1970. Raises OctoError."""
        scope = {"now": cel.Timestamp(now), "settings": self.given, cel.SURROUNDINGS: runtime.surroundings}
        try:
            return clone(expression.program(scope))
        except ExpressionError as error:
            raise OctoError(f"evaluate expression: {error.message}", hint=error.hint) from error


Sources: TypeAlias = tuple[type[Source], ...]


class Connector(Model):
    """Settings of a connection to the outside; `open` yields the live thing that blocks use.

    The fields are the keys under `settings`.
    """

    type: ClassVar[str] = ""
    category: ClassVar[str] = ""
    """What it can be used for, as `llm`; blocks ask for a category."""
    instance: ClassVar[str] = ""
    """The name of this instance in the config."""
    sources: ClassVar[Sources] = ()
    """What flows can take messages from."""

    def __init_subclass__(cls, *, type: str = "", category: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if type:
            cls.type = type
        if category:
            cls.category = category

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        if cls is Connector:
            return core_schema.with_info_plain_validator_function(_build)
        return handler(source)  # type: ignore[no-any-return]  # the default of every model

    def check(self, config: Config) -> Iterator[Finding]:
        """What is wrong in view of the whole config; the paths of findings are below the connector."""
        return iter(())

    def open(self, runtime: Runtime) -> AbstractAsyncContextManager[object]:
        """Open the live thing; it is closed when the runtime closes. Raises ConnectorError."""
        return _nothing()

    def named(self, instance: str) -> None:
        """Say which instance this is."""
        self.__dict__["instance"] = instance


ENTRY_KEYS = ("name", "type", "settings")


def _build(data: Any, info: ValidationInfo) -> Connector:
    if isinstance(data, Connector):
        return data
    context: LoadContext | None = info.context
    if context is None or not isinstance(data, dict):
        raise refusal(f"expected a connector, found {kind_of(data)}", "a connector is `{name, type, settings}`")
    name, type_name = data.get("name"), data.get("type")
    if not isinstance(name, str) or not name:
        raise stray(data, ("name",)) or refusal("connector requires a name", "add `name:`")
    if not isinstance(type_name, str) or not type_name:
        raise stray(data, ("type",)) or refusal(f'connector "{name}" requires a type', "add `type:`")
    settings = data.get("settings")
    if settings is not None and not isinstance(settings, dict):
        raise refusal(f"expected a mapping under `settings`, found {kind_of(settings)}", at="settings")
    try:
        cls: type[Connector] = context.connector(str(type_name))
    except OctoError as error:
        raise refusal(error.message, error.hint, at="type") from error
    _refuse_unknown(data, cls, ENTRY_KEYS, "a connector")
    connector = cls.model_validate(settings or {}, context=context)
    connector.named(str(name))
    return connector


def _refuse_unknown(data: dict[str, Json], cls: type[Model], keys: Sequence[str], what: str) -> None:
    refusals = Refusals()
    for key in data:
        if key not in keys and not key.startswith("x-"):
            setting = key if key in cls.yaml_keys() else near(key, cls.yaml_keys())
            hint = did_you_mean(key, keys)
            if setting is not None and near(key, keys) is None:
                hint = f"`{setting}` belongs under `settings:`"
            refusals.add(f'unknown field "{key}" of {what}', key, hint=hint, at="key")
    refusals.raise_if_any()


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield None


# ---------------------------------------------------------------- sources


SOURCE_NAMES: Final = frozenset({"now", "settings"})
"""What an expression of a source sees: there is no message yet."""


def _payload(value: Any) -> Any:
    return compile_expression(str(value), object, SOURCE_NAMES) if isinstance(value, str) else value


Payload: TypeAlias = Annotated[Expression, BeforeValidator(_payload)]
"""An expression that makes a body before there is a message."""

SOURCE_KEYS: Final = ("connector", "type", "settings")


def _build_source(data: Any, info: ValidationInfo) -> Source:
    if isinstance(data, Source):
        return data
    context: LoadContext | None = info.context
    if context is None or not isinstance(data, dict):
        raise refusal(f"expected a source, found {kind_of(data)}", "a source is `{connector, type, settings}`")
    wanted, type_name = data.get("connector"), data.get("type")
    if wanted is not None and not isinstance(wanted, str):
        raise refusal(f"expected the name of a connector, found {kind_of(wanted)}", at="connector")
    if not isinstance(type_name, str) or not type_name:
        raise stray(data, ("type",)) or refusal("source requires a type", "for example `type: cron`")
    settings = data.get("settings")
    if settings is not None and not isinstance(settings, dict):
        raise refusal(f"expected a mapping under `settings`, found {kind_of(settings)}", at="settings")
    instance, connector = _connector_of(wanted, type_name, context)
    offered = {source.type: source for source in connector.sources}
    cls = offered.get(type_name)
    if cls is None:
        hint = did_you_mean(type_name, offered) or f"connectors of type `{connector.type}` are no source"
        raise refusal(f'connector "{instance}" ({connector.type}) has no source "{type_name}"', hint, at="type")
    _refuse_unknown(data, cls, SOURCE_KEYS, "a source")
    source = cls.model_validate(settings or {}, context=context)
    implied = None
    if instance not in context.connectors:
        implied = connector.model_validate({}, context=context)
        implied.named(instance)
    given = {str(key): natural_kinds(value, context.natural) for key, value in (settings or {}).items()}
    source.__dict__.update(instance=instance, implied=implied, given=given, asked=wanted or "")
    return source


def _connector_of(wanted: str | None, type_name: str, context: LoadContext) -> tuple[str, type[Connector]]:
    """The name and the type of the connector instance that a source belongs to."""
    declared = context.connectors
    if wanted and wanted in declared:
        named = _type_of(declared[wanted], context)
        if named is None:
            raise ECHO
        return wanted, named
    connector = _type_of(wanted, context) or _type_of(type_name, context)
    if connector is None:
        raise _not_configured(wanted, type_name, context)
    fitting = [name for name, other in declared.items() if other == connector.type]
    if len(fitting) > 1:
        names = " or ".join(f"`{name}`" for name in fitting)
        raise refusal(f"there are {len(fitting)} connectors of type `{connector.type}`", f"add `connector:` {names}")
    if not fitting and connector.type in declared:
        found = f"connector `{connector.type}` is of type `{declared[connector.type]}`"
        raise refusal(found, f"declare a connector of type `{connector.type}` under another name", at="type")
    return (fitting or [connector.type])[0], connector


def _type_of(name: str | None, context: LoadContext) -> type[Connector] | None:
    """The connector type of that name, if there is one."""
    try:
        return context.connector(name) if name else None
    except OctoError:
        return None


def _not_configured(wanted: str | None, type_name: str, context: LoadContext) -> Exception:
    message = f'source connector "{wanted or type_name}" is not configured'
    if wanted and (match := near(wanted, context.connectors)):
        return refusal(message, f"did you mean `{match}`?", at="connector")
    try:
        context.connector(type_name)
    except OctoError as error:
        return refusal(message, error.hint, at="type")
    return refusal(message, "declare it under `connectors`")


def source_class(data: Mapping[str, Json], context: LoadContext) -> type[Source] | None:
    """The class that reads a source, if it can be told."""
    wanted, type_name = data.get("connector"), data.get("type")
    names = (context.connectors.get(str(wanted)), wanted, type_name)
    for name in names:
        connector = _type_of(name, context) if isinstance(name, str) else None
        for source in connector.sources if connector else ():
            if source.type == type_name:
                return source
    return None
