"""A named instance of something outside: what every connector builds on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ValidationInfo
from pydantic_core import CoreSchema, core_schema

from octo.errors import OctoError, did_you_mean, near
from octo.fields import LoadContext, Model, Refusals, refusal, stray
from octo.values import Json, kind_of

if TYPE_CHECKING:
    from octo.runtime import Runtime


class Connector(Model):
    """Settings of a connection to the outside; `open` yields the live thing that blocks use.

    The fields are the keys under `settings`.
    """

    type: ClassVar[str] = ""
    category: ClassVar[str] = ""
    """What it can be used for, as `llm`; blocks ask for a category."""
    instance: ClassVar[str] = ""
    """The name of this instance in the config."""

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
    _refuse_unknown(data, cls)
    connector = cls.model_validate(settings or {}, context=context)
    connector.named(str(name))
    return connector


def _refuse_unknown(data: dict[str, Json], cls: type[Connector]) -> None:
    refusals = Refusals()
    for key in data:
        if key not in ENTRY_KEYS and not key.startswith("x-"):
            setting = key if key in cls.yaml_keys() else near(key, cls.yaml_keys())
            hint = did_you_mean(key, ENTRY_KEYS)
            if setting is not None and near(key, ENTRY_KEYS) is None:
                hint = f"`{setting}` belongs under `settings:`"
            refusals.add(f'unknown field "{key}" of a connector', key, hint=hint, at="key")
    refusals.raise_if_any()


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield None
