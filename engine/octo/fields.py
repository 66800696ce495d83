"""What is read from YAML: the model base and the field types of blocks and connectors.

Every field type takes a `${NAME}` that stands alone by the kind of its field: text stays as it is, a number or
a boolean is read from it, a value of any kind takes its natural kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Generic, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from typing_extensions import TypeVar

from octo import cel
from octo.errors import ExpressionError, OctoError, did_you_mean, near
from octo.refusals import LoadContext, refusal
from octo.values import Json, kind_of

MESSAGE_NAMES: Final = frozenset({"body", "vars", "eventID", "correlationID", "env", "now"})
"""What an expression on a message sees."""
JSON_NAMES: Final = frozenset({"body"})
"""Those of them that hold decoded JSON throughout; a variable may also hold ints that the runtime has set."""


class EnvText(str):
    """The text of a scalar that was exactly one `${NAME}`; its kind is decided by the field that takes it."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, text: str, name: str) -> EnvText:
        self = super().__new__(cls, text)
        self.name = name
        return self

    def __repr__(self) -> str:
        return f"${{{self.name}}}"


# ---------------------------------------------------------------- models


def camel(name: str) -> str:
    """`max_iterations` is `maxIterations` in YAML, `else_` is `else`."""
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(word.capitalize() for word in rest)


class Model(BaseModel):
    """Base of everything that is read from YAML: frozen, closed, with camel-case keys.

    A null counts as not given, and keys that start with `x-` are left out.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=camel,
        defer_build=True,
        arbitrary_types_allowed=True,
        protected_namespaces=(),
    )

    null_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys for which null is a value."""
    spellings: ClassVar[Mapping[str, str]] = {}
    """Other accepted spellings of keys, each with the key it stands for."""
    shorthand: ClassVar[Any] = None
    """The type of what may be written instead of the mapping, when a validator of the model makes one of it."""

    @model_validator(mode="before")
    @classmethod
    def _given(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = cls.yaml_keys().keys() - cls.null_keys
        given = {
            key: value
            for key, value in data.items()
            if not (value is None and key in known) and not key.startswith("x-")
        }
        for spelling, key in cls.spellings.items():
            if spelling in given:
                if key in given:
                    text = f"`{key}` and `{spelling}` are two spellings of one key"
                    raise refusal(text, "keep one of them", at=f"key:{spelling}")
                given[key] = given.pop(spelling)
        return given

    @property
    def brief(self) -> Json:
        """What may be written in place of the mapping, if it says all of it; else None."""
        return None

    @classmethod
    @cache
    def yaml_keys(cls) -> dict[str, str]:
        """The YAML keys, each with the name of its attribute."""
        return {field.alias or name: name for name, field in cls.model_fields.items()}


# ---------------------------------------------------------------- plain values


def _text(value: Any) -> Any:
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)
    raise refusal(f"expected text, found {_shown(value)}", _quoting_hint(value), named=True)


def _name(value: Any) -> Any:
    text = _text(value)
    if not text.strip():
        raise refusal("expected a name, found blank text", named=True)
    return text


