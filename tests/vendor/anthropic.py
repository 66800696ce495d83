"""A double of Anthropic's Messages API.

`with AnthropicServer([reply(calls=[call("find", {"id": 7})]), reply("done")]) as server:` runs one at
`server.url`; `server.requests` holds what came, `server.refusals` why the vendor would not have taken it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from secrets import token_hex
from typing import Literal

from vendor.anthropic_request import read
from vendor.anthropic_rules import Issued, redact, refusals, sign
from vendor.faults import Fault, insert
from vendor.scripted import ScriptedServer
from vendor.server import Answer, Json, Request

LARGEST_REQUEST = 32 * 1024 * 1024
"""Errors, "Request size limits": 32 MB for the Messages API."""

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Errors, "HTTP errors": the error type of each status."""


# ---------------------------------------------------------------- replies


@dataclass(frozen=True)
class Call:
    """A tool call. Arguments as text are streamed as they are, so that they can be broken or cut off."""

    name: str
    arguments: Json
    id: str = ""


@dataclass(frozen=True)
class Thinking:
    """A thinking block; the server signs it."""

    text: str


@dataclass(frozen=True)
class Redacted:
    """A redacted thinking block; the server makes its data."""


@dataclass(frozen=True)
class Reply:
    """An answer of the model. Blocks are texts, calls, thinking, or a block as the wire has it."""

    blocks: tuple[str | Call | Thinking | Redacted | Json, ...]
    stop_reason: str
    usage: Json
    model: str | None
    fragment: int
    faults: tuple[Fault, ...]


def call(name: str, arguments: Json = None, id: str = "") -> Call:
    """A call of a tool; an id is made up when none is given."""
    return Call(name, {} if arguments is None else arguments, id)


def reply(
    *texts: str,
    calls: Sequence[Call] = (),
    thinking: str | Sequence[str | Redacted] = (),
    blocks: Sequence[Json] = (),
    stop_reason: str | None = None,
    usage: Json = None,
    model: str | None = None,
    fragment: int = 8,
    faults: Sequence[Fault] = (),
) -> Reply:
    """An answer: thinking, then texts, then further blocks in the wire's form, then calls.

    `usage` is merged into 10 tokens read and 5 written; `fragment` is the length of streamed fragments.
    """
    thoughts = (thinking,) if isinstance(thinking, str) else thinking
    return Reply(
        (*(Thinking(t) if isinstance(t, str) else t for t in thoughts), *texts, *blocks, *calls),
        stop_reason or ("tool_use" if calls else "end_turn"),
        usage,
        model,
        fragment,
        tuple(faults),
    )


