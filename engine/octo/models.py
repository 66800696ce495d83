"""Which models can be called: the providers that octo knows, and the connectors of a config, each by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from octo import registry
from octo.config import merge
from octo.config.document import Document
from octo.config.load import build
from octo.config.model import Config
from octo.config.pricing import cost
from octo.connectors.llm import LlmConnector
from octo.errors import ConfigError, OctoError, missing_extra
from octo.llm.chat import ChatModel, ChatRequest, ChatResponse, user
from octo.llm.credentials import Credentials
from octo.llm.providers import PROVIDERS
from octo.runtime import Runtime
from octo.values import Json, dumps

QUESTION: Final = ChatRequest((user("Answer with the one word: ok"),))
"""What a check asks a model. Its cap is the connector's: a model that thinks would spend a small one on that alone."""

NO_KEY: Final = "`apiKey`"
"""Where a key comes from that was written into no setting, or into the config itself."""
_SHARED: Final = ("service", "env", "resources")
"""Sections of a config that a connector may need."""


# ---------------------------------------------------------------- providers


@dataclass(frozen=True, slots=True)
class Known:
    """A type of connector to models."""

    type: str
    api: str
    model: str
    """The model that is called when none is named; empty when one must be."""
    reads: tuple[str, ...] | None
    """MIME types of files, in order; None is every type."""
    gives: tuple[str, ...]
    missing: str | None = None
    """How to install what it needs, where that is not there."""


def known() -> list[Known]:
    """All types of connectors to models, in alphabetical order."""
    names = (name for name in registry.offered("connectors") if name.startswith("llm-"))
    return [_known(name, registry.connector(name)) for name in names]


def _known(name: str, connector: type[object]) -> Known:
    if not issubclass(connector, LlmConnector):
        return Known(name, "none: replies are written down", "scripted", None, ("text", "images", "vectors"))
    row = PROVIDERS[connector.provider]
    gives = ["text", *(["images"] if row.draws else []), *(["vectors"] if row.embedder else [])]
    return Known(
        name,
        row.api,
        connector.model_fields["model"].default or "",
        None if row.media_types is None else tuple(sorted(row.media_types)),
        tuple(gives),
        missing_extra(*row.extra) if row.extra else None,
    )


# ---------------------------------------------------------------- connectors of a config


@dataclass(frozen=True, slots=True)
class Configured:
    """A connector to a model as a config has it; without `config` it cannot be used, and `problems` say why."""

    name: str
    type: str
    model: str = ""
    key: str = ""
    """Where its key comes from."""
    fallback: tuple[str, ...] = ()
    problems: tuple[tuple[str, str | None], ...] = ()
    """What is wrong, each with a hint."""
    config: Config | None = None
    """A config of this connector alone."""


def configured(path: Path, environ: Mapping[str, str]) -> list[Configured]:
    """The connectors of a config that lead to models, each judged by itself.

    Raises ConfigError for a file that cannot be read as a config at all.
    """
    documents = merge.read(path)
    return [
        _configured(path, environ, documents, entry)
        for document in documents
        for entry in _entries(document)
        if str(entry.get("type", "")).startswith("llm-") and entry.get("name")
    ]


def _entries(document: Document) -> list[dict[str, Json]]:
    found = document.data.get("connectors")
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _configured(
    path: Path, environ: Mapping[str, str], documents: Sequence[Document], entry: dict[str, Json]
) -> Configured:
    name, type, fallback = str(entry["name"]), str(entry["type"]), _names(entry)
    try:
        config = build([_alone(document, entry) for document in documents], path, environ=environ)
        connector = config.connectors[0]
        model, key = getattr(connector, "model", ""), ""
        if isinstance(connector, LlmConnector):
            endpoint = connector.endpoint(config.environ)
            model, key = endpoint.model, _key(endpoint.credentials)
    except ConfigError as error:
        faults = [(problem.message, problem.hint) for problem in error.problems if problem.severity == "error"]
        return Configured(name, type, fallback=fallback, problems=tuple(faults))
    except OctoError as error:
        return Configured(name, type, fallback=fallback, problems=((error.message, error.hint),))
    return Configured(name, type, model, key, fallback, config=config)


def _key(credentials: Credentials) -> str:
    """Where the key comes from; empty when there is none."""
    return credentials.key_source if credentials.api_key or credentials.key_source != NO_KEY else ""


def _alone(document: Document, entry: dict[str, Json]) -> Document:
    """A document of one connector, without what would ask for others."""
    kept = {key: document.data[key] for key in _SHARED if key in document.data}
    if isinstance(kept.get("env"), list):
        kept["env"] = _variables(kept["env"], entry)
    rates = document.data.get("aiPricing")
    if isinstance(rates, dict):
        kept["aiPricing"] = {key: value for key, value in rates.items() if str(key).startswith(f"{entry['name']}:")}
    if any(entry is one for one in _entries(document)):
        settings = entry.get("settings")
        if isinstance(settings, dict):
            entry = {**entry, "settings": {key: value for key, value in settings.items() if key != "fallback"}}
        kept["connectors"] = [entry]
    return document.with_data(kept)


def _variables(declared: list[Json], entry: dict[str, Json]) -> list[Json]:
    """The declarations of what a connector uses; those of others are not asked whether a value is missing."""
    written = dumps(entry)
    return [
        {**one, "required": False} if isinstance(one, dict) and f"${{{one.get('name')}}}" not in written else one
        for one in declared
    ]


def _names(entry: dict[str, Json]) -> tuple[str, ...]:
    settings = entry.get("settings")
    fallback = settings.get("fallback") if isinstance(settings, dict) else None
    return (fallback,) if isinstance(fallback, str) else tuple(map(str, fallback or ()))


# ---------------------------------------------------------------- one tiny call


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of calling a connector once."""

    connector: Configured
    seconds: float = 0
    answer: ChatResponse | None = None
    cost: float | None = None
    error: str = ""
    hint: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the model answered, and with more than nothing."""
        return self.answer is not None and bool(self.answer.text.strip())

    @property
    def fault(self) -> str:
        """Why it is not ok; empty when it is."""
        if self.answer is None or self.ok:
            return self.error
        return f"no text ({self.answer.stop_detail or self.answer.stop_reason})"


async def check(connectors: list[Configured]) -> list[Checked]:
    """Call the model of each connector once, all at the same time. Failures are told, not raised."""
    return list(await asyncio.gather(*map(_checked, connectors)))


async def _checked(connector: Configured) -> Checked:
    if connector.config is None:
        (message, hint), *_ = connector.problems
        return Checked(connector, error=message, hint=hint)
    started = time.perf_counter()
    try:
        async with Runtime(connector.config) as runtime:
            model = runtime.live(connector.name, ChatModel)  # type: ignore[type-abstract]  # never instantiated
            answer = await model.complete(QUESTION, session={})
    except OctoError as error:
        return Checked(connector, time.perf_counter() - started, error=error.message, hint=error.hint)
    seconds = time.perf_counter() - started
    return Checked(connector, seconds, answer, cost(connector.config.ai_pricing, answer))
