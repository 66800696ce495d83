"""A double of servers that speak Chat Completions: OpenAI's form, and the dialects of other providers.

`with ChatServer([reply(calls=[call("find", {"id": 7})]), reply("done")]) as server:` runs one at `server.url`;
`server.requests` holds what came, `server.refusals` why the vendor would not have taken it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from secrets import token_hex
from typing import Any, Literal

from vendor.chat_request import DIALECTS, Refused, read
from vendor.chat_rules import Issued, refusals
from vendor.faults import Fault
from vendor.scripted import ScriptedServer
from vendor.server import Answer, Json, Request

Numbered = Literal["yes", "all zero", "by id", "by name"]
"""How fragments say which call they belong to: each call has an index; all have index 0 and a new id starts a call;
no index, the id on the first fragment; neither, the name starts a call."""
UsageIn = Literal["last", "each", "finish"]
"""Where a stream carries usage: in a last chunk without choices, growing in each chunk, beside the finish reason."""

DONE = b"data: [DONE]\n\n"
TYPES = {401: "invalid_api_key", 403: "permission_error", 404: "not_found", 429: "rate_limit_exceeded"}


# ---------------------------------------------------------------- replies


@dataclass(frozen=True)
class Call:
    """A tool call. Arguments as text go out as they are, so that they can be broken or cut off."""

    name: str
    arguments: Json
    id: str | None = None

    @property
    def text(self) -> str:
        given = self.arguments
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


@dataclass(frozen=True)
class Reply:
    """An answer of the model."""

    text: str | None
    calls: tuple[Call, ...]
    reasoning: str
    refusal: str
    finish_reason: str
    usage: Json
    usage_in: UsageIn
    model: str | None
    fragment: int
    numbered: Numbered
    done: bool
    more: Json
    faults: tuple[Fault, ...]


def call(name: str, arguments: Json = None, id: str | None = None) -> Call:
    """A call of a tool; an id is made up when none is given, and `""` goes without."""
    return Call(name, {} if arguments is None else arguments, id)


def reply(
    text: str | None = None,
    *,
    calls: Sequence[Call] = (),
    reasoning: str = "",
    refusal: str = "",
    finish_reason: str | None = None,
    usage: Json = None,
    usage_in: UsageIn = "last",
    model: str | None = None,
    fragment: int = 8,
    numbered: Numbered = "yes",
    done: bool = True,
    more: Json = None,
    faults: Sequence[Fault] = (),
) -> Reply:
    """An answer: reasoning, text, calls.

    `usage` is merged into 10 tokens read and 5 written, and is left out when it is False; `fragment` is the length of
    streamed fragments; `done` is whether a stream ends with its mark; `more` are further keys of the message.
    """
    return Reply(
        text,
        tuple(calls),
        reasoning,
        refusal,
        finish_reason or ("tool_calls" if calls else "stop"),
        usage,
        usage_in,
        model,
        fragment,
        numbered,
        done,
        more or {},
        tuple(faults),
    )


# ---------------------------------------------------------------- errors


def error(
    status: int,
    message: str = "scripted error",
    *,
    kind: str | None = None,
    code: str | None = None,
    param: str | None = None,
    **headers: str,
) -> Answer:
    """A failed answer of any status ("Error codes"). Headers are given with underscores: `retry_after="3"`."""
    kind = kind or TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return _json(body, status, tuple((name.replace("_", "-"), value) for name, value in headers.items()))


def error_event(after: int = 0, message: str = "Overloaded", *, code: Any = 503, kind: str = "overloaded") -> Fault:
    """OpenRouter, "Error handling": the stream ends with an error after that many events."""
    event = _event({"error": {"message": message, "type": kind, "code": code}})
    return lambda answer: replace(answer, pieces=(*answer.pieces[:after], event))


# ---------------------------------------------------------------- the server


class ChatServer(ScriptedServer[Reply]):
    """Serves `POST …/chat/completions`, plain and streamed, and refuses what the vendor would refuse."""

    def __init__(
        self,
        script: Iterable[Reply | Answer] | Callable[[Request], Reply | Answer],
        *,
        dialect: str = "openai",
        faults: Sequence[Fault] = (),
        api_key: str | None = None,
        rejects: Iterable[str] = (),
    ) -> None:
        """With `api_key` any other key is refused; `rejects` are parameters that this server does not take."""
        super().__init__(script, faults=faults)
        self.dialect = DIALECTS[dialect]
        self._api_key = api_key
        self._rejects = tuple(rejects)
        self._issued = Issued()
        self._mark = token_hex(4)
        self._answers = count(1)

    def refuse(self, request: Request) -> Answer | None:
        fault = self._fault_of(request)
        if fault is None:
            return None
        status, message, parameter = fault
        request.refusal = message
        return error(status, message, param=parameter)

    def _fault_of(self, request: Request) -> tuple[int, str, str | None] | None:
        """Status, message and parameter of the first rule that a request breaks."""
        if request.method != "POST" or not request.path.endswith("/chat/completions"):
            return 404, f"Invalid URL ({request.method} {request.path})", None
        if self._api_key is not None and request.headers.get("authorization") != f"Bearer {self._api_key}":
            return 401, "Incorrect API key provided.", None
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 400, "you must provide a JSON body with content-type application/json", None
        try:
            body = _strict_json(request.body)
            asked = read(body, self.dialect)
        except Refused as wrong:
            return 400, str(wrong), wrong.parameter
        for name in self._rejects:
            if name in body:
                return 400, f"Unsupported parameter: '{name}' is not supported with this model.", name
        return next(((400, text, None) for text in refusals(asked, self.dialect, self._issued)), None)

    def render(self, reply: Reply, request: Request) -> Answer:
        asked, number = request.json, next(self._answers)
        reply = replace(reply, calls=tuple(self._with_id(one, number, n) for n, one in enumerate(reply.calls)))
        message = self._message(reply)
        if reply.calls and self.dialect.echoes in message:
            self._issued.remember(reply.calls[0].id or "", message[self.dialect.echoes])
        head = {"id": f"chatcmpl-{number}", "created": 1_800_000_000, "model": reply.model or asked["model"]}
        if asked.get("stream"):
            counted = (asked.get("stream_options") or {}).get("include_usage") or "usage" in asked
            chunks = _chunks(reply, message, counted=bool(counted))
            events = [_event({**head, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
            pieces = (*events, DONE) if reply.done else tuple(events)
            answer = Answer(200, (("content-type", "text/event-stream"),), pieces, streamed=True)
        else:
            choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}
            body = {**head, "object": "chat.completion", "choices": [choice], **_usage(reply)}
            answer = _json(body, 200)
        for fault in reply.faults:
            answer = fault(answer)
        return answer

    def _with_id(self, call: Call, answer: int, number: int) -> Call:
        if call.id is not None:
            return call
        id = f"{self._mark[:5]}{answer % 100:02}{number % 100:02}" if self.dialect.nine_letter_ids else ""
        return replace(call, id=id or f"call_{self._mark}_{answer}_{number}")

    def _message(self, reply: Reply) -> Json:
        message: dict[str, Json] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal or None}
        if reply.reasoning and self.dialect.echoes == "reasoning_details":
            message["reasoning"] = reply.reasoning
            message["reasoning_details"] = [
                {
                    "type": "reasoning.text",
                    "text": reply.reasoning,
                    "signature": f"signed-{len(reply.reasoning)}",
                    "format": "anthropic-claude-v1",
                    "index": 0,
                }
            ]
        elif reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.calls:
            message["tool_calls"] = [
                {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.text}}
                for one in reply.calls
            ]
        return message | reply.more


def _usage(reply: Reply, part: float = 1) -> Json:
    if reply.usage is False:
        return {}
    counted = {"prompt_tokens": 10, "completion_tokens": int(5 * part), "total_tokens": 10 + int(5 * part)}
    return {"usage": counted | (reply.usage or {})}


def _strict_json(body: bytes) -> Json:
    """Error text: `We could not parse the JSON body of your request.`; half a surrogate pair is not valid either."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError as wrong:
        raise Refused(f"We could not parse the JSON body of your request: {wrong}", "") from None
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON number")


