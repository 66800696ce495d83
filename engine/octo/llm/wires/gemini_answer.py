"""Answers of `generateContent`, decoded."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from octo.errors import Truncated
from octo.llm import faults, media
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Citation,
    Delta,
    File,
    Part,
    Reasoning,
    Search,
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
from octo.llm.framing import DONE
from octo.llm.wire import BROKE_OFF, Unreadable, count_of, shown, text_of
from octo.values import Json, clean_text

NAME: Final = "gemini"
"""What this wire writes into the replay data that it makes."""

_UNSPECIFIED: Final = frozenset(
    {"", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"}
)
_REFUSALS: Final = frozenset(
    {
        "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
        "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
    }
)  # fmt: skip
_USUAL: Final = frozenset({"STOP", "MAX_TOKENS"})
"""Reasons to end of which there is nothing more to say."""
_MALFORMED: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"})


@dataclass(slots=True)
class _Run:
    """A text or a thought while it comes in: it ends with its signature, or where something else begins."""

    thought: bool
    index: int
    fragments: list[str] = field(default_factory=list)
    signature: str = ""

    def part(self) -> Part | None:
        text = clean_text("".join(self.fragments))
        signed = {"signature": self.signature} if self.signature else {}
        if self.thought:
            return Reasoning(text, {"wire": NAME, **signed})
        return Text(text, {"wire": NAME, **signed} if signed else None) if text or signed else None


class Decoder:
    """Gathers the parts of one candidate. Each event is an answer of its own form, so a whole one is one event.

    Of a stream nothing tells which event is the last: a reason to end may stand in one, and more come after it.
    """

    def __init__(self, request: ChatRequest | None = None) -> None:
        self.complete = False
        turns = request.messages if request is not None else ()
        self._turn = 1 + sum(turn.role == "assistant" for turn in turns)
        self._used = {call.id for turn in turns for call in turn.calls}
        self._parts: list[_Run | ToolCall | File | Search] = []
        self._grounding: dict[str, Json] = {}
        """What an answer rests on that comes from the web."""
        self._waiting: list[ToolCall] = []
        """Calls of which it was not yet told that they are whole."""
        self._began = self.ended = self._blocked = False
        self._has_candidate = False
        self._reason = ""
        self._told: dict[str, str] = {}
        """What the vendor tells of a block or an end that is not the usual one: words, each with an explanation."""
        self.model = ""
        self._usage: Json = None

    @property
    def usage(self) -> Usage | None:
        return _usage(self._usage)

    def feed(self, event: Json) -> list[Delta]:
        if event == DONE:
            return []
        if not isinstance(event, dict) or not event.keys() & _KEYS:
            raise Unreadable(f"expected an answer with `candidates`, found {shown(event)}")
        self._usage = event.get("usageMetadata") or self._usage
        if error := event.get("error"):
            raise faults.from_event(error)
        candidate = _first(event.get("candidates"))
        deltas = [delta for part in _parts(candidate) for delta in self._take(part)]
        if candidate and isinstance(grounding := candidate.get("groundingMetadata"), dict):
            self._grounding |= {name: value for name, value in grounding.items() if value}
        self._began = True
        self._has_candidate = self._has_candidate or candidate is not None
        self.model = self.model or text_of(event.get("modelVersion"))
        feedback = event.get("promptFeedback")
        self._blocked = self._blocked or _named(feedback, "blockReason") != ""
        self._reason = _named(candidate, "finishReason") or self._reason
        self._explain(feedback, "blockReason", "blockReasonMessage")
        self._explain(candidate, "finishReason", "finishMessage")
        self.ended = self.ended or self._blocked or self._reason != ""
        self.complete = self._blocked
        if self.ended:
            deltas += map(ToolReady, self._waiting)
            self._waiting = []
        return deltas

    def finish(self) -> ChatResponse:
        if not self.ended and (self._has_candidate or not self._began):
            raise Truncated(BROKE_OFF, retryable=True)
        parts = [part.part() if isinstance(part, _Run) else part for part in self._parts]
        found = _cited([part for part in parts if part is not None], tuple(_pages(self._grounding)))
        message = ChatMessage("assistant", (*self._searches(), *found))
        return ChatResponse(
            message,
            self._stop_reason(message),
            self.model,
            self.usage,
            stop_detail=clean_text(", ".join(": ".join(filter(None, one)) for one in self._told.items())),
        )

    def _searches(self) -> list[Search]:
        """What was searched for, where no step of the answer is a search."""
        if any(isinstance(part, Search) for part in self._parts):
            return []
        queries = self._grounding.get("webSearchQueries")
        found = [Search(clean_text(query)) for query in queries or () if isinstance(query, str)]
        return found or [Search()] * bool(self._grounding.get("groundingChunks"))

    def _explain(self, told: Json, key: str, explanation: str) -> None:
        word = _named(told, key)
        if word and word not in _USUAL:
            self._told[word] = text_of(told.get(explanation)) or self._told.get(word, "")

    def _stop_reason(self, message: ChatMessage) -> StopReason:
        calls = bool(message.calls)
        if self._blocked or not self._has_candidate or (self._reason in _REFUSALS and not calls):
            return "refusal"
        if self._reason == "MAX_TOKENS":
            return "max_tokens"
        if calls:
            return "tool_use"
        if self._reason in _MALFORMED:
            return "malformed"
        return "end_turn" if message.parts or self._reason == "STOP" else "refusal"

    # ------------------------------------------------------------ parts

    def _take(self, part: Json) -> list[Delta]:
        match part:
            case {"functionCall": {} as call}:
                return self._call(call, text_of(part.get("thoughtSignature")))
            case {"inlineData": {"data": str() as data} as blob}:
                if part.get("thought") is not True:  # else it is a draft
                    self._add_file(data, text_of(blob.get("mimeType")))
            case {"toolCall": {} as call}:
                self._parts.append(Search(_query(call.get("args")), {"wire": NAME, "part": part}))
            case {"toolResponse": {}}:
                self._parts.append(Search("", {"wire": NAME, "part": part}))
            case {"text": str() as text}:
                return self._extend(text, part)
            case {"thoughtSignature": str()} if part.keys() <= {"thought", "thoughtSignature"}:
                return self._extend("", part)
        return []

    def _extend(self, text: str, part: Mapping[str, Json]) -> list[Delta]:
        thought, signature = part.get("thought") is True, text_of(part.get("thoughtSignature"))
        if not text and not signature:
            return []
        run = self._parts[-1] if self._parts else None
        if not isinstance(run, _Run) or run.thought != thought or run.signature:
            run = _Run(thought, len(self._parts))
            self._parts.append(run)
        run.fragments.append(text)
        run.signature = signature
        kind = ThinkingDelta if thought else TextDelta
        return [kind(text, run.index)] if text else []

    def _call(self, call: Mapping[str, Json], signature: str) -> list[Delta]:
        given, name = text_of(call.get("id")), text_of(call.get("name"))
        replay = {"wire": NAME}
        if given:
            replay["id"] = given
        if signature:
            replay["signature"] = signature
        arguments = clean_text(json.dumps(call.get("args") or {}, ensure_ascii=False, separators=(",", ":")))
        made = ToolCall(given or self._new_id(name), name, arguments, replay)
        index = len(self._parts)
        self._used.add(made.id)
        self._parts.append(made)
        self._waiting.append(made)
        return [ToolStart(made.id, name, index), ToolInput(arguments, made.id, name, index)]

    def _new_id(self, name: str) -> str:
        """An id that no other call of the conversation has: the tool, the turn, and the place in it."""
        place = 1 + sum(isinstance(part, ToolCall) for part in self._parts)
        while (id := f"{name}-{self._turn}-{place}") in self._used:
            self._turn += 1
        return id

    def _add_file(self, data: str, mime_type: str) -> None:
        try:
            content = b64decode(data, validate=True)
        except ValueError:
            raise Unreadable(f"expected the data of a file in base64, found {shown(data)}") from None
        self._parts.append(File(media.sniff(content) or media.plain_type(mime_type), content))


_KEYS: Final = frozenset({"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "error"})
"""An answer has one of these."""


def _query(arguments: Json) -> str:
    queries = arguments.get("queries") if isinstance(arguments, dict) else None
    return ", ".join(query for query in queries if isinstance(query, str)) if isinstance(queries, list) else ""


def _pages(grounding: dict[str, Json]) -> Iterator[Citation]:
    """The pages of the web that an answer rests on."""
    chunks = grounding.get("groundingChunks")
    for chunk in chunks if isinstance(chunks, list) else ():
        match chunk:
            case {"web": {"uri": str() as url} as page} if url:
                yield Citation(clean_text(url), clean_text(text_of(page.get("title"))))


def _cited(parts: list[Part], citations: tuple[Citation, ...]) -> list[Part]:
    """The parts of an answer with what it rests on at its last text."""
    place, last = next(((at, part) for at, part in reversed([*enumerate(parts)]) if isinstance(part, Text)), (0, None))
    if last is not None and citations:
        parts[place] = replace(last, citations=citations)
    return parts


def _first(candidates: Json) -> dict[str, Json] | None:
    """The candidate that counts; only one was asked for."""
    if candidates is None or candidates == []:
        return None
    if isinstance(candidates, list) and isinstance(candidates[0], dict):
        return candidates[0]
    raise Unreadable(f"expected `candidates` to be a list of mappings, found {shown(candidates)}")


def _parts(candidate: dict[str, Json] | None) -> Sequence[Json]:
    content = candidate.get("content") if candidate is not None else None
    parts = content.get("parts") if isinstance(content, dict) else None
    if parts is not None and not isinstance(parts, list):
        raise Unreadable(f"expected `parts` to be a list, found {shown(parts)}")
    return parts or []


def _named(value: Json, key: str) -> str:
    """A word of an enumeration; empty when it says nothing."""
    word = text_of(value.get(key)) if isinstance(value, dict) else ""
    return "" if word in _UNSPECIFIED else word


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    thinking = count_of(usage.get("thoughtsTokenCount"))
    read = _sum(count_of(usage.get("promptTokenCount")), count_of(usage.get("toolUsePromptTokenCount")))
    found = Usage(
        input_tokens=read,
        output_tokens=_sum(count_of(usage.get("candidatesTokenCount")), thinking),
        thinking_tokens=thinking,
        cached_tokens=count_of(usage.get("cachedContentTokenCount")),
        prompt_tokens=read,
    )
    return found if any(getattr(found, name) for name in found.__slots__) else None


def _sum(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b
