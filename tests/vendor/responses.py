"""A double of OpenAI's Responses API.

`with ResponsesServer([reply(calls=[call("find", {"id": 7})]), reply("done")]) as server:` runs one at `server.url`;
`server.requests` holds what came, `server.refusals` why the vendor would not have taken it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from secrets import token_hex

from vendor.faults import Fault
from vendor.responses_request import Refused, read
from vendor.responses_rules import Issued, encrypt, refusals
from vendor.scripted import ScriptedServer
from vendor.server import Answer, Json, Request

TYPES = {401: "invalid_request_error", 403: "permission_error", 404: "invalid_request_error", 429: "tokens"}


# ---------------------------------------------------------------- replies


@dataclass(frozen=True)
class Call:
    """A function call. Arguments as text go out as they are, so that they can be broken or cut off."""

    name: str
    arguments: Json
    id: str | None = None

    @property
    def text(self) -> str:
        given = self.arguments
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


@dataclass(frozen=True)
class Thinking:
    """An item of reasoning with the parts of its summary; the server encrypts it."""

    summary: tuple[str, ...]


@dataclass(frozen=True)
class Refusal:
    text: str


@dataclass(frozen=True)
class Reply:
    """An answer of the model: texts, calls, reasoning, or items as the wire has them."""

    items: tuple[str | Call | Thinking | Refusal | Json, ...]
    cut_by: str | None
    usage: Json
    model: str | None
    fragment: int
    faults: tuple[Fault, ...]


def call(name: str, arguments: Json = None, id: str | None = None) -> Call:
    """A call of a tool; an id is made up when none is given."""
    return Call(name, {} if arguments is None else arguments, id)


def thinking(*summary: str) -> Thinking:
    return Thinking(summary)


def search(query: str, id: str = "ws_1") -> Json:
    """Web search, "Output and citations": a search of the web."""
    return {"type": "web_search_call", "id": id, "status": "completed", "action": {"type": "search", "query": query}}


def cited(text: str, *annotations: Json, id: str = "msg_1") -> Json:
    """A text with the pages that it cites."""
    return _message(id, {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []})


def reply(
    *items: str | Call | Thinking | Refusal | Json,
    calls: Sequence[Call] = (),
    reasoning: str | Sequence[str] = (),
    cut_by: str | None = None,
    usage: Json = None,
    model: str | None = None,
    fragment: int = 8,
    faults: Sequence[Fault] = (),
) -> Reply:
    """An answer: reasoning, then items in their order, then calls.

    `cut_by` is why the answer is incomplete, `usage` is merged into 10 tokens read and 5 written, `fragment` is the
    length of streamed fragments.
    """
    summary = (reasoning,) if isinstance(reasoning, str) else tuple(reasoning)
    thought = (Thinking(summary),) if summary else ()
    return Reply((*thought, *items, *calls), cut_by, usage, model, fragment, tuple(faults))


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


def error_event(after: int = 0, message: str = "Overloaded", code: str = "server_is_overloaded") -> Fault:
    """Streaming events, `error`: the stream ends with an error after that many events."""
    event = _event({"type": "error", "code": code, "message": message, "param": None, "sequence_number": after})
    return lambda answer: replace(answer, pieces=(*answer.pieces[:after], event))


def failed_event(after: int = 0, message: str = "The model failed", code: str = "server_error") -> Fault:
    """Streaming events, `response.failed`."""
    response = {"object": "response", "status": "failed", "error": {"code": code, "message": message}, "output": []}
    event = _event({"type": "response.failed", "response": response, "sequence_number": after})
    return lambda answer: replace(answer, pieces=(*answer.pieces[:after], event))


# ---------------------------------------------------------------- the server


class ResponsesServer(ScriptedServer[Reply]):
    """Serves `POST …/responses`, plain and streamed, and refuses what the vendor would refuse."""

    def __init__(
        self,
        script: Iterable[Reply | Answer] | Callable[[Request], Reply | Answer],
        *,
        faults: Sequence[Fault] = (),
        api_key: str | None = None,
        rejects: Iterable[str] = (),
        organization: str = "",
    ) -> None:
        """With `api_key` any other key is refused; `rejects` are parameters that this server does not take."""
        super().__init__(script, faults=faults)
        self._api_key = api_key
        self._rejects = tuple(rejects)
        self._organization = organization
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
        if request.method != "POST" or not request.path.endswith("/responses"):
            return 404, f"Invalid URL ({request.method} {request.path})", None
        if self._api_key is not None and request.headers.get("authorization") != f"Bearer {self._api_key}":
            return 401, "Incorrect API key provided.", None
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 400, "Unsupported content type. This API method only accepts 'application/json' requests.", None
        try:
            body = _strict_json(request.body)
            asked = read(body)
        except Refused as wrong:
            return 400, str(wrong), wrong.parameter
        for name in self._rejects:
            if _holds(body, name):
                return 400, f"Unsupported parameter: '{name}' is not supported with this model.", name
        return next(((400, text, None) for text in refusals(asked, self._issued, self._organization)), None)

    def render(self, reply: Reply, request: Request) -> Answer:
        asked, number = request.json, next(self._answers)
        output = [self._item(item, number, place) for place, item in enumerate(reply.items)]
        self._issued.remember(output)
        response = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1_800_000_000,
            "status": "incomplete" if reply.cut_by else "completed",
            "error": None,
            "incomplete_details": {"reason": reply.cut_by} if reply.cut_by else None,
            "model": reply.model or asked["model"],
            "output": output,
            "usage": _usage(reply),
        }
        if asked.get("stream"):
            events = [{**event, "sequence_number": n} for n, event in enumerate(_events(response, reply.fragment))]
            headers = (("content-type", "text/event-stream; charset=utf-8"), ("x-request-id", f"req_{number}"))
            answer = Answer(200, headers, tuple(map(_event, events)), streamed=True)
        else:
            answer = _json(response, 200, (("x-request-id", f"req_{number}"),))
        for fault in reply.faults:
            answer = fault(answer)
        return answer

    def _item(self, item: str | Call | Thinking | Refusal | Json, answer: int, place: int) -> Json:
        """An item of the output as the wire has it."""
        mark = f"{self._mark}_{answer}_{place}"
        match item:
            case str():
                content = {"type": "output_text", "text": item, "annotations": [], "logprobs": []}
                return _message(f"msg_{mark}", content)
            case Refusal(text):
                return _message(f"msg_{mark}", {"type": "refusal", "refusal": text})
            case Thinking(summary):
                return {
                    "type": "reasoning",
                    "id": f"rs_{mark}",
                    "summary": [{"type": "summary_text", "text": text} for text in summary],
                    "encrypted_content": encrypt(mark, self._organization),
                    "status": None,
                }
            case Call():
                return {
                    "type": "function_call",
                    "id": f"fc_{mark}",
                    "call_id": f"call_{mark}" if item.id is None else item.id,
                    "name": item.name,
                    "arguments": item.text,
                    "status": "completed",
                }
            case _:
                return item


def _message(id: str, content: Json) -> Json:
    return {"type": "message", "id": id, "status": "completed", "role": "assistant", "content": [content]}


def _usage(reply: Reply) -> Json:
    counted = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    return counted | (reply.usage or {})


def _holds(body: Json, name: str) -> bool:
    for step in name.split("."):
        if not isinstance(body, dict) or step not in body:
            return False
        body = body[step]
    return True


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
    return f"event: {value['type']}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


# ---------------------------------------------------------------- the stream


def _events(response: Json, fragment: int) -> Iterator[Json]:
    """Streaming events: the response begins, each item is announced, filled and closed, the response ends."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": _empty(item)}
        for event in _filling(item, fragment):
            yield {"output_index": index, "item_id": item.get("id"), **event}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _empty(item: Json) -> Json:
    """An item as it is announced."""
    match item["type"]:
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case "function_call":
            return {**item, "status": "in_progress", "arguments": ""}
        case "reasoning":
            return {**item, "summary": [], "encrypted_content": "unfinished"}
        case _:
            return item


