"""The proxy of a config, serving in the event loop of a test; and a double of a vendor behind each wire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from octo import server
from octo.llm.chat import ChatModel
from octo.proxy.access import Entry
from octo.proxy.app import proxy_app
from octo.proxy.gateway import Doors, Gateway, Reached
from octo.proxy.guard import Guard
from octo.testing.harness import runtime
from vendor import anthropic, bedrock, chat, gemini
from vendor.doubles import DOUBLES, Said
from vendor.faults import Fault
from vendor.scripted import ScriptedServer

Json = Any


@dataclass
class Proxy:
    url: str
    log: list[Entry]
    doors: Doors


@asynccontextmanager
async def proxy(
    yaml: str,
    *,
    guard: Guard | None = None,
    default: str = "",
    cors: Iterable[str] = (),
    keep_alive: float = 15,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Proxy]:
    """Serve the models of a config."""
    log: list[Entry] = []
    async with AsyncExitStack() as stack:
        doors = Doors(await stack.enter_async_context(gateway(yaml, default, environ)))
        app = proxy_app(doors, guard or Guard(), log.append, cors=cors, keep_alive=keep_alive)
        port = await stack.enter_async_context(server.serving(app, "127.0.0.1:0"))
        yield Proxy(f"http://127.0.0.1:{port}", log, doors)


@asynccontextmanager
async def gateway(yaml: str, default: str = "", environ: Mapping[str, str] | None = None) -> AsyncIterator[Gateway]:
    async with runtime(yaml, environ=environ) as live:
        yield Gateway(
            {
                one.instance: Reached(one.instance, one.type, live.live(one.instance, ChatModel))  # type: ignore[type-abstract]  # never instantiated
                for one in live.config.connectors
            },
            default,
            live.config.ai_pricing,
        )


@dataclass(frozen=True)
class Upstream:
    """A vendor: its double, how replies are written for it, and the settings of a connector that calls it."""

    name: str
    type: str
    model: str
    server: Callable[..., ScriptedServer[Any]]
    reply: Callable[..., Any]
    call: Callable[..., Any]
    error: Callable[..., Any]
    error_event: Callable[..., Fault]
    double: str
    """The name of the same wire among the doubles."""
    settings: str = ""
    path: str = ""
    by_tool: bool = False
    """Whether an answer of a certain form comes as the arguments of a tool."""

    def yaml(self, url: str, name: str = "models") -> str:
        settings = f"baseURL: '{url}{self.path}', apiKey: secret-key, model: {self.model}{self.settings}"
        return f"connectors:\n  - name: {name}\n    type: {self.type}\n    settings: {{ {settings} }}\n"

    def thinks(self, text: str, thinking: str) -> Any:
        return self.says(Said(text, thinking=thinking))

    def says(self, said: Said, *faults: Fault) -> Any:
        """The reply that says this, with what goes wrong on its way."""
        (say,) = (double.say for double in DOUBLES if double.name == self.double)
        return replace(say(said), faults=faults)

    def forms(self, value: Json, *faults: Fault) -> Any:
        """The reply whose answer has the form that was asked for."""
        said = Said(calls=(("structured_output", value),)) if self.by_tool else Said(json.dumps(value))
        return self.says(said, *faults)


UPSTREAMS: Sequence[Upstream] = (
    Upstream(
        "chat",
        "llm-custom",
        "m",
        chat.ChatServer,
        chat.reply,
        chat.call,
        chat.error,
        chat.error_event,
        "Chat Completions",
        path="/v1",
    ),
    Upstream(
        "anthropic",
        "llm-anthropic",
        "claude-sonnet-4-5",
        anthropic.AnthropicServer,
        anthropic.reply,
        anthropic.call,
        anthropic.error,
        anthropic.error_event,
        "Anthropic Messages",
        by_tool=True,
    ),
    Upstream(
        "gemini",
        "llm-gemini",
        "gemini-3.5-flash",
        gemini.GeminiServer,
        gemini.reply,
        gemini.call,
        gemini.error,
        gemini.error_event,
        "Gemini",
        path="/v1beta",
    ),
    Upstream(
        "bedrock",
        "llm-bedrock",
        "anthropic.claude-sonnet-4-5-v1",
        bedrock.BedrockServer,
        anthropic.reply,
        anthropic.call,
        bedrock.error,
        lambda after=0: bedrock.exception_after(after),
        "Bedrock Converse",
        settings=", region: us-east-1",
        by_tool=True,
    ),
)
