"""A double of Google's `generateContent`, of the Gemini API and on Vertex AI.

`with GeminiServer([reply(calls=[call("find", {"id": 7})]), reply("done")]) as server:` runs one below
`server.base_url`; `server.requests` holds what came, `server.refusals` why the vendor would not have taken it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from secrets import token_hex
from typing import Literal

from vendor.faults import Fault
from vendor.gemini_request import read
from vendor.gemini_rules import Issued, refusals, sign
from vendor.scripted import ScriptedServer
from vendor.server import Answer, Json, Request

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""Troubleshooting guide, "Error codes"."""

BASES = {"standard": "/v1beta", "vertex": "/v1/projects/p/locations/l/publishers/google/models"}
MODELS = {"standard": "/v1beta/models/", "vertex": f"{BASES['vertex']}/"}
"""API reference: where each platform has its API, and where its models are."""

# ---------------------------------------------------------------- replies


@dataclass(frozen=True)
class Call:
    """A call of a function. `signed` says whether the part carries a signature."""

    name: str
    args: Json
    id: str | None
    signed: bool | None


@dataclass(frozen=True)
class Said:
    """A text, or a thought. In a stream its signature comes last, beside an empty text."""

    text: str
    thought: bool = False
    signed: bool = False


@dataclass(frozen=True)
class Picture:
    data: bytes
    mime_type: str = "image/png"


@dataclass(frozen=True)
class Reply:
    """An answer of the model. Parts are as above, or as the wire has them."""

    parts: tuple[Call | Said | Picture | Json, ...]
    finish: str | None
    grounding: Json
    blocked: str | None
    usage: Json
    model: str | None
    fragment: int
    faults: tuple[Fault, ...]


def call(name: str, args: Json = None, id: str | None = None, *, signed: bool | None = None) -> Call:
    """A call; without `signed` the first one of a reply is signed, as the vendor does it."""
    return Call(name, {} if args is None else args, id, signed)


def reply(
    *texts: str | Said | Picture,
    calls: Sequence[Call] = (),
    thinking: str | Said | None = None,
    parts: Sequence[Json] = (),
    finish: str | None = "STOP",
    grounding: Json = None,
    usage: Json = None,
    model: str | None = None,
    fragment: int = 8,
    faults: Sequence[Fault] = (),
) -> Reply:
    """An answer: a thought, then texts and pictures, then further parts in the wire's form, then calls.

    `usage` is merged into 10 tokens read and 5 written; `fragment` is the length of streamed fragments.
    """
    thoughts = () if thinking is None else (Said(thinking, thought=True) if isinstance(thinking, str) else thinking,)
    said = (Said(text) if isinstance(text, str) else text for text in texts)
    return Reply(
        (*thoughts, *said, *parts, *_signed(calls)), finish, grounding, None, usage, model, fragment, tuple(faults)
    )


def blocked(reason: str = "SAFETY") -> Reply:
    """The prompt is refused: there is no candidate."""
    return Reply((), None, None, reason, None, None, 8, ())


def grounded(*queries: str, pages: Sequence[tuple[str, str]] = ()) -> Json:
    """Grounding with Google Search, "Understanding the grounding response"."""
    chunks = [{"web": {"uri": url, "title": title}} for url, title in pages]
    return {"webSearchQueries": list(queries), "groundingChunks": chunks, "groundingSupports": []}


def _signed(calls: Sequence[Call]) -> Iterator[Call]:
    for number, one in enumerate(calls):
        yield one if one.signed is not None else replace(one, signed=number == 0)


# ---------------------------------------------------------------- errors


def error_body(status: int, message: str, *details: Json) -> Json:
    """API design guide, "Errors"."""
    told = {"details": list(details)} if details else {}
    return {"error": {"code": status, "message": message, "status": STATUSES.get(status, "UNKNOWN"), **told}}


