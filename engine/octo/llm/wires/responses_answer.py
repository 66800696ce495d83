"""Answers of the Responses API, decoded."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from octo.errors import Truncated
from octo.llm import faults, media
from octo.llm.chat import (
    ChatMessage,
    ChatResponse,
    Citation,
    CustomDelta,
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

NAME: Final = "responses"
"""What this wire writes into the replay data that it makes."""

_FILTERED: Final = "content_filter"
_KEPT: Final = ("type", "id", "summary", "encrypted_content", "content")
"""What is sent back of an item of reasoning; the vendor refuses the rest of what it says of one."""
_SEARCH: Final = ("type", "id", "status", "action")
"""What is sent back of a search of the web."""


@dataclass(slots=True)
class _Item:
    """An item of the answer while it comes in. Its text is also the argument text of a call."""

    index: int
    type: str
    fragments: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    annotations: list[Json] = field(default_factory=list)
    id: str = ""
    name: str = ""
    started: bool = False
    closed: bool = False
    whole: dict[str, Json] = field(default_factory=dict)
    """The item as the vendor gives it at its end."""

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    def call(self) -> ToolCall:
        return ToolCall(self.id, self.name, clean_text(self.text) if self.text.strip() else "{}")


class Decoder:
    """Gathers the items of one answer, or takes it whole."""

    def __init__(self, dialect: str) -> None:
        self.complete = False
        self._mark = {"wire": NAME, "dialect": dialect}
        self._items: dict[int, _Item] = {}
        self._by_id: dict[str, _Item] = {}
        self.model = ""
        self._cut_by = ""
        self._usage: Json = None

    @property
    def ended(self) -> bool:
        return self.complete

    @property
    def usage(self) -> Usage | None:
        return _usage(self._usage)

    def feed(self, event: Json) -> list[Delta]:
        match event:
            case str() if event == DONE:
                return []
            case {"type": str(type)}:
                return self._take(type, event)
            case {"error": error} if error:
                raise faults.from_event(error)
            case {"output": _}:
                return self._end(event)
            case _:
                raise Unreadable(f"expected an event with a `type`, or a response with `output`, found {shown(event)}")

    def finish(self) -> ChatResponse:
        if not self.complete:
            raise Truncated(BROKE_OFF, retryable=True)
        items = [self._items[index] for index in sorted(self._items)]
        parts = [part for item in items for part in self._parts(item)]
        refusal = clean_text("".join(fragment for item in items for fragment in item.refusal))
        if refusal and not any(isinstance(part, Text) for part in parts):
            parts.append(Text(refusal))
        return ChatResponse(
            message=ChatMessage("assistant", tuple(parts)),
            stop_reason=self._stop_reason(refused=bool(refusal), calls=any(isinstance(p, ToolCall) for p in parts)),
            model=self.model,
            usage=self.usage,
            stop_detail=_FILTERED if self._cut_by == _FILTERED and not refusal else "",
        )

    def _parts(self, item: _Item) -> Iterator[Part]:
        """What an item is in the answer, if it is anything."""
        match item.type:
            case "message" if text := clean_text(item.text):
                phase = text_of(item.whole.get("phase"))
                yield Text(text, {**self._mark, "phase": phase} if phase else None, tuple(_citations(item)))
            case "function_call" if item.name:
                yield item.call()
            case "reasoning":
                text = clean_text(item.text)
                # What is neither encrypted nor readable is kept by the vendor, which does not know it any more.
                kept = item.whole.get("encrypted_content") or item.whole.get("content")
                is_echoed = text_of(item.whole.get("id")) and kept
                if text or is_echoed:
                    yield Reasoning(text, {**self._mark, "item": _echo(item.whole)} if is_echoed else None)
            case "web_search_call":
                yield self._search(item.whole)
            case "image_generation_call":
                yield from _image(item.whole.get("result"))

    def _search(self, item: dict[str, Json]) -> Search:
        action = item.get("action")
        query = text_of(action.get("query") or action.get("url")) if isinstance(action, dict) else ""
        told = {key: item.get(key) for key in _SEARCH}
        return Search(clean_text(query), {**self._mark, "item": told} if all(told.values()) else None)

    def _stop_reason(self, *, refused: bool, calls: bool) -> StopReason:
        if refused or self._cut_by == _FILTERED:
            return "refusal"
        if self._cut_by == "max_output_tokens":
            return "max_tokens"
        return "tool_use" if calls else "end_turn"

    # ------------------------------------------------------------ one event

    def _take(self, type: str, event: dict[str, Json]) -> list[Delta]:
        match type.removeprefix("response."):
            case "output_text.delta":
                return self._extend(event, "message")
            case "output_text.annotation.added":
                self._item(event, "message").annotations.append(event.get("annotation"))
            case "refusal.delta":
                return self._refuse(self._item(event, "message"), text_of(event.get("delta")))
            case "function_call_arguments.delta":
                return self._extend(event, "function_call")
            case "function_call_arguments.done":
                item = self._item(event, "function_call")
                return [*self._fill(item, text_of(event.get("arguments"))), *self._close(item)]
            case "reasoning_summary_part.added" if event.get("summary_index"):
                return self._append(self._item(event, "reasoning"), "\n\n")
            case "reasoning_summary_text.delta":
                return self._extend(event, "reasoning")
            case "output_item.added":
                return self._start(event, _mapping("item", event))
            case "output_item.done":
                return self._done(event, _mapping("item", event))
            case "completed" | "incomplete":
                return self._end(_mapping("response", event))
            case "failed":
                return self._end(_mapping("response", event) | {"status": "failed"})
            case "done":
                self.complete = True
                return self._end(event["response"]) if isinstance(event.get("response"), dict) else self._close_all()
            case "error":
                raise faults.from_event(event.get("error") or {key: event.get(key) for key in ("code", "message")})
        return []

    def _item(self, event: dict[str, Json], type: str) -> _Item:
        """The item that an event is about, by its id or else by its place; a new one if it was not announced."""
        id = text_of(event.get("item_id"))
        index = event.get("output_index")
        place = index if isinstance(index, int) else self._next(type, known=not id)
        found = self._by_id.get(id) or self._items.get(place)
        if found is None or found.type != type:
            found = self._items[place] = _Item(place, type)
        if id:
            self._by_id[id] = found
        return found

    def _next(self, type: str, *, known: bool) -> int:
        """The place of an item that comes without one; if it can be `known`, that of the last one while it is open."""
        last = max(self._items, default=-1)
        return (
            last
            if known and last >= 0 and self._items[last].type == type and not self._items[last].closed
            else last + 1
        )

    def _start(self, event: dict[str, Json], given: dict[str, Json]) -> list[Delta]:
        item = self._item({"item_id": given.get("id"), **event}, text_of(given.get("type")))
        if item.type != "function_call" or item.started:
            return []
        item.id = text_of(given.get("call_id")) or text_of(given.get("id")) or f"call_{item.index}"
        item.name = text_of(given.get("name"))
        item.started = bool(item.name)
        if not item.started:
            return []
        early = [ToolInput(item.text, item.id, item.name, item.index)] if item.text else []
        return [ToolStart(item.id, item.name, item.index), *early]

    def _done(self, event: dict[str, Json], given: dict[str, Json]) -> list[Delta]:
        """The end of an item, which supplies what did not come before."""
        deltas = self._start(event, given)
        item = self._item({"item_id": given.get("id"), **event}, text_of(given.get("type")))
        item.whole = given
        match item.type:
            case "message" if not item.fragments and not item.refusal:
                for part in _mappings(given.get("content")):
                    deltas += self._append(item, text_of(part.get("text")))
                    deltas += self._refuse(item, text_of(part.get("refusal")))
            case "reasoning" if not item.fragments:
                told = _texts(given.get("summary")) or _texts(given.get("content"))
                deltas += self._append(item, "\n\n".join(told))
            case "function_call":
                deltas += self._fill(item, text_of(given.get("arguments")))
        return [*deltas, *self._close(item)]

    def _end(self, response: dict[str, Json]) -> list[Delta]:
        """The response as a whole, which ends a stream, or is the answer where none was asked for."""
        status = response.get("status")
        self._usage = response.get("usage") or self._usage
        if response.get("error") or status in ("failed", "cancelled"):
            raise faults.from_event(response.get("error") or f"the response is {status}")
        if status in ("queued", "in_progress"):
            return []
        deltas: list[Delta] = []
        for index, item in enumerate(_mappings(response.get("output"))):
            if not (index in self._items and self._items[index].whole):
                deltas += self._done({"output_index": index}, item)
        details = response.get("incomplete_details")
        self._cut_by = text_of(details.get("reason")) if isinstance(details, dict) else ""
        self.model = text_of(response.get("model"))
        self.complete = True
        return [*deltas, *self._close_all()]

    # ------------------------------------------------------------ one item

    def _extend(self, event: dict[str, Json], type: str) -> list[Delta]:
        return self._append(self._item(event, type), text_of(event.get("delta")))

    def _append(self, item: _Item, text: str) -> list[Delta]:
        if not text or item.closed:
            return []
        item.fragments.append(text)
        match item.type:
            case "message":
                return [TextDelta(text, item.index)]
            case "reasoning":
                return [ThinkingDelta(text, item.index)]
            case _:
                return [ToolInput(text, item.id, item.name, item.index)] if item.started else []

    def _refuse(self, item: _Item, text: str) -> list[Delta]:
        item.refusal += [text] if text else []
        return [CustomDelta("refusal", text, item.index)] if text else []

    def _fill(self, item: _Item, arguments: str) -> list[Delta]:
        """The arguments of a call as they are at its end, of which less may have come before, or something else."""
        before = item.text
        if item.closed or not arguments or arguments == before:
            return []
        if arguments.startswith(before):
            return self._append(item, arguments[len(before) :])
        item.fragments = [arguments]
        return []

    def _close(self, item: _Item) -> list[Delta]:
        """The item is whole. A call whose name has not come yet is waited for."""
        if item.closed or (item.type == "function_call" and not item.started):
            return []
        item.closed = True
        return [ToolReady(item.call())] if item.type == "function_call" else []

    def _close_all(self) -> list[Delta]:
        return [delta for index in sorted(self._items) for delta in self._close(self._items[index])]


def _echo(item: dict[str, Json]) -> dict[str, Json]:
    """An item of reasoning as it is sent back."""
    return {"summary": [], **{key: item[key] for key in _KEPT if item.get(key)}}


def _citations(item: _Item) -> Iterator[Citation]:
    """The pages that a text cites: of the item as it is at its end, else those that were told on the way."""
    if "content" not in item.whole:
        yield from _pages(item.annotations, 0)
    length = 0
    for part in _mappings(item.whole.get("content")):
        yield from _pages(part.get("annotations"), length)
        length += len(text_of(part.get("text")))


def _pages(annotations: Json, offset: int) -> Iterator[Citation]:
    for one in annotations if isinstance(annotations, list) else ():
        match one:
            case {"type": "url_citation", "url": str() as url} if url:
                start, end = (count_of(one.get(name)) for name in ("start_index", "end_index"))
                places = (None, None) if start is None or end is None else (start + offset, end + offset)
                yield Citation(clean_text(url), clean_text(text_of(one.get("title"))), *places)


def _image(result: Json) -> Iterator[File]:
    try:
        data = b64decode(text_of(result), validate=True)
    except ValueError:
        return
    if data:
        yield File(media.sniff(data) or "image/png", data)


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    read, written = (
        details if isinstance(details, dict) else {}
        for details in (usage.get("input_tokens_details"), usage.get("output_tokens_details"))
    )
    found = Usage(
        input_tokens=count_of(usage.get("input_tokens")),
        output_tokens=count_of(usage.get("output_tokens")),
        thinking_tokens=count_of(written.get("reasoning_tokens")),
        cached_tokens=count_of(read.get("cached_tokens")),
        prompt_tokens=count_of(usage.get("input_tokens")),
    )
    return found if any(getattr(found, name) for name in found.__slots__) else None


def _mapping(key: str, event: dict[str, Json]) -> dict[str, Json]:
    value = event.get(key)
    if not isinstance(value, dict):
        raise Unreadable(f"expected an event with `{key}` as a mapping, found {shown(event)}")
    return value


def _mappings(value: Json) -> list[dict[str, Json]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unreadable(f"expected a list of mappings, found {shown(value)}")
    return value


def _texts(value: Json) -> list[str]:
    return [text for part in _mappings(value) if (text := text_of(part.get("text")))]
