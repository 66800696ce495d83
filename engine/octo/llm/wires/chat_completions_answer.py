"""Answers on Chat Completions, decoded, whatever the server makes of the form."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from octo.errors import ProviderError, Truncated
from octo.llm import conversation, faults, media
from octo.llm.chat import (
    WINDOW_FULL,
    ChatMessage,
    ChatResponse,
    Citation,
    CustomDelta,
    Delta,
    File,
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
from octo.llm.framing import DONE
from octo.llm.thoughts import Thoughts
from octo.llm.wire import BROKE_OFF, Unreadable, count_of, shown, text_of
from octo.values import Json, clean_text

if TYPE_CHECKING:
    from octo.llm.wires.chat_completions import ChatCompletions

NAME: Final = "chat_completions"
"""What this wire writes into the replay data that it makes."""

_FAILED: Final = frozenset({"error", "insufficient_system_resource"})
"""Reasons to stop that are none: the answer was given up."""
_CUT_OFF: Final = frozenset({"length", "model_length"})
_FILTERED: Final = "content_filter"


_GROWING: Final = frozenset({"text", "summary", "data"})
"""The keys of a block of reasoning that come in fragments."""


class _Fragments(list[str]):
    """The fragments of a text."""


def _joined(detail: dict[str, Json]) -> dict[str, Json]:
    return {key: "".join(value) if isinstance(value, _Fragments) else value for key, value in detail.items()}


@dataclass(slots=True)
class _Call:
    """A call while it comes in."""

    index: int
    id: str = ""
    own_id: str = ""
    """The id that the provider gave, also when it came too late to be used."""
    name: str = ""
    fragments: list[str] = field(default_factory=list)
    extra: Json = None

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are an object, to which nothing can be added."""
        return conversation.arguments(self.text) is not None