def _filling(item: Json, size: int) -> Iterator[Json]:
    match item["type"]:
        case "message":
            for index, part in enumerate(item["content"]):
                kind = part["type"]
                key = "text" if kind == "output_text" else "refusal"
                where = {"content_index": index}
                yield {"type": "response.content_part.added", **where, "part": {**part, key: ""} | _bare(part)}
                for text in _cut(part[key], size):
                    yield {"type": f"response.{kind}.delta", **where, "delta": text}
                for number, one in enumerate(part.get("annotations", ())):
                    told = {"annotation_index": number, "annotation": one}
                    yield {"type": "response.output_text.annotation.added", **where, **told}
                yield {"type": f"response.{kind}.done", **where, key: part[key]}
                yield {"type": "response.content_part.done", **where, "part": part}
        case "function_call":
            for text in _cut(item["arguments"], size):
                yield {"type": "response.function_call_arguments.delta", "delta": text}
            yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}
        case "reasoning":
            for index, part in enumerate(item["summary"]):
                where = {"summary_index": index}
                yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
                for text in _cut(part["text"], size):
                    yield {"type": "response.reasoning_summary_text.delta", **where, "delta": text}
                yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
                yield {"type": "response.reasoning_summary_part.done", **where, "part": part}


def _bare(part: Json) -> Json:
    return {"annotations": []} if "annotations" in part else {}


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
