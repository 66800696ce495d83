"""A whole checked configuration: what a file or a directory declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError, ValidationError

from octo.block import Chain
from octo.config.agents import AgentEntry, DeclaredAgent
from octo.config.environment import Environment
from octo.config.pricing import Rates
from octo.config.templates import Templates
from octo.connector import Connector, Source
from octo.errors import ConfigError, Location, OctoError, Problem
from octo.fields import Bool, Int, LooseText, Model, Text
from octo.refusals import Refusals, refuse


class Service(Model):
    """What the service is called."""

    name: LooseText | None = None
    """Service name, used in logs and as the workspace of agents."""

    environment: LooseText | None = None
    """A free-form label, for example `staging`."""


class StoreLimits(Model):
    """How much is kept in the store. Where it lies is said by the command line."""

    memory_max_bytes: Int | None = None
    """Most bytes of what a block remembers under one key; the oldest exchanges are dropped beyond that."""

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        refusals = Refusals()
        if self.memory_max_bytes is not None and self.memory_max_bytes < 1:
            refusals.add(
                f"store: `memoryMaxBytes` is at least 1, found {self.memory_max_bytes}",
                "memoryMaxBytes",
                hint="leave it out for no limit",
            )
        refusals.raise_if_any()
        return self


class EnvVariable(Model):
    """A declared environment variable; only declared ones are visible to `${NAME}` and `env.NAME`."""

    name: Text
    """Variable name."""

    default: LooseText | None = None
    """Used when nothing external supplies the variable. An explicit empty text is a default."""

    required: Bool = False
    """Refuse to load when neither the environment nor an env file supplies it. A default does not satisfy it."""

    secret: Bool = False
    """Mask the value wherever octo writes. Names that look like keys or passwords are masked without it."""

    description: LooseText | None = None
    """For readers."""


class Template(Model):
    """A text template below the config directory."""

    resource: Text
    """Path of the file, relative to the config directory."""

    as_: Text | None = None
    """Another name for it."""

    @model_validator(mode="after")
    def _declare(self, info: ValidationInfo) -> Self:
        """Read and check the file."""
        refusals = Refusals()
        try:
            if info.context is not None:
                info.context.declare(self.resource, self.as_)
        except ConfigError as error:
            refusals.relay(error.problems)
        except OctoError as error:
            refusals.add(error.message, "resource", hint=error.hint)
        refusals.raise_if_any()
        return self


class Resources(Model):
    """Files that belong to the config."""

    env: tuple[Text, ...] = ()
    """Env files, relative to the config directory; a missing one is skipped."""

    templates: tuple[Template, ...] = ()
    """Text templates."""


def _known_block(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and info.context is not None:
        try:
            info.context.block(str(value))
        except OctoError as error:
            refuse(error)
    return value


def _may_be_mended(details: ErrorDetails) -> bool:
    """Whether a block that refers to a processor can still put it right: a missing key, keys that do not fit."""
    return details["type"] == "missing" or bool((details.get("ctx") or {}).get("across"))


def _relay(found: Sequence[ErrorDetails]) -> None:
    if found:
        raise ValidationError.from_exception_data(
            "processor",
            [
                {
                    "type": _again(details),
                    "loc": ("settings", *details["loc"]),
                    "input": details["input"],
                    "ctx": details.get("ctx") or {},
                }
                for details in found
            ],
        )


def _again(details: ErrorDetails) -> PydanticCustomError | str:
    context = details.get("ctx")
    if details["type"] in {"refused", "expression", "echo", "elsewhere"}:
        return PydanticCustomError(details["type"], "{message}" if context else details["msg"], context)
    return details["type"]


class Processor(Model):
    """A named block that flows use by `ref`."""

    name: Text
    """What `ref` names."""

    type: Annotated[Text, BeforeValidator(_known_block)]
    """Block type."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """Base settings; a block that refers to it overrides them key by key."""

    @model_validator(mode="after")
    def _sound(self, info: ValidationInfo) -> Self:
        """What is written must be right; what is missing may come from the blocks that refer to it."""
        if info.context is None or info.context.mocked:
            return self
        info.context.refs.append(self.name)
        try:
            info.context.block(self.type).model_validate(self.settings, context=info.context)
        except ValidationError as error:
            _relay([details for details in error.errors(include_url=False) if not _may_be_mended(details)])
        finally:
            info.context.refs.pop()
        return self


class Flow(Model):
    """A named chain of blocks, with what happens when it fails."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["name"]}, {"required": ["source"]}]})

    name: LooseText | None = None
    """What `invoke`, `flow-ref` and addresses call it; required of a flow without a source."""

    description: LooseText | None = None
    """For readers, and for a model that is given the flow as a tool."""

    source: Source | None = None
    """Where its messages come from under `octo run`; a flow without one is called by its name."""

    process: Chain = ()
    """The blocks that run, in order."""

    error: Chain | None = None
    """Runs on the message of a failed `process`; reads `vars.error`."""

    workers: Int = 0
    """Messages handled at once; 0 or less means the larger of 8 and four times the CPUs."""

    buffer: Int = 0
    """Depth of the input channel; 0 or less means the larger of 64 and `workers`."""

    pool: Int = 0
    """Size of the task pool for fork branches and split elements; 0 or less means 8."""

    place: ClassVar[str] = ""
    """What addresses call it when it has no name."""

    @property
    def title(self) -> str:
        """What error texts and addresses call the flow."""
        return self.name or self.place

    def put_at(self, place: str) -> None:
        """Say where the flow stands."""
        self.__dict__["place"] = place


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a config comes from, and what it was loaded with."""

    path: Path
    """The file or directory, as it was named."""
    root: Path
    """The directory below which its resources lie."""
    environment: Environment
    """The resolved declared variables."""
    environ: Mapping[str, str]
    """The environment that was handed to the load."""
    locate: Callable[[tuple[str | int, ...]], Location]
    """The place in the user's files of a path of keys."""
    templates: Templates
    """The text templates."""
    agents: tuple[DeclaredAgent, ...] = ()
    """The agents that it declares."""
    warnings: tuple[Problem, ...] = ()


