"""Models on Azure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import Field

from octo.connectors.llm import NamedText
from octo.connectors.llm_openai import TokenConnector, Wire
from octo.fields import Text
from octo.llm.credentials import Credentials


class LlmAzureOpenAi(TokenConnector, type="llm-azure-openai"):
    """Models of OpenAI that are deployed on Azure."""

    provider = "azure_openai"

    model: Text = ""
    """Name of the deployment; blocks and agents may name another one. There is no default."""

    base_url: NamedText = Field(alias="baseURL")
    """Address of the resource, such as `https://NAME.openai.azure.com`, or one of a deployment."""

    wire: Wire = "responses"
    """The API that is called: `chat` for Chat Completions; else Responses, and Chat Completions where it is missing."""

    def knows_web_search(self, model: str) -> bool:
        return self.wire != "chat" and super().knows_web_search(model)

    def credentials(self, environ: Mapping[str, str]) -> Credentials:
        return replace(super().credentials(environ), route=self.wire)


class LlmAzureFoundry(TokenConnector, type="llm-azure-foundry"):
    """Models of many vendors that are deployed on Azure AI Foundry.

    Models whose name begins with `claude` are called by Anthropic's Messages API, all others by Chat Completions.
    """

    provider = "azure_foundry"

    model: Text = ""
    """Name of the deployment; blocks and agents may name another one. There is no default."""

    base_url: NamedText = Field(alias="baseURL")
    """Address of the resource, such as `https://NAME.services.ai.azure.com`."""