class Decoder:
    """Gathers the chunks of one answer, or takes it whole."""

    def __init__(self, wire: ChatCompletions) -> None:
        self.complete = False
        self._wire = wire
        self.ended = False
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thoughts = Thoughts()
        self._refusal: list[str] = []
        self._details: list[dict[str, Json]] = []
        self._files: list[File] = []
        self._citations: list[Citation] = []
        self._slots: dict[int, _Call] = {}
        """The call that fragments of a slot belong to now."""
        self._calls: list[_Call] = []
        self._finish_reason = ""
        self._native_reason = ""
        """How the model's own vendor names it, where the server stands between."""
        self._filters: list[str] = []
        """What a filter found in the answer, where the server names it."""
        self.model = ""
        self._usage: Json = None

    @property
    def usage(self) -> Usage | None:
        return _usage(self._usage, costs=self._wire.usage_accounting)

    def feed(self, event: Json) -> list[Delta]:
        match event:
            case str() if event == DONE:
                self.complete = True
                return self._end()
            case {"error": error} if error:
                self._usage = event.get("usage") or self._usage
                raise faults.from_event(error)
            case {"object": "error"}:
                raise faults.from_event(event)
            case {}:
                self.model = self.model or text_of(event.get("model"))
                self._usage = event.get("usage") or self._usage
                return self._take(event.get("choices"))
            case _:
                raise Unreadable(f"expected a chunk with `choices`, found {shown(event)}")

    def finish(self) -> ChatResponse:
        if not self.ended:
            raise Truncated(BROKE_OFF, retryable=True)
        calls = [call for call in self._calls if call.name]
        text = clean_text("".join(self._text))
        refusal = clean_text("".join(self._refusal))
        parts: list[Part] = [*self._reasoning()]
        if text or refusal:
            parts.append(Text(text or refusal, citations=tuple(self._citations)))
        parts += self._files
        parts += map(self._tool_call, calls)
        return ChatResponse(
            message=ChatMessage("assistant", tuple(parts)),
            stop_reason=_stop_reason(self._finish_reason, bool(refusal), bool(calls)),
            model=self.model,
            usage=self.usage,
            stop_detail="" if refusal else self._stop_detail(),
        )

    def _stop_detail(self) -> str:
        if self._finish_reason in _CUT_OFF:
            return next((one for one in (self._finish_reason, self._native_reason) if one in WINDOW_FULL), "")
        if self._finish_reason != _FILTERED:
            return ""
        return ": ".join(filter(None, (_FILTERED, ", ".join(dict.fromkeys(self._filters)))))

    def _reasoning(self) -> Iterator[Reasoning]:
        text = clean_text("".join(self._thinking))
        if text or self._details:
            details = {"details": list(map(_joined, self._details))} if self._details else {}
            yield Reasoning(text, {"wire": NAME, "dialect": self._wire.dialect, **details})

    def _tool_call(self, call: _Call) -> ToolCall:
        arguments = "{}" if conversation.is_blank(call.text) else clean_text(call.text)
        replay = {"wire": NAME, "dialect": self._wire.dialect, "extra_content": call.extra} if call.extra else None
        return ToolCall(call.id, call.name, arguments, replay)

    # ------------------------------------------------------------ one event

    def _take(self, choices: Json) -> list[Delta]:
        if choices is None or choices == []:
            return []
        choice = choices[0] if isinstance(choices, list) else None
        if not isinstance(choice, dict):
            raise Unreadable(f"expected `choices` to be a list of mappings, found {shown(choices)}")
        reason = text_of(choice.get("finish_reason"))
        if reason in _FAILED:
            raise _given_up(choice.get("error"), reason)
        whole = choice.get("message")
        deltas = self._extend(choice.get("delta") if whole is None else whole, whole=whole is not None)
        if whole is not None:
            self.complete = True
        self._finish_reason = reason or self._finish_reason
        self._native_reason = text_of(choice.get("native_finish_reason")) or self._native_reason
        self._filters += _filters(choice.get("content_filter_results"))
        return [*deltas, *self._end()] if reason or self.complete else deltas

    def _extend(self, delta: Json, *, whole: bool) -> list[Delta]:
        """Add what a delta, or a whole message, brings."""
        if delta is None:
            return []
        if not isinstance(delta, dict):
            raise Unreadable(f"expected a message as a mapping, found {shown(delta)}")
        thought, text = _content(delta.get("content"))
        written, text = self._thoughts.feed(text)
        thought = text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning")) or thought
        calls = _mappings("tool_calls", delta.get("tool_calls"))
        refusal = text_of(delta.get("refusal"))
        self._add_details(_mappings("reasoning_details", delta.get("reasoning_details")), whole=whole)
        self._files += _images(delta.get("images"))
        self._citations += _pages(delta.get("annotations"))
        deltas = self._say(thought + written, text)
        if refusal:
            self._refusal.append(refusal)
            deltas.append(CustomDelta("refusal", refusal))
        for place, call in enumerate(calls):
            deltas += self._extend_call(place, call)
        return deltas

    def _say(self, thought: str, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        if thought:
            self._thinking.append(thought)
            deltas.append(ThinkingDelta(thought))
        if text:
            self._text.append(text)
            deltas.append(TextDelta(text))
        return deltas

    def _extend_call(self, place: int, delta: dict[str, Json]) -> list[Delta]:
        """Add a fragment of a call to the call of its slot, or begin one."""
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        id, name, fragment = (
            text_of(delta.get("id")),
            text_of(function.get("name")),
            _arguments(function.get("arguments")),
        )
        index = delta.get("index")
        slot = index if isinstance(index, int) else place
        call = self._slots.get(slot)
        if call is None or _begins_another(call, id, name, fragment, numbered=isinstance(index, int)):
            call = self._slots[slot] = _Call(len(self._calls))
            self._calls.append(call)
        call.extra = delta.get("extra_content") or call.extra
        call.own_id = call.own_id or id
        call.id = call.id or id
        deltas: list[Delta] = []
        if name and not call.name:
            call.name, call.id = name, call.id or self._wire.new_id()
            deltas.append(ToolStart(call.id, name, call.index))
            if call.text:
                deltas.append(ToolInput(call.text, call.id, name, call.index))
        if fragment:
            call.fragments.append(fragment)
            if call.name:
                deltas.append(ToolInput(fragment, call.id, call.name, call.index))
        return deltas

    def _add_details(self, details: Iterable[dict[str, Json]], *, whole: bool) -> None:
        """Gather the blocks of reasoning, those of a stream from their fragments, to what they would be without one."""
        for detail in details:
            last = self._details[-1] if self._details else None
            if whole or last is None or any(last.get(key) != detail.get(key) for key in ("type", "index")):
                last = {}
                self._details.append(last)
            for key, value in detail.items():
                if key in _GROWING and isinstance(value, str):
                    fragments = last.get(key)
                    last[key] = fragments if isinstance(fragments, _Fragments) else _Fragments()
                    last[key].append(value)
                elif value is not None or key not in last:
                    last[key] = value

    def _end(self) -> list[Delta]:
        """The end mark came: each call is whole. There may be more than one mark."""
        if self.ended:
            return []
        self.ended = True
        rest = self._say(*self._thoughts.finish())
        return [*rest, *(ToolReady(self._tool_call(call)) for call in self._calls if call.name)]


def _begins_another(call: _Call, id: str, name: str, fragment: str, *, numbered: bool) -> bool:
    """Whether a fragment for the slot of a call is the first of the next one.

    Some servers give all calls one number, or none: a new id with a name tells them apart, and without ids a name. A
    server may also give each fragment an id of its own, or repeat the name: while arguments are open, they go on.
    """
    if id:
        return bool(call.own_id) and id != call.own_id and (bool(name) or call.is_whole)
    if not (name and call.name):
        return False
    if call.own_id and name == call.name and not fragment:
        return False
    return call.is_whole or not (numbered or call.own_id)


def _content(content: Json) -> tuple[str, str]:
    """Reasoning and text of a content, which is text or a list of chunks."""
    if content is None or isinstance(content, str):
        return "", content or ""
    thought, text = "", ""
    for chunk in _mappings("content", content):
        match chunk:
            case {"type": "text", "text": str() as more}:
                text += more
            case {"type": "thinking", "thinking": inner}:
                thought += inner if isinstance(inner, str) else _content(inner)[1]
    return thought, text


def _mappings(key: str, value: Json) -> list[dict[str, Json]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unreadable(f"expected `{key}` to be a list of mappings, found {shown(value)}")
    return value


def _arguments(value: Json) -> str:
    """Argument text; some servers give the object itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if isinstance(value, dict) else text_of(value)


def _images(images: Json) -> Iterator[File]:
    """The pictures that a model made, which come as data URLs."""
    for image in images if isinstance(images, list) else ():
        match image:
            case {"image_url": {"url": str() as url}} if url.startswith("data:"):
                head, _, data = url.removeprefix("data:").partition(",")
                try:
                    content = b64decode(data, validate=True)
                except ValueError:
                    continue
                yield File(media.sniff(content) or media.plain_type(head), content)


def _pages(annotations: Json) -> Iterator[Citation]:
    """The pages of the web that a text cites."""
    for one in annotations if isinstance(annotations, list) else ():
        match one:
            case {"type": "url_citation", "url_citation": {"url": str() as url} as told} if url:
                places = (count_of(told.get("start_index")), count_of(told.get("end_index")))
                yield Citation(clean_text(url), clean_text(text_of(told.get("title"))), *places)


def _filters(results: Json) -> Iterator[str]:
    """The names of the filters that caught something."""
    for name, found in results.items() if isinstance(results, dict) else ():
        if isinstance(found, dict) and found.get("filtered") is True:
            yield clean_text(name)


def _given_up(error: Json, reason: str) -> ProviderError:
    return faults.from_event(error or {"code": 503, "message": f"the model gave up (`{reason}`)"})


def _stop_reason(reason: str, refused: bool, calls: bool) -> StopReason:
    if refused or (reason == _FILTERED and not calls):
        return "refusal"
    if reason in _CUT_OFF:
        return "max_tokens"
    return "tool_use" if calls else "end_turn"


def _usage(usage: Json, *, costs: bool) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    prompt, completion = (
        details if isinstance(details, dict) else {}
        for details in (usage.get("prompt_tokens_details"), usage.get("completion_tokens_details"))
    )
    read = count_of(usage.get("prompt_tokens"))
    cached = count_of(prompt.get("cached_tokens"))
    found = Usage(
        input_tokens=read,
        output_tokens=count_of(usage.get("completion_tokens")),
        thinking_tokens=count_of(completion.get("reasoning_tokens")),
        cached_tokens=count_of(usage.get("prompt_cache_hit_tokens")) if cached is None else cached,
        prompt_tokens=read,
    )
    if not any(getattr(found, name) for name in found.__slots__):
        return None
    cost = usage.get("cost")
    if costs and isinstance(cost, int | float) and 0 <= cost < math.inf:
        return found + Usage(reported_cost_usd=float(cost))
    return found