class Config(Model):
    """What one file, or all files of one directory, declare."""

    service: Service = Service.model_construct()
    """Identity of the service."""

    env: tuple[EnvVariable, ...] = ()
    """Declared environment variables."""

    resources: Resources = Resources.model_construct()
    """Env files and templates."""

    connectors: tuple[Connector, ...] = ()
    """Named connector instances."""

    store: StoreLimits = StoreLimits.model_construct()
    """How much is kept of what agents remember."""

    ai_pricing: dict[str, Rates] = Field(default_factory=dict)
    """What models cost, by `CONNECTOR:MODEL`; without it octo tells tokens, and money only if the provider does."""

    processors: tuple[Processor, ...] = ()
    """Named reusable blocks."""

    agents: tuple[AgentEntry, ...] = ()
    """Agents that any flow can link: a list of entries with a `name`, or a mapping of names."""

    agent_dirs: tuple[Text, ...] = ()
    """Directories with agent files, `NAME.agent.yaml`; without it `agents` beside the config, if there is one."""

    flows: tuple[Flow, ...] = ()
    """The flows."""

    origin: ClassVar[Origin]

    def put_at(self, origin: Origin) -> None:
        """Say where the config comes from."""
        self.__dict__["origin"] = origin

    @property
    def environment(self) -> Environment:
        return self.origin.environment

    @property
    def environ(self) -> Mapping[str, str]:
        return self.origin.environ

    @property
    def root(self) -> Path:
        return self.origin.root

    @property
    def templates(self) -> Templates:
        return self.origin.templates

    @property
    def declared_agents(self) -> tuple[DeclaredAgent, ...]:
        """The agents under `agents`, and those in files of their own."""
        return self.origin.agents

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return self.origin.warnings

    def flow(self, name: str) -> Flow | None:
        """The flow of that name."""
        return next((flow for flow in self.flows if flow.name == name), None)

    def connector(self, name: str) -> Connector | None:
        """The connector instance of that name."""
        return next((connector for connector in self.connectors if connector.instance == name), None)
