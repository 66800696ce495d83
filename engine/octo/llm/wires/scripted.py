"""A model whose replies are written down: for samples, tests and offline work. It makes no network call."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from octo.errors import ExpressionError, ProviderError
from octo.llm import embedding, facts
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Delta,
    File,
    OnDelta,
    Part,
    Reasoning,
    Search,
    Spent,
    StopReason,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolInput,
    ToolReady,
    ToolResult,
    ToolStart,
    Usage,
)
from octo.llm.embedding import Embedded, EmbedRequest, Vector
from octo.values import Json, dumps, kind_of, parse

NAME: Final = "scripted"
"""What error texts and replay data call this provider."""

WHEN_NAMES: Final = frozenset({"system", "messages", "last", "tools", "call"})
"""What the condition of a rule sees."""

_LENGTH: Final = 8
"""Of a vector, when the request does not say."""
_SHOWN: Final = 500
"""The most characters of a message that an error shows."""


# ---------------------------------------------------------------- the script


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a reply. Without an id it is numbered over the run."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """The way in which a call fails: like an HTTP answer of that status, without one like a lost connection."""

    message: str
    status: int | None = None
    retry_after: float | None = None
    """Seconds."""
    after_text: str = ""
    """What a streamed call shows before it breaks."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model. Without a usage it is estimated; an empty one is a provider that reports none."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    files: tuple[File, ...] = ()
    stop: StopReason | None = None
    usage: Usage | None = None
    delay: float = 0
    """Seconds before the reply."""
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A reply for every request on which a condition holds. The condition raises ExpressionError."""

    when: Callable[[Mapping[str, object]], Json]
    reply: Reply


class UsedUp(ProviderError):
    """The call for which no reply is written. `call` counts from 1, `asked` is the final message of the request."""

    def __init__(self, call: int, asked: str) -> None:
        made = "1 call was made" if call == 2 else f"{call - 1} calls were made"
        super().__init__(
            f"no scripted reply is left: {made} before this one, whose final message is {asked}",
            hint="add a reply to `turns`, or set `onExhausted: repeat`",
        )
        self.call = call
        self.asked = asked


@dataclass(slots=True)
class _Progress:
    """How far one run has come in the script."""

    calls: int = 0
    turns: int = 0
    tool_calls: int = 0


# ---------------------------------------------------------------- the model


class ScriptedModel:
    """Answers by the first rule that holds, else by the next turn; each run begins at the first turn.

    A scripted failure is what is left after a real provider's retries: the call fails at once, and the error is
    of the kind, and marked as retryable, as the same HTTP answer would be.
    """

    def __init__(
        self,
        turns: Sequence[Reply] = (),
        rules: Sequence[Rule] = (),
        *,
        model: str = NAME,
        on_exhausted: Literal["error", "repeat"] = "error",
        chunk_size: int = 8,
        instance: str = "",
    ) -> None:
        self._turns = tuple(turns)
        self._rules = tuple(rules)
        self.model = model
        """What it says that it is."""
        self._repeats = on_exhausted == "repeat"
        self._chunk_size = chunk_size
        self._instance = instance

    @property
    def media_types(self) -> frozenset[str] | None:
        """It reads every type."""
        return None

    def answers_by_tool(self, model: str, *, with_tools: bool) -> bool:
        return facts.answers_by_tool(model or self.model, with_tools=with_tools)

    async def complete(
        self,
        request: ChatRequest,
        *,
        session: MutableMapping[object, Any],
        on_delta: OnDelta | None = None,
    ) -> ChatResponse:
        progress: _Progress = session.setdefault(self, _Progress())
        try:
            reply = self._next(request, progress)
            response = self._response(request, reply, progress)
            if reply.delay:
                await asyncio.sleep(reply.delay)
            if on_delta is not None:
                for delta in self._deltas(response, reply):
                    await on_delta(delta)
            if reply.error is not None:
                error = _error(reply.error, streamed=on_delta is not None)
                if reply.usage is not None and response.usage is not None:
                    error.spent = (Spent(self._instance, response.asked, response.usage),)
                raise error
        except ProviderError as error:
            from octo.llm import faults  # here and below, for few scripts fail

            error.provider = NAME
            faults.sign(error, "llm-scripted", self._instance, way="complete" if on_delta is None else "stream")
            raise
        return response

    @property
    def embeds(self) -> bool:
        return True

    async def embed(self, request: EmbedRequest) -> Embedded:
        """Vectors that follow from the texts alone."""
        embedding.check(request)
        length = request.dimensions if request.dimensions > 0 else _LENGTH
        vectors = tuple(_vector(text, length) for text in request.texts)
        read = _tokens(*request.texts)
        return Embedded(vectors, Usage(input_tokens=read, prompt_tokens=read))

    # ------------------------------------------------------------ which reply

    def _next(self, request: ChatRequest, progress: _Progress) -> Reply:
        progress.calls += 1
        if self._rules:
            view = _view(request, progress.calls)
            for number, rule in enumerate(self._rules):
                if _holds(rule, number, view):
                    return rule.reply
        if progress.turns < len(self._turns):
            progress.turns += 1
            return self._turns[progress.turns - 1]
        if self._repeats and self._turns:
            return self._turns[-1]
        raise _used_up(request, progress.calls - 1)

    # ------------------------------------------------------------ its answer

    def _response(self, request: ChatRequest, reply: Reply, progress: _Progress) -> ChatResponse:
        parts: list[Part] = []
        if reply.thinking:
            parts.append(Reasoning(reply.thinking, {"wire": NAME}))
        if reply.text:
            parts.append(Text(reply.text))
        for call in reply.calls:
            progress.tool_calls += 1
            parts.append(ToolCall(call.id or f"call_{progress.tool_calls}", call.name, call.arguments))
        usage = _estimate(request, reply) if reply.usage is None else _reported(reply.usage)
        return ChatResponse(
            ChatMessage("assistant", (*parts, *reply.files)),
            reply.stop or ("tool_use" if reply.calls else "end_turn"),
            request.model or self.model,
            usage,
            asked=request.model or self.model,
            connector=self._instance,
        )

    def _deltas(self, response: ChatResponse, reply: Reply) -> Iterator[Delta]:
        for text in self._fragments(reply.thinking):
            yield ThinkingDelta(text)
        for text in self._fragments(reply.error.after_text if reply.error else reply.text):
            yield TextDelta(text)
        for index, call in enumerate(response.calls):
            yield ToolStart(call.id, call.name, index)
            for text in self._fragments(call.arguments):
                yield ToolInput(text, call.id, call.name, index)
            yield ToolReady(call)

    def _fragments(self, text: str) -> Iterator[str]:
        for start in range(0, len(text), self._chunk_size):
            yield text[start : start + self._chunk_size]


# ---------------------------------------------------------------- rules


def _holds(rule: Rule, number: int, view: Mapping[str, object]) -> bool:
    try:
        value = rule.when(view)
    except ExpressionError as error:
        raise ProviderError(f"rules[{number}].when: evaluate expression: {error.message}") from error
    if type(value) is not bool:
        raise ProviderError(f"rules[{number}].when must evaluate to a bool, got {kind_of(value)}")
    return value


def _view(request: ChatRequest, call: int) -> dict[str, object]:
    messages = [_shown(message) for message in request.messages]
    return {
        "system": request.system,
        "messages": messages,
        "last": messages[-1] if messages else None,
        "tools": [tool.name for tool in request.tools],
        "call": call,
    }


def _shown(message: ChatMessage) -> dict[str, Json]:
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    return {
        "role": message.role,
        "text": message.text,
        "calls": [{"name": call.name, "args": _decoded(call.arguments), "id": call.id} for call in message.calls],
        "results": [
            {"name": result.name, "id": result.call_id, "text": result.text, "isError": result.is_error}
            for result in results
        ],
        "files": [{"mimeType": file.mime_type, "name": file.name} for file in message.files],
    }


def _decoded(arguments: str) -> Json:
    """The arguments as a value; as text when they are not JSON."""
    try:
        return parse(arguments)
    except ValueError:
        return arguments


# ---------------------------------------------------------------- vectors


def _vector(text: str, length: int) -> Vector:
    """A unit vector that is made of nothing but the text."""
    from hashlib import shake_256

    digest = shake_256(text.encode(errors="replace")).digest(4 * length)
    numbers = [int.from_bytes(digest[4 * place : 4 * place + 4], "big") / 2**31 - 1 for place in range(length)]
    size = math.hypot(*numbers) or 1.0
    return embedding.narrowed(number / size for number in numbers)


# ---------------------------------------------------------------- usage


def _estimate(request: ChatRequest, reply: Reply) -> Usage:
    read = [request.system, *(_text_of(part) for message in request.messages for part in message.parts)]
    written = [reply.text, reply.thinking, *(call.arguments for call in reply.calls)]
    return Usage(
        input_tokens=_tokens(*read),
        output_tokens=_tokens(*written),
        thinking_tokens=_tokens(reply.thinking) if reply.thinking else None,
        prompt_tokens=_tokens(*read),
    )


def _text_of(part: Part) -> str:
    match part:
        case ToolCall():
            return part.arguments
        case File() | Search():
            return ""
    return part.text


def _tokens(*texts: str) -> int:
    """Four characters make a token, roughly."""
    return -(-sum(len(text) for text in texts) // 4)


def _reported(usage: Usage) -> Usage | None:
    """A usage as written; what was read is the input when nothing else is said, and only zeros are no usage."""
    if not any(getattr(usage, name) for name in Usage.__slots__):
        return None
    return replace(usage, prompt_tokens=usage.input_tokens) if usage.prompt_tokens is None else usage


# ---------------------------------------------------------------- failures


def _error(failure: Failure, *, streamed: bool) -> ProviderError:
    from octo.llm import faults

    if failure.status is None:
        return ProviderError(failure.message, retryable=True)
    if streamed and failure.after_text:
        return faults.from_event({"code": failure.status, "message": failure.message})
    wait = failure.retry_after
    headers = {} if wait is None else {"retry-after": f"{wait:g}"}
    body = json.dumps({"error": {"message": failure.message}})
    return faults.from_answer(failure.status, headers, body.encode())


def _used_up(request: ChatRequest, calls: int) -> UsedUp:
    final = {key: value for key, value in _shown(request.messages[-1]).items() if value} if request.messages else {}
    shown = dumps(final)
    return UsedUp(calls + 1, shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…")