def search(query: str, *pages: tuple[str, str], id: str = "srvtoolu_1") -> tuple[Json, ...]:
    """Web search tool, "Response": a search of the web and the addresses and titles of what it found."""
    found = [
        {"type": "web_search_result", "url": url, "title": title, "encrypted_content": "EqgfC", "page_age": None}
        for url, title in pages
    ]
    return (
        {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": query}},
        {"type": "web_search_tool_result", "tool_use_id": id, "content": found},
    )


def cited(text: str, *pages: tuple[str, str]) -> Json:
    """Web search tool, "Citations": a text with the pages that it rests on."""
    told = [
        {
            "type": "web_search_result_location",
            "url": url,
            "title": title,
            "encrypted_index": "Eo8B",
            "cited_text": "…",
        }
        for url, title in pages
    ]
    return {"type": "text", "text": text, "citations": told}


# ---------------------------------------------------------------- errors


def error_body(kind: str, message: str) -> Json:
    """Errors, "Error shapes"."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_loopback"}


def error(status: int, message: str | None = None, *, kind: str | None = None, **headers: str) -> Answer:
    """A failed answer of any status. Headers are given with underscores: `x_should_retry="true"`."""
    kind = kind or KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    named = (("request-id", "req_loopback"), *((n.replace("_", "-"), v) for n, v in headers.items()))
    return _json(error_body(kind, message or f"scripted {kind}"), status, named)


def overloaded(message: str = "Overloaded") -> Answer:
    return error(529, message)


def rate_limited(
    *,
    seconds: float | None = None,
    milliseconds: float | None = None,
    date: str | None = None,
    message: str = "This request would exceed your organization's rate limit",
) -> Answer:
    """429 with the wait that it asks for, as each kind of header that is in use; with none by default."""
    waits = {"retry_after": date if seconds is None else f"{seconds:g}"}
    waits["retry_after_ms"] = None if milliseconds is None else f"{milliseconds:g}"
    return error(429, message, **{name: wait for name, wait in waits.items() if wait is not None})


def error_event(after: int = 0, kind: str = "overloaded_error", message: str = "Overloaded") -> Fault:
    """Streaming, "Error events": the stream ends with an error after that many events."""

    def fail(answer: Answer) -> Answer:
        event = _event("error", {"error": {"type": kind, "message": message}})
        return replace(answer, pieces=(*answer.pieces[:after], event))

    return fail


def pings(every: int = 1) -> Fault:
    """Streaming, "Ping events": any number of them, anywhere after the first event."""

    def spread(answer: Answer) -> Answer:
        for at in range(len(answer.pieces) - 1, 0, -every):
            answer = insert(at, _event("ping", {}))(answer)
        return answer

    return spread


# ---------------------------------------------------------------- the server


class AnthropicServer(ScriptedServer[Reply]):
    """Serves `POST /v1/messages`, plain and streamed, and refuses what the vendor would refuse."""

    def __init__(
        self,
        script: Iterable[Reply | Answer] | Callable[[Request], Reply | Answer],
        *,
        faults: Sequence[Fault] = (),
        api_key: str | None = None,
    ) -> None:
        """With `api_key` any other key is refused."""
        super().__init__(script, faults=faults)
        self._api_key = api_key
        self._issued = Issued()
        self._mark = token_hex(4)
        self._answers = count(1)

    def refuse(self, request: Request) -> Answer | None:
        fault = self._fault_of(request)
        if fault is None:
            return None
        status, message = fault
        request.refusal = message
        return error(status, message)

    def _fault_of(self, request: Request) -> tuple[int, str] | None:
        """Status and message of the first rule that a request breaks."""
        if request.method != "POST" or request.path != "/v1/messages":
            return 404, f"Not found: {request.method} {request.path}"
        if len(request.body) > LARGEST_REQUEST:
            return 413, "Request exceeds the maximum size"
        fault = self._fault_of_headers(request)
        if fault is not None:
            return fault
        try:
            messages = read(_strict_json(request.body))
        except ValueError as wrong:
            return 400, str(wrong)
        return next(((400, text) for text in refusals(messages, self._issued)), None)

    def _fault_of_headers(self, request: Request) -> tuple[int, str] | None:
        """API overview, "Authentication": the three headers that every request must carry."""
        key = request.headers.get("x-api-key", "")
        if not key:
            return 401, "x-api-key header is required"
        if self._api_key not in (None, key):
            return 401, "invalid x-api-key"
        version = request.headers.get("anthropic-version", "")
        if not version:
            return 400, "anthropic-version: header is required"
        if version not in ("2023-01-01", "2023-06-01", "2026-10-21"):
            return 400, f'anthropic-version: "{version}" is not a valid version'
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 400, "content-type: must be application/json"
        return None

    def render(self, reply: Reply, request: Request) -> Answer:
        asked, number = request.json, next(self._answers)
        content, arguments = self._content(reply, number)
        self._issued.remember(content)
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": reply.model or asked["model"],
            "content": content,
            "stop_reason": reply.stop_reason,
            "stop_sequence": None,
            "usage": _usage(reply),
        }
        if asked.get("stream"):
            pieces = tuple(_stream(message, arguments, reply.fragment))
            headers = (("content-type", "text/event-stream; charset=utf-8"), ("request-id", f"req_{number}"))
            answer = Answer(200, headers, pieces, streamed=True)
        else:
            answer = _json(message, 200, (("request-id", f"req_{number}"),))
        for fault in reply.faults:
            answer = fault(answer)
        return answer

    def _content(self, reply: Reply, answer: int) -> tuple[list[Json], dict[int, str]]:
        """The blocks as the wire has them, and the argument text of those that are calls."""
        content: list[Json] = []
        arguments: dict[int, str] = {}
        for number, block in enumerate(reply.blocks):
            nonce = answer * 1000 + number
            match block:
                case str():
                    content.append({"type": "text", "text": block})
                case Thinking(text):
                    signature = sign(text, nonce)
                    content.append({"type": "thinking", "thinking": text, "signature": signature})
                case Redacted():
                    content.append({"type": "redacted_thinking", "data": redact(nonce)})
                case Call(name, given, id):
                    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
                    arguments[number] = text
                    content.append(
                        {
                            "type": "tool_use",
                            "id": id or f"toolu_{self._mark}_{answer}_{number}",
                            "name": name,
                            "input": _object(text),
                        }
                    )
                case _:
                    content.append(block)
        return content, arguments


def _usage(reply: Reply) -> Json:
    known = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 5,
    }
    return known | (reply.usage or {})


def _object(text: str) -> Json:
    """What stands as input where arguments are not streamed: an object, empty when the text is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _strict_json(body: bytes) -> Json:
    """Error text: `The request body is not valid JSON: ...`; half a surrogate pair is not valid either."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError as wrong:
        raise ValueError(f"The request body is not valid JSON: {wrong}") from None
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON number")


def _json(value: Json, status: int, headers: Sequence[tuple[str, str]]) -> Answer:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status, (("content-type", "application/json"), *headers), (body,))


# ---------------------------------------------------------------- the stream


def _stream(message: Json, arguments: dict[int, str], fragment: int) -> Iterator[bytes]:
    """Streaming, "Event types": start, blocks with their deltas, stop reason and usage, stop."""
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield _event("message_start", {"message": begun})
    for index, block in enumerate(message["content"]):
        empty, deltas = _begin(block, arguments.get(index, ""), fragment)
        yield _event("content_block_start", {"index": index, "content_block": empty})
        for delta in deltas:
            yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    yield _event("message_delta", {"delta": end, "usage": usage})
    yield _event("message_stop", {})


def _begin(block: Json, arguments: str, fragment: int) -> tuple[Json, list[Json]]:
    """The block as it starts, and the deltas that fill it."""
    match block:
        case {"type": "text", "text": text}:
            cited = [{"type": "citations_delta", "citation": page} for page in block.get("citations") or ()]
            return {**block, "text": ""} | ({"citations": []} if cited else {}), [
                *_deltas("text_delta", "text", text, fragment),
                *cited,
            ]
        case {"type": "thinking", "thinking": text, "signature": signature}:
            deltas = _deltas("thinking_delta", "thinking", text, fragment)
            deltas.append({"type": "signature_delta", "signature": signature})
            return {**block, "thinking": "", "signature": ""}, deltas
        case {"type": "tool_use"}:
            deltas = _deltas("input_json_delta", "partial_json", arguments, fragment)
            first = {"type": "input_json_delta", "partial_json": ""}
            return {**block, "input": {}}, [first, *deltas]
        case {"type": "server_tool_use", "input": input}:
            return {**block, "input": {}}, _deltas("input_json_delta", "partial_json", json.dumps(input), fragment)
        case _:
            return block, []


def _deltas(
    type: Literal["text_delta", "thinking_delta", "input_json_delta"], key: str, text: str, fragment: int
) -> list[Json]:
    return [{"type": type, key: text[at : at + fragment]} for at in range(0, len(text), fragment)]


def _event(type: str, fields: Json) -> bytes:
    data = json.dumps({"type": type, **fields}, ensure_ascii=False)
    return f"event: {type}\ndata: {data}\n\n".encode()
