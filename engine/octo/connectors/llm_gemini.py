"""Models of Google."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from octo.connectors.llm import NamedText, VertexConnector
from octo.fields import Int, Text, one_of
from octo.llm.schemas import GeminiForm, Weakening
from octo.llm.wire import Endpoint
from octo.refusals import Refusals
from octo.values import Json


class LlmGemini(VertexConnector, type="llm-gemini"):
    """Gemini models through Google's Gemini API, or on Vertex AI."""

    provider = "googleai"
    publisher = "google"

    model: Text = "gemini-3.5-flash"
    """Model id, passed on as it is; blocks and agents may name another one."""

    base_url: NamedText = Field("", alias="baseURL")
    """Address of the API, with or without `/models`. Without it `GOOGLE_GEMINI_BASE_URL` counts, then Google's own.

    On Vertex AI it is required, and ends in `/publishers/google/models`.
    """

    thinking: Annotated[Literal["off", "dynamic", "budgeted"], one_of("off", "dynamic", "budgeted")] = "off"
    """Whether the model's thoughts come back: thinking as much as it finds right, or within `thinkingBudget`.

    `off` leaves thinking to the model, and its thoughts there.
    """

    thinking_budget: Int | None = None
    """Tokens for thinking when it is `budgeted`: more than 0."""

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        if self.thinking == "budgeted" and self.thinking_budget is None:
            refusals.add("`thinking: budgeted` requires `thinkingBudget`", "thinking")
        elif self.thinking == "budgeted" and self.thinking_budget is not None and self.thinking_budget <= 0:
            refusals.add(f"expected more than 0, found {self.thinking_budget}", "thinkingBudget")

    def endpoint(self, environ: Mapping[str, str]) -> Endpoint:
        return replace(
            super().endpoint(environ),
            thinking="adaptive" if self.thinking == "dynamic" else self.thinking,
            thinking_budget=self.thinking_budget,
        )

    def weakened(self, schema: Json) -> list[Weakening]:
        """What the schema of a tool says that the API cannot be told."""
        form = GeminiForm(schema)
        form.of_arguments()
        return form.weakened