def _json(value: Json, status: int, headers: Sequence[tuple[str, str]] = ()) -> Answer:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status, (("content-type", "application/json"), *headers), (body,))


def _event(value: Json) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


# ---------------------------------------------------------------- the stream


def _chunks(reply: Reply, message: Json, *, counted: bool) -> Iterator[Json]:
    """API reference, "The chat completion chunk object": deltas, a finish reason, usage when it was asked for."""
    ended = {"choices": [_choice({}, reply.finish_reason)]}
    deltas = [{"role": "assistant", "content": ""}, *_deltas(reply, message)]
    usage = _usage(reply) if counted else {}
    for number, delta in enumerate(deltas):
        growing = _usage(reply, number / len(deltas)) if usage and reply.usage_in == "each" else {}
        yield {"choices": [_choice(delta)], **growing}
    yield {**ended, **usage} if reply.usage_in != "last" else ended
    if usage and reply.usage_in == "last":
        yield {"choices": [], **usage}


def _choice(delta: Json, finish_reason: str | None = None) -> Json:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}


def _deltas(reply: Reply, message: Json) -> Iterator[Json]:
    for key in ("reasoning_content", "reasoning"):
        for text in _cut(message.get(key) or "", reply.fragment):
            yield {key: text, **_part_of(message.get("reasoning_details"), text)}
    if signed := [{**detail, "text": ""} for detail in message.get("reasoning_details", ())]:
        yield {"reasoning_details": signed}
    for key in ("content", "refusal"):
        for text in _cut(message.get(key) or "", reply.fragment):
            yield {key: text}
    if reply.more:
        yield reply.more
    if reply.numbered == "yes":
        yield from _interleaved(reply)
    else:
        for one in reply.calls:
            for fragment in _fragments(one, reply.fragment):
                yield {"tool_calls": [_numbered(fragment, reply.numbered)]}


def _part_of(details: Json, text: str) -> Json:
    unsigned = [{**detail, "text": text, "signature": None} for detail in details or ()]
    return {"reasoning_details": unsigned} if unsigned else {}


def _interleaved(reply: Reply) -> Iterator[Json]:
    """A fragment of each call in turn: what an index is for."""
    queues = [list(_fragments(one, reply.fragment)) for one in reply.calls]
    for step in range(max(map(len, queues), default=0)):
        for index, queue in enumerate(queues):
            if step < len(queue):
                yield {"tool_calls": [{"index": index, **queue[step]}]}


def _fragments(call: Call, size: int) -> Iterator[Json]:
    named = {"id": call.id} if call.id else {}
    yield {**named, "type": "function", "function": {"name": call.name, "arguments": ""}}
    for text in _cut(call.text, size):
        yield {"function": {"arguments": text}}


def _numbered(fragment: Json, numbered: Numbered) -> Json:
    if numbered == "all zero":
        return {"index": 0, **fragment}
    return {key: value for key, value in fragment.items() if key != "id"} if numbered == "by name" else fragment


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