def _loose_text(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return _text(value)


def _shown(value: Any) -> str:
    """What was found: a number or a boolean as it is, of anything else its kind."""
    shown = kind_of(value)
    return f"the {shown.removeprefix('a ')} {json.dumps(value)}" if isinstance(value, (bool, int, float)) else shown


def _quoting_hint(value: Any) -> str | None:
    return f'put it in quotes: "{json.dumps(value)}"' if isinstance(value, (bool, int, float)) else None


def _typed(expected: str, accepts: Callable[[Any], bool]) -> Callable[[Any, ValidationInfo], Any]:
    def read(value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, EnvText):
            natural = info.context.natural(value) if info.context else str(value)
            if not accepts(natural):
                raise refusal(f"expected {expected}, found the value of `${{{value.name}}}`, which is none", named=True)
            return natural
        if accepts(value):
            return value
        if isinstance(value, str):
            raise refusal(f"expected {expected}, found the text `{value}`", _bare_hint(value, accepts), named=True)
        raise refusal(f"expected {expected}, found {_shown(value)}", named=True)

    return read


def _bare_hint(text: str, accepts: Callable[[Any], bool]) -> str | None:
    if text.lower() in {"yes", "no", "on", "off"} and accepts(True):
        return f"write `{'true' if text.lower() in {'yes', 'on'} else 'false'}`; only `true` and `false` are booleans"
    try:
        bare = json.loads(text)
    except ValueError:
        return None
    return "write it without quotes" if accepts(bare) else None


def _is_int(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def natural_kinds(value: Json, natural: Callable[[str], Json]) -> Json:
    """The value with every lone `${NAME}` in it turned into its natural kind."""
    match value:
        case EnvText():
            return natural(value)
        case list():
            return [natural_kinds(item, natural) for item in value]
        case dict():
            return {key: natural_kinds(item, natural) for key, item in value.items()}
    return value


def _any_json(value: Any, info: ValidationInfo) -> Any:
    return natural_kinds(value, info.context.natural if info.context else str)


def _given_text(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


BLANK_IS_ABSENT: Final = BeforeValidator(_given_text)
"""Annotates an optional field for which blank text means that it is not given."""
Text = Annotated[str, BeforeValidator(_text)]
"""Text; a number or a boolean must be quoted."""
Name = Annotated[str, BeforeValidator(_name)]
"""Text that is not blank."""
LooseText = Annotated[str, BeforeValidator(_loose_text)]
"""Text; a bare number or boolean is taken as its text."""
Int = Annotated[int, BeforeValidator(_typed("a whole number", _is_int))]
Number = Annotated[float, BeforeValidator(_typed("a number", _is_number))]
Bool = Annotated[bool, BeforeValidator(_typed("`true` or `false`", _is_bool))]
AnyJson = Annotated[Json, BeforeValidator(_any_json)]
"""A value of any kind."""


def one_of(*choices: str, once: Mapping[str, str] | None = None) -> BeforeValidator:
    """Annotates a `Literal` field so that a word which is none of them is reported with those that are.

    `once` are words of other times, each with the one that is meant today.
    """

    def read(value: Any) -> Any:
        text = _text(value)
        if text not in choices:
            match = (once or {}).get(text) or near(text, choices)
            raise refusal(
                f"expected {' or '.join(f'`{choice}`' for choice in choices)}, found `{text}`",
                f"did you mean `{match}`?" if match else None,
            )
        return text

    return BeforeValidator(read)


# ---------------------------------------------------------------- expressions

T = TypeVar("T", default=Json)


class Expression(Generic[T]):
    """A compiled expression. The type argument says what it must yield: `bool`, `str`, `list`, or any value."""

    __slots__ = ("kind", "program", "source")

    def __init__(self, source: str, kind: object = object, names: frozenset[str] = MESSAGE_NAMES) -> None:
        self.source = source
        self.kind = kind
        self.program = cel.compile(source, names, json=JSON_NAMES)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source_type: Any, handler: Any) -> CoreSchema:
        argument = next(iter(get_args(source_type)), object)
        kind = get_origin(argument) or argument

        def read(value: Any, info: core_schema.ValidationInfo) -> Expression[Any]:
            if isinstance(value, Expression):
                return value
            if not isinstance(value, str):
                raise refusal(
                    f"expected an expression, found {kind_of(value)}",
                    f"an expression is text: write '{json.dumps(value)}' in quotes"
                    if not isinstance(value, (dict, list))
                    else "an expression is text: put it in quotes",
                )
            source = str(value)
            if info.context is None:
                return compile_expression(source, kind)
            # Large configs say many things more than once.
            compiled: dict[object, Any] = info.context.shared
            found: Expression[Any] | None = compiled.get((Expression, source, kind))
            if found is None:
                found = compiled[Expression, source, kind] = compile_expression(source, kind)
            return found

        return core_schema.with_info_plain_validator_function(read)


def compile_expression(source: str, kind: object, names: frozenset[str] = MESSAGE_NAMES) -> Expression[Any]:
    """Compile the text of a setting; one that does not compile is a problem with its column."""
    if not source.strip():
        raise refusal("expected an expression, found blank text")
    try:
        return Expression(source, kind, names)
    except ExpressionError as error:
        raise PydanticCustomError("expression", "{message}", {"message": error.message, "error": error}) from error


# ---------------------------------------------------------------- durations, schemas, names, resources

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_STEP: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


class Duration:
    """A span of time, written as `250ms`, `1m30s` or `0`; units are ns, us, ms, s, m and h."""

    __slots__ = ("ns", "text")

    def __init__(self, text: str) -> None:
        """Raises ValueError for text that is no duration."""
        self.text = text
        self.ns = _nanoseconds(text)

    @property
    def seconds(self) -> float:
        return self.ns / 10**9

    def __repr__(self) -> str:
        return f"Duration({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and other.ns == self.ns

    def __hash__(self) -> int:
        return hash(self.ns)

    @classmethod
    def __get_pydantic_core_schema__(cls, source_type: Any, handler: Any) -> CoreSchema:
        def read(value: Any) -> Duration:
            if isinstance(value, Duration):
                return value
            if isinstance(value, (int, float)) and value != 0:
                raise refusal(f"expected a duration, found {kind_of(value)}", f"add a unit, for example `{value}s`")
            text = "0" if value == 0 and type(value) is int else _text(value)
            if not text.strip():
                raise refusal("expected a duration, found blank text", "write a number and a unit, such as `250ms`")
            if text[:1] == "-" and _STEP.match(text, 1):
                raise refusal(f"expected a duration, found `{text}`, which is negative")
            try:
                return Duration(text)
            except ValueError:
                raise refusal(
                    f"expected a duration, found `{text}`", "write a number and a unit, such as `250ms` or `1m30s`"
                ) from None

        return core_schema.no_info_plain_validator_function(read)


def _nanoseconds(text: str) -> int:
    if text == "0":
        return 0
    total, end = 0.0, 0
    while match := _STEP.match(text, end):
        total, end = total + float(match[1]) * _UNITS[match[2]], match.end()
    if end == 0 or end != len(text):
        raise ValueError(text)
    return round(total)


def _json_schema(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            reason = error.msg.lower() if isinstance(error, json.JSONDecodeError) else str(error)
            raise refusal(f"expected a JSON Schema, found text that is not JSON: {reason}{where}") from None
    if not isinstance(value, dict):
        raise refusal(f"expected a JSON Schema, found {kind_of(value)}", 'for example {"type": "object"}')
    return natural_kinds(value, info.context.natural if info.context else str)


JsonSchema = Annotated[dict[str, Any], BeforeValidator(_json_schema)]
"""A JSON Schema, as a mapping or as text that holds JSON."""


class ConnectorName(str):
    """The name of a configured connector."""

    __slots__ = ()
    category: ClassVar[str] = ""
    """The category that the connector must be of; empty for any."""
    type: ClassVar[str] = ""
    """The type that the connector must be of, when it is one certain type."""
    tells_owner: ClassVar[bool] = False
    """Whether problems name the block that refers to the connector."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source_type: Any, handler: Any) -> CoreSchema:
        def read(value: Any, info: core_schema.ValidationInfo) -> ConnectorName:
            name = cls(_text(value).strip())
            if not name:
                raise refusal("expected the name of a connector, found blank text", owned=cls.tells_owner)
            if info.context is not None:
                name._must_fit(info.context)
            return name

        return core_schema.with_info_plain_validator_function(read)

    def _must_fit(self, context: LoadContext) -> None:
        """The connector must be configured, and be what the field needs."""
        known = context.connectors
        type_name = known.get(self)
        if type_name is None:
            hint = did_you_mean(self, known) or "declare it under `connectors`"
            raise refusal(f'connector "{self}" is not configured', hint, owned=self.tells_owner, refers=True)
        if self._fits(type_name, context):
            return
        fitting = [other for other, other_type in known.items() if self._fits(other_type, context)]
        kind = self.type or self.category
        wanted = f"type `{kind}`" if self.type else f"an `{kind}-…` type"
        raise refusal(
            f'connector "{self}" is a `{type_name}`, which is no {kind} connector',
            did_you_mean(self, fitting) or f"declare a connector of {wanted}",
            owned=self.tells_owner,
            refers=True,
        )

    def _fits(self, type_name: str, context: LoadContext) -> bool:
        try:
            connector = context.connector(type_name)
        except OctoError:
            return True  # an unknown type is reported where it stands
        return self.category in ("", connector.category) and self.type in ("", connector.type)


class LlmName(ConnectorName):
    """The name of a configured connector of an `llm-*` type."""

    __slots__ = ()
    category = "llm"
    tells_owner = True


class FlowName(str):
    """The name of a flow of the config."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source_type: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(lambda value: cls(_name(value)))


class ResourceText(str):
    """Text, or `{resource: FILE}`: the text of a UTF-8 file below the config directory."""

    __slots__ = ("resource",)
    resource: str | None

    def __new__(cls, text: str, resource: str | None = None) -> ResourceText:
        self = super().__new__(cls, text)
        self.resource = resource
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source_type: Any, handler: Any) -> CoreSchema:
        def read(value: Any, info: core_schema.ValidationInfo) -> ResourceText:
            if not isinstance(value, dict):
                return cls(_text(value))
            if set(value) == {"resource", "text"}:  # of an agent in the store
                return cls(_text(value["text"]), _text(value["resource"]))
            context: LoadContext | None = info.context
            if set(value) != {"resource"} or context is None:
                raise refusal("expected text or `{resource: FILE}`")
            resource = _text(value["resource"])
            try:
                return cls(context.read(resource), resource)
            except OctoError as error:
                raise refusal(error.message, error.hint, refers=True) from error

        return core_schema.with_info_plain_validator_function(read)
