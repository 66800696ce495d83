"""A chat model that answers from a list and keeps what it was asked, and one flow with one agent that uses it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent, indent
from typing import Any, TypeVar

from octo.errors import ConfigError
from octo.llm.chat import ChatMessage, ChatRequest, ChatResponse, File, Reasoning, Text, ToolCall, Usage
from octo.message import Message
from octo.observe import Event, LogLine, Observer
from octo.runtime import Runtime
from octo.testing import harness

T = TypeVar("T")

TOOL = """
tools:
  - name: t
    description: A tool.
    process:
      - type: set-payload
        settings: {value: '{"done": body}'}
"""
"""The one tool of most agents here: it wraps its arguments."""


def call(name: str, arguments: Any = None, id: str | None = None) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    return ToolCall(id or f"call_{name}", name, text)


def reply(
    text: str = "",
    *calls: ToolCall,
    stop: Any = None,
    files: Iterable[File] = (),
    thinking: str = "",
    usage: Usage | None = None,
) -> ChatResponse:
    parts = (
        *([Reasoning(thinking)] if thinking else []),
        *([Text(text)] if text else []),
        *calls,
        *files,
    )
    return ChatResponse(ChatMessage("assistant", parts), stop or ("tool_use" if calls else "end_turn"), "fake", usage)


class FakeModel:
    """Answers with its replies in turn; a reply that is an error is raised."""

    media_types = None
    embeds = False

    def __init__(self, replies: Sequence[ChatResponse | Exception]) -> None:
        self.replies = list(replies)
        self.requests: list[ChatRequest] = []

    def answers_by_tool(self, model: str, *, with_tools: bool) -> bool:
        return "claude" in model

    async def complete(self, request: ChatRequest, *, session: Any, on_delta: Any = None) -> ChatResponse:
        self.requests.append(request)
        answer = self.replies.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class FakeRuntime(Runtime):
    """A runtime in which every connector is the fake model."""

    model: FakeModel

    def live(self, name: str, kind: type[T]) -> T:
        return self.model  # type: ignore[return-value]  # what the agent asks for


class Listener:
    """Keeps the events of some kinds."""

    def __init__(self, *kinds: type[Event]) -> None:
        self.kinds = kinds
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)


@dataclass
class Ran:
    """A run that is over: the message that came out, what the model was asked, and the process log."""

    message: Message
    requests: list[ChatRequest]
    log: list[str]

    @property
    def results(self) -> list[tuple[str, bool]]:
        """The text and the error flag of each tool result that the model was given, in order."""
        return [
            (part.text, part.is_error)
            for turn in self.requests[-1].messages
            if turn.role == "tool"
            for part in turn.parts
        ]


def config_text(keys: str) -> str:
    """A config with the flow `f` and its agent `ag`."""
    keys = dedent(keys)
    prompt = "" if "\nprompt:" in keys else "prompt: Do it.\n"
    block = f"type: ai-agent\nname: ag\nconnector: m\n{prompt}{keys}"
    blocks = indent(block.strip("\n"), "        ").replace("        ", "      - ", 1)
    return (
        dedent(
            """
        connectors:
          - name: m
            type: llm-scripted
            settings: {turns: [{text: x}]}
        flows:
          - name: f
            process:
        """
        )
        + blocks
    )


async def run(
    keys: str,
    *replies: ChatResponse | Exception,
    body: Any = None,
    vars: Mapping[str, Any] | None = None,
    observers: Sequence[Observer] = (),
    files: Mapping[str, str] | None = None,
    templates: Mapping[str, str] | None = None,
    error: str = "",
) -> Ran:
    """Run the one flow of a config with one agent; `error` is an expression of its recovery chain.

    `templates` are files as well, which the config declares.
    """
    log = Listener(LogLine)
    model = FakeModel(replies)
    recovery = f"    error: [{{type: set-payload, settings: {{value: {error}}}}}]\n" if error else ""
    declared = "".join(f"\n    - {{resource: {name}}}" for name in templates or ())
    resources = f"resources:\n  templates:{declared}\n" if declared else ""
    text = f"{config_text(keys)}\n{recovery}{resources}"
    config = harness.config(text, files={**(files or {}), **(templates or {})})
    runtime = FakeRuntime(config, observers=[log, *observers])
    runtime.model = model
    async with runtime:
        message = await runtime.invoke("f", body, vars=dict(vars or {}))
    assert model.replies == []
    return Ran(message, model.requests, [event.text for event in log.events if event.level != "debug"])  # type: ignore[attr-defined]  # only log lines


def problems(keys: str, files: Mapping[str, str] | None = None) -> list[tuple[str, str | None]]:
    """What is wrong with an agent that has these keys, warnings included: messages, and what to do."""
    try:
        found = list(harness.config(config_text(keys), files=files).warnings)
    except ConfigError as error:
        found = list(error.problems)
    return [(problem.message, problem.hint) for problem in found]
