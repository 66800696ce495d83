"""Answers of Converse on Amazon Bedrock, decoded."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from octo.errors import ProviderError, Truncated
from octo.llm import conversation, faults
from octo.llm.chat import (
    ChatMessage,
    ChatResponse,
    Delta,
    Part,
    Reasoning,
    StopReason,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolInput,
    ToolReady,
    ToolStart,
    Usage,
)
from octo.llm.wire import BROKE_OFF, Unreadable, count_of, shown, text_of
from octo.values import Json, clean_text

NAME: Final = "bedrock"
"""What this wire writes into the replay data that it makes."""

_STOP_REASONS: Final[dict[str, StopReason]] = {
    "content_filtered": "refusal",
    "guardrail_intervened": "refusal",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "tool_use": "tool_use",
    "malformed_tool_use": "malformed",
    "malformed_model_output": "malformed",
}
_USUAL: Final = frozenset({"end_turn", "stop_sequence", "tool_use", "max_tokens"})
"""Reasons to stop of which there is nothing more to say."""
_STATUSES: Final = {
    "validationexception": 400,
    "accessdeniedexception": 403,
    "resourcenotfoundexception": 404,
    "modeltimeoutexception": 408,
    "modelstreamerrorexception": 424,
    "throttlingexception": 429,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
}
"""The status that the vendor documents for each of its exceptions."""
_EVENTS: Final = frozenset({"contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"})
"""The events that matter; what later versions of the API may add does not."""
_USAGE: Final = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadInputTokens": "cached_tokens",
    "cacheWriteInputTokens": "cache_write_tokens",
}


@dataclass(slots=True)
class _Block:
    """A content block while it comes in. Its text is also the argument text of a call."""

    kind: str
    fragments: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    signature: str = ""
    redacted: list[str] = field(default_factory=list)
    open: bool = True

    def part(self) -> Part | None:
        """What the block is in the answer, if it is anything."""
        match self.kind:
            case "text":
                text = clean_text("".join(self.fragments))
                return Text(text) if text else None
            case "toolUse":
                return self.call()
        replay: dict[str, Json] = {"wire": NAME}
        if self.redacted:
            replay["data"] = _joined(self.redacted)
        elif self.signature:
            replay["signature"] = self.signature
        return Reasoning(clean_text("".join(self.fragments)), replay)

    def call(self) -> ToolCall:
        return ToolCall(self.id, self.name, conversation.canonical("".join(self.fragments)))


class Decoder:
    """Gathers the blocks of one message."""

    def __init__(self) -> None:
        self.complete = False
        self._blocks: dict[int, _Block] = {}
        self.model = ""
        self._stop_reason: str | None = None
        self._usage: dict[str, int] = {}

    @property
    def ended(self) -> bool:
        return self._stop_reason is not None

    @property
    def usage(self) -> Usage | None:
        return _usage(self._usage)

    def feed(self, event: Json) -> list[Delta]:
        match event:
            case {"event": str() as kind, "payload": payload}:
                return self._take(kind, payload)
            case {"exception": str() as kind}:
                raise _failure(kind, event.get("payload"))
            case {"output": {"message": {"content": [*blocks]}}}:
                return [delta for kind, payload in _as_stream(event, blocks) for delta in self._take(kind, payload)]
            case _:
                raise Unreadable(f"expected a message under `output`, found {shown(event)}")

    def finish(self) -> ChatResponse:
        if self._stop_reason is None:
            raise Truncated(BROKE_OFF, retryable=True)
        parts = (block.part() for _, block in sorted(self._blocks.items()))
        return ChatResponse(
            message=ChatMessage("assistant", tuple(part for part in parts if part is not None)),
            stop_reason=_STOP_REASONS.get(self._stop_reason, "end_turn"),
            model=self.model,
            usage=self.usage,
            stop_detail="" if self._stop_reason in _USUAL else clean_text(self._stop_reason),
        )

    # ------------------------------------------------------------ one event

    def _take(self, kind: str, payload: Json) -> list[Delta]:
        if kind not in _EVENTS:
            return []
        if not isinstance(payload, dict):
            raise Unreadable(f"expected the payload of `{kind}` to be a mapping, found {shown(payload)}")
        match kind:
            case "contentBlockStart":
                return self._start(_index(payload), _mapping("start", payload))
            case "contentBlockDelta":
                return self._extend(_index(payload), _mapping("delta", payload))
            case "contentBlockStop":
                return self._stop(_index(payload))
            case "messageStop":
                self._stop_reason = text_of(payload.get("stopReason"))
                return [delta for index in self._blocks for delta in self._stop(index)]
            case "metadata":
                self._count(payload)
                self.complete = self._stop_reason is not None
        return []

    def _start(self, index: int, start: dict[str, Json]) -> list[Delta]:
        match start:
            case {"toolUse": {"type": str()}}:
                pass  # a tool that runs at the vendor's
            case {"toolUse": {"toolUseId": str() as id, "name": str() as name}} if index not in self._blocks:
                call = self._blocks[index] = _Block("toolUse", id=id or f"call_{index}", name=name)
                return [ToolStart(call.id, call.name, index)]
        return []

    def _extend(self, index: int, delta: dict[str, Json]) -> list[Delta]:
        """Add a fragment to its block; blocks of text and reasoning begin with their first one."""
        match delta:
            case {"text": str() as text}:
                return [TextDelta(text, index)] if self._append(index, "text", text) else []
            case {"toolUse": {"input": str() as text}} if index in self._blocks:
                call = self._blocks[index]
                return [ToolInput(text, call.id, call.name, index)] if self._append(index, "toolUse", text) else []
            case {"reasoningContent": {"text": str() as text}}:
                return [ThinkingDelta(text, index)] if self._append(index, "reasoningContent", text) else []
            case {"reasoningContent": {"signature": str() as text}}:
                if block := self._open(index, "reasoningContent"):
                    block.signature += text
            case {"reasoningContent": {"redactedContent": str() as text}}:
                if block := self._open(index, "reasoningContent"):
                    block.redacted.append(text)
        return []

    def _open(self, index: int, kind: str) -> _Block | None:
        """The block that a fragment belongs to; None when another kind of block stands there, or it has ended."""
        block = self._blocks.get(index)
        if block is None and kind != "toolUse":
            block = self._blocks[index] = _Block(kind)
        return block if block is not None and block.kind == kind and block.open else None

    def _append(self, index: int, kind: str, text: str) -> bool:
        """Add a fragment; whether there is anything to tell of it."""
        block = self._open(index, kind)
        if block is not None:
            block.fragments.append(text)
        return block is not None and text != ""

    def _stop(self, index: int) -> list[Delta]:
        block = self._blocks.get(index)
        if block is None or not block.open:
            return []
        block.open = False
        return [ToolReady(block.call())] if block.kind == "toolUse" else []

    def _count(self, metadata: dict[str, Json]) -> None:
        usage: Json = metadata.get("usage")
        for theirs, ours in _USAGE.items() if isinstance(usage, dict) else ():
            number = count_of(usage.get(theirs))
            if number is not None:
                self._usage[ours] = number
        match metadata.get("trace"):
            case {"promptRouter": {"invokedModelId": str() as model}}:
                self.model = model


def _as_stream(answer: dict[str, Json], blocks: Sequence[Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """The events that an answer would have come in, had it been streamed."""
    for index, block in enumerate(blocks):
        place = {"contentBlockIndex": index}
        if not isinstance(block, dict):
            raise Unreadable(f"expected a block in `content` to be a mapping, found {shown(block)}")
        match block:
            case {"toolUse": {} as call}:
                yield "contentBlockStart", {"start": {"toolUse": call}, **place}
                fragments = [{"toolUse": {"input": _compact(call.get("input"))}}]
            case {"reasoningContent": {"reasoningText": {} as reasoning}}:
                fragments = [{"reasoningContent": {name: reasoning.get(name)}} for name in ("text", "signature")]
            case _:
                fragments = [block]
        for fragment in fragments:
            yield "contentBlockDelta", {"delta": fragment, **place}
        yield "contentBlockStop", place
    yield "messageStop", answer
    yield "metadata", answer


def _failure(kind: str, payload: Json) -> ProviderError:
    told = payload if isinstance(payload, dict) else {}
    message = told.get("message") or told.get("Message") or told.get("originalMessage")
    error: dict[str, Json] = {"type": kind, "message": message}
    status = _STATUSES.get(kind.lower())
    if status is not None:
        error["code"] = status
    # A model that breaks off half-way is asked again, although the status alone does not say so.
    return faults.from_event(error, retryable=True if status == 424 else None)


def _usage(known: dict[str, int]) -> Usage | None:
    if not any(known.values()):
        return None
    read = [known[name] for name in ("input_tokens", "cached_tokens", "cache_write_tokens") if name in known]
    return Usage(**known, prompt_tokens=sum(read) if read else None)


def _joined(fragments: Sequence[str]) -> str:
    """Redacted reasoning, of which each fragment is base64 of its own."""
    if len(fragments) == 1:
        return fragments[0]
    try:
        return b64encode(b"".join(map(b64decode, fragments))).decode("ascii")
    except ValueError:
        return "".join(fragments)


def _compact(value: Json) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _index(payload: dict[str, Json]) -> int:
    index = payload.get("contentBlockIndex", 0)
    if type(index) is not int:
        raise Unreadable(f"expected a whole number as `contentBlockIndex`, found {shown(index)}")
    return index


def _mapping(name: str, payload: dict[str, Json]) -> dict[str, Json]:
    value = payload.get(name)
    if not isinstance(value, dict):
        raise Unreadable(f"expected `{name}` to be a mapping, found {shown(value)}")
    return value