def error(status: int, message: str = "scripted", *details: Json, **headers: str) -> Answer:
    """A failed answer of any status. Headers are given with underscores: `x_should_retry="true"`."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return _json(error_body(status, message, *details), status, named)


def exhausted(*, delay: str | None = None, quota: str = "GenerateRequestsPerMinutePerProjectPerModel") -> Answer:
    """Rate limits: 429 with the quota that is used up and, perhaps, when to try again."""
    details: list[Json] = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}]
    if delay is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return error(429, "You exceeded your current quota", *details)


def error_event(after: int = 0, status: int = 503, message: str = "The model is overloaded.") -> Fault:
    """The stream ends with an error after that many events."""
    return lambda answer: replace(answer, pieces=(*answer.pieces[:after], _event(error_body(status, message))))


# ---------------------------------------------------------------- the server


class GeminiServer(ScriptedServer[Reply]):
    """Serves a model's two methods, plain and streamed, and refuses what the vendor would refuse."""

    def __init__(
        self,
        script: Iterable[Reply | Answer] | Callable[[Request], Reply | Answer],
        *,
        faults: Sequence[Fault] = (),
        platform: Literal["standard", "vertex"] = "standard",
        gives_ids: bool = True,
        key: str | None = None,
    ) -> None:
        """With `key` any other key or token is refused; without `gives_ids` calls have no ids, as earlier models."""
        super().__init__(script, faults=faults)
        self._platform = platform
        self._gives_ids = gives_ids
        self._key = key
        self._issued = Issued()
        self._mark = token_hex(4)
        self._answers = count(1)

    @property
    def base_url(self) -> str:
        return self.url + BASES[self._platform]

    def refuse(self, request: Request) -> Answer | None:
        fault = self._fault_of(request)
        if fault is None:
            return None
        status, message = fault
        request.refusal = message
        return error(status, message)

    def _fault_of(self, request: Request) -> tuple[int, str] | None:
        """Status and message of the first rule that a request breaks."""
        address = re.fullmatch(
            re.escape(MODELS[self._platform]) + r"([a-zA-Z0-9._-]+):(generateContent|streamGenerateContent)",
            request.path,
        )
        if request.method != "POST" or address is None:
            return 404, f"Not found: {request.method} {request.path}"
        if request.query != ("alt=sse" if address[2] == "streamGenerateContent" else ""):
            return 400, f"Invalid query: {request.query}"
        if fault := self._fault_of_headers(request):
            return fault
        try:
            content = read(_strict_json(request.body))
        except ValueError as wrong:
            return 400, str(wrong)
        return next(((400, text) for text in refusals(content, address[1], self._issued)), None)

    def _fault_of_headers(self, request: Request) -> tuple[int, str] | None:
        """API reference, "Authentication": a key in a header of its own; on Vertex AI a bearer token. Never both."""
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        key = request.headers.get("x-goog-api-key", "")
        given, other = (key, bearer) if self._platform == "standard" else (bearer, key)
        if not given:
            return 403, "Method doesn't allow unregistered callers"
        if other:
            return 400, "Two credentials are one too many"
        if self._key not in (None, given):
            return 400, "API key not valid. Please pass a valid API key."
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return 400, "Invalid content type"
        return None

    def render(self, reply: Reply, request: Request) -> Answer:
        number = next(self._answers)
        parts = [self._part(part, number * 1000 + place) for place, part in enumerate(reply.parts)]
        self._issued.remember(parts)
        common = {
            "modelVersion": reply.model or request.path.rpartition("/")[2].partition(":")[0],
            "responseId": f"answer_{number}",
        }
        if request.path.endswith(":streamGenerateContent"):
            events = tuple(map(_event, _stream(reply, parts, common)))
            answer = Answer(200, (("content-type", "text/event-stream"),), events, streamed=True)
        else:
            answer = _json({**_candidates(reply, parts, reply.finish), **_usage(reply), **common}, 200, ())
        for fault in reply.faults:
            answer = fault(answer)
        return answer

    def _part(self, part: Call | Said | Picture | Json, nonce: int) -> Json:
        match part:
            case Call(name, args, id, signed):
                id = id or (f"{self._mark}{nonce}" if self._gives_ids else None)
                function = {"name": name, "args": args} | ({"id": id} if id else {})
                made = {"functionCall": function}
                return made | {"thoughtSignature": sign(function, nonce)} if signed else made
            case Said(text, thought, signed):
                made = {"text": text} | ({"thought": True} if thought else {})
                return made | {"thoughtSignature": sign(text, nonce)} if signed else made
            case Picture(data, mime_type):
                return {"inlineData": {"mimeType": mime_type, "data": base64.b64encode(data).decode()}}
        return part


def _candidates(reply: Reply, parts: list[Json], finish: str | None) -> Json:
    if reply.blocked is not None:
        return {"promptFeedback": {"blockReason": reply.blocked}}
    content = {"content": {"role": "model", "parts": parts}} if parts else {}
    ending = {"finishReason": finish} if finish else {}
    if finish and reply.grounding is not None:
        ending["groundingMetadata"] = reply.grounding
    return {"candidates": [{**content, **ending, "index": 0}]}


def _usage(reply: Reply) -> Json:
    known = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"usageMetadata": known | (reply.usage or {})}


def _stream(reply: Reply, parts: list[Json], common: Json) -> Iterator[Json]:
    """Streaming: each event is an answer with the next parts; the last one says why it ends. Usage grows."""
    partial = {"usageMetadata": {"promptTokenCount": _usage(reply)["usageMetadata"]["promptTokenCount"]}}
    for part in parts:
        for fragment in _fragments(part, reply.fragment):
            yield {**_candidates(reply, [fragment], None), **partial, **common}
    last = [{"text": ""}] if parts else []
    yield {**_candidates(reply, last, reply.finish), **_usage(reply), **common}


def _fragments(part: Json, length: int) -> Iterator[Json]:
    """Thought signatures, "Streaming": the signature comes in the last part, which may have an empty text."""
    if "text" not in part:
        yield part
        return
    text, thought = part["text"], {key: part[key] for key in part.keys() & {"thought"}}
    for at in range(0, len(text), length):
        yield {"text": text[at : at + length], **thought}
    if "thoughtSignature" in part:
        yield {"text": "", **thought, "thoughtSignature": part["thoughtSignature"]}


def _strict_json(body: bytes) -> Json:
    """Error text: `Invalid JSON payload received. Unexpected token.`"""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError as wrong:
        raise ValueError(f"Invalid JSON payload received. Unexpected token. {wrong}") from None
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON number")


def _json(value: Json, status: int, headers: Sequence[tuple[str, str]]) -> Answer:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status, (("content-type", "application/json; charset=UTF-8"), *headers), (body,))


def _event(value: Json) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
