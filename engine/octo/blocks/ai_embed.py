"""Ask a model for vectors of texts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pydantic import field_validator

from octo import budget
from octo.block import Block, Finding
from octo.chat_connector import ChatConnector
from octo.config.pricing import cost_of
from octo.errors import OctoError, ProviderError
from octo.fields import Expression, Int, LlmName, Name, Text
from octo.llm.chat import ChatModel
from octo.llm.embedding import EmbedRequest
from octo.llm.providers import PROVIDERS
from octo.observe import TextsEmbedded
from octo.refusals import refusal
from octo.values import Json, clean_text, kind_of

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.llm.embedding import Embedded
    from octo.message import Message
    from octo.run import Run

_RESULT: Final = "embedding"
_MOST_DIMENSIONS: Final = 100_000
_EMBEDDERS: Final = sorted({row.connector for row in PROVIDERS.values() if row.embedder} | {"llm-scripted"})
"""The types of connectors that have embeddings."""


class AiEmbed(Block, type="ai-embed", group="ai"):
    """Ask a model for the vector of a text, or for those of several texts in one call."""

    connector: LlmName
    """Name of a configured connector of an `llm-*` type that has embeddings."""

    text: Expression
    """The text, or a list of texts."""

    model: Name
    """Id of the embedding model; that of the connector does not count."""

    dimensions: Int = 0
    """Length of the vectors; 0 leaves it to the model."""

    result_var: Text = _RESULT
    """Variable that receives the vector, a list of numbers; for a list of texts, the list of their vectors."""

    @field_validator("dimensions")
    @classmethod
    def _is_a_length(cls, dimensions: int) -> int:
        if dimensions < 0:
            raise refusal(f"ai-embed: `dimensions` is at least 0, found {dimensions}", "0 leaves it to the model")
        if dimensions > _MOST_DIMENSIONS:
            raise refusal(f"ai-embed: `dimensions` is at most {_MOST_DIMENSIONS}, found {dimensions}")
        return dimensions

    def check(self, config: Config) -> Iterator[Finding]:
        connector = config.connector(self.connector)
        if isinstance(connector, ChatConnector) and not connector.embeds:
            yield Finding(
                f'ai-embed: connector "{self.connector}" is a `{connector.type}`, which has no embeddings',
                ("connector",),
                f"these have: {', '.join(f'`{name}`' for name in _EMBEDDERS)}",
            )

    async def execute(self, message: Message, run: Run) -> Message:
        value = run.evaluate(self.text, message, "ai-embed: text")
        request = EmbedRequest(_texts(value), self.model.strip(), self.dimensions)
        embedded = await self._embedded(request, message, run)
        vectors = [list(vector) for vector in embedded.vectors]
        message.vars[self.result_var.strip() or _RESULT] = vectors if isinstance(value, list) else vectors[0]
        return message

    async def _embedded(self, request: EmbedRequest, message: Message, run: Run) -> Embedded:
        """The vectors, told and charged. Raises OctoError."""
        model = run.connector(self.connector, ChatModel)  # type: ignore[type-abstract]  # never instantiated
        with budget.opened(None) as budgets:
            if excess := budget.excess(budgets):
                raise OctoError(f"ai-embed: {budget.EXCEEDED}", hint=excess)
            started = time.perf_counter()
            try:
                embedded = self._priced(await model.embed(request), run)
            except ProviderError as error:
                self._tell(request, message, run, time.perf_counter() - started, error=error)
                raise OctoError(f"ai-embed: {error.message}", hint=error.hint) from error
            self._tell(request, message, run, time.perf_counter() - started, embedded)
            if embedded.usage is not None:
                for one in budgets:
                    one.charge(embedded.usage)
        got, asked = len(embedded.vectors), len(request.texts)
        if got != asked:
            raise OctoError(f"ai-embed: the provider returned {got} vectors for {asked} texts")
        return embedded

    def _priced(self, embedded: Embedded, run: Run) -> Embedded:
        """The vectors with what they cost. Nothing is written, so that follows from what was read."""
        if embedded.usage is None:
            return embedded
        usage = replace(embedded.usage, output_tokens=0)
        cost = cost_of(usage, run.runtime.config.ai_pricing, self.connector, self.model.strip())
        return replace(embedded, usage=replace(usage, cost_usd=cost))

    def _tell(
        self,
        request: EmbedRequest,
        message: Message,
        run: Run,
        seconds: float,
        embedded: Embedded | None = None,
        error: OctoError | None = None,
    ) -> None:
        if run.listens(TextsEmbedded):
            run.emit(
                TextsEmbedded(
                    self.address,
                    message.event_id,
                    seconds,
                    self.connector,
                    request.model,
                    texts=len(request.texts),
                    dimensions=len(embedded.vectors[0]) if embedded and embedded.vectors else 0,
                    usage=embedded.usage if embedded else None,
                    error=error,
                )
            )


def _texts(value: Json) -> tuple[str, ...]:
    """The texts that a value holds. Raises OctoError."""
    match value:
        case "":
            raise OctoError("ai-embed: `text` is empty")
        case str():
            return (clean_text(value),)
        case []:
            raise OctoError("ai-embed: `text` is an empty list")
        case list():
            for index, item in enumerate(value):
                if not isinstance(item, str):
                    raise OctoError(f"ai-embed: entry {index} of `text` must be text, got {kind_of(item)}")
            return tuple(map(clean_text, value))
    raise OctoError(f"ai-embed: `text` must be text or a list of texts, got {kind_of(value)}")
