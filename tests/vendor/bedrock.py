"""A double of Amazon Bedrock's Converse and ConverseStream.

`with BedrockServer([reply(calls=[call("find", {"id": 7})]), reply("done")]) as server:` runs one at `server.url`;
`server.requests` holds what came, `server.refusals` why the vendor would not have taken it. Replies are those of
`vendor.anthropic`; a block in the wire's form is one of Converse.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from secrets import token_hex
from urllib.parse import unquote

from vendor import sigv4
from vendor.anthropic import Call, Redacted, Reply, Thinking
from vendor.bedrock_request import read
from vendor.bedrock_rules import Issued, redact, refusals, sign
from vendor.faults import Fault, insert
from vendor.scripted import ScriptedServer
from vendor.server import Answer, Json, Request
from vendor.sigv4 import KeyPair

REGION = "us-east-1"
SERVICE = "bedrock"
KEYS = KeyPair()
KINDS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
"""API, "Errors": the kind of each status."""
_OPERATIONS = {"converse": "Converse", "converse-stream": "ConverseStream"}


# ---------------------------------------------------------------- frames


def frame(payload: bytes, **headers: str) -> bytes:
    """A frame of an event stream: lengths, check sum, headers, payload, check sum. Header names begin with a colon."""
    head = b"".join(_header(f":{name.replace('_', '-')}", value) for name, value in headers.items())
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return start + struct.pack(">I", zlib.crc32(start))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(text)) + text


def event(kind: str, payload: Json) -> bytes:
    data = json.dumps({**payload, "p": "abcdefgh"}, ensure_ascii=False).encode()
    return frame(data, event_type=kind, content_type="application/json", message_type="event")


def exception(kind: str, message: str = "Oops") -> bytes:
    data = json.dumps({"message": message}).encode()
    return frame(data, exception_type=kind, content_type="application/json", message_type="exception")


def exception_after(pieces: int = 0, kind: str = "throttlingException", message: str = "Too many requests") -> Fault:
    """The stream ends with an exception after that many events."""
    return lambda answer: replace(answer, pieces=(*answer.pieces[:pieces], exception(kind, message)))


def unknown_frame(at: int = 1) -> Fault:
    """An event of a type that no client knows yet."""
    return insert(at, event("brandNew", {"contentBlockIndex": 0, "delta": {"newer": 1}}))


def corrupted(at: int, byte: int = -6) -> Fault:
    """One bit of event number `at` is not as it was sent."""

    def spoil(answer: Answer) -> Answer:
        piece = bytearray(answer.pieces[at])
        piece[byte] ^= 1
        return replace(answer, pieces=(*answer.pieces[:at], bytes(piece), *answer.pieces[at + 1 :]))

    return spoil


# ---------------------------------------------------------------- errors


def error(status: int, message: str | None = None, *, kind: str | None = None, **headers: str) -> Answer:
    """A failed answer of any status. Headers are given with underscores: `retry_after="3"`."""
    kind = kind or KINDS.get(status, "InternalServerException" if status >= 500 else "ValidationException")
    named = ((name.replace("_", "-"), value) for name, value in headers.items())
    return _json({"message": message or f"scripted {kind}"}, status, (("x-amzn-errortype", f"{kind}:"), *named))


# ---------------------------------------------------------------- the server


class BedrockServer(ScriptedServer[Reply]):
    """Serves `POST /model/MODEL/converse` and its stream, and refuses what the vendor would refuse."""

    def __init__(
        self,
        script: Iterable[Reply | Answer] | Callable[[Request], Reply | Answer],
        *,
        faults: Sequence[Fault] = (),
        api_key: str | None = None,
        keys: KeyPair = KEYS,
        region: str = REGION,
    ) -> None:
        """With `api_key` any other bearer key is refused; signatures must be those of `keys` in `region`."""
        super().__init__(script, faults=faults)
        self._api_key = api_key
        self._keys = keys
        self._region = region
        self._issued = Issued()
        self._mark = token_hex(4)
        self._answers = count(1)

    def refuse(self, request: Request) -> Answer | None:
        fault = self._fault_of(request)
        if fault is None:
            return None
        status, kind, message = fault
        request.refusal = message
        return error(status, message, kind=kind)

    def _fault_of(self, request: Request) -> tuple[int, str, str] | None:
        """Status, kind and message of the first rule that a request breaks."""
        parts = request.path.split("/")
        if request.method != "POST" or len(parts) != 4 or parts[1] != "model" or parts[3] not in _OPERATIONS:
            return 404, "UnknownOperationException", f"Unknown operation {request.method} {request.path}"
        if (fault := self._fault_of_credentials(request)) is not None:
            return 403, *fault
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 400, "ValidationException", "The content type of the request must be application/json"
        try:
            checked = read(unquote(parts[2]), _strict_json(request.body), _OPERATIONS[parts[3]])
        except ValueError as wrong:
            return 400, "ValidationException", str(wrong)
        return next(((400, "ValidationException", text) for text in refusals(checked, self._issued)), None)

    def _fault_of_credentials(self, request: Request) -> tuple[str, str] | None:
        """API keys, "Use an API key": bearer; every other call is signed."""
        authorization = request.headers.get("authorization", "")
        if not authorization:
            return "MissingAuthenticationTokenException", "Missing Authentication Token"
        if authorization.startswith("Bearer "):
            if self._api_key in (None, authorization.removeprefix("Bearer ")):
                return None
            return "AccessDeniedException", "Authentication failed: Please make sure your API Key is valid."
        return sigv4.fault(request, self._keys, self._region, SERVICE)

    def render(self, reply: Reply, request: Request) -> Answer:
        number = next(self._answers)
        content, arguments = self._content(reply, number)
        self._issued.remember(content)
        named = (("x-amzn-requestid", f"req-{number}"),)
        if request.path.endswith("converse-stream"):
            pieces = tuple(_stream(reply, content, arguments))
            headers = (("content-type", "application/vnd.amazon.eventstream"), *named)
            answer = Answer(200, headers, pieces, streamed=True)
        else:
            answer = _json(
                {
                    "output": {"message": {"role": "assistant", "content": content}},
                    "stopReason": reply.stop_reason,
                    **_metadata(reply),
                },
                200,
                named,
            )
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
                    content.append({"text": block})
                case Thinking(text):
                    signed = {"text": text, "signature": sign(text, nonce)}
                    content.append({"reasoningContent": {"reasoningText": signed}})
                case Redacted():
                    content.append({"reasoningContent": {"redactedContent": redact(nonce)}})
                case Call(name, given, id):
                    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
                    arguments[number] = text
                    id = id or f"tooluse_{self._mark}_{answer}_{number}"
                    content.append({"toolUse": {"toolUseId": id, "name": name, "input": _object(text)}})
                case _:
                    content.append(block)
        return content, arguments


def _metadata(reply: Reply) -> Json:
    known = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 0, "cacheWriteInputTokens": 0}
    usage = known | (reply.usage or {})
    return {
        "usage": {"totalTokens": usage["inputTokens"] + usage["outputTokens"], **usage},
        "metrics": {"latencyMs": 7},
    }


def _object(text: str) -> Json:
    """What stands as input where arguments are not streamed: an object, empty when the text is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _strict_json(body: bytes) -> Json:
    """Half a surrogate pair and `NaN` are no JSON."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError as wrong:
        raise ValueError(f"Malformed input request, please reformat your input and try again: {wrong}") from None
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON number")


def _json(value: Json, status: int, headers: Sequence[tuple[str, str]]) -> Answer:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status, (("content-type", "application/json"), *headers), (body,))


# ---------------------------------------------------------------- the stream


def _stream(reply: Reply, content: list[Json], arguments: dict[int, str]) -> Iterator[bytes]:
    """API, "ConverseStreamOutput": only calls have a start of their own."""
    yield event("messageStart", {"role": "assistant"})
    for index, block in enumerate(content):
        place = {"contentBlockIndex": index}
        if "toolUse" in block:
            start = {name: block["toolUse"][name] for name in ("toolUseId", "name")}
            yield event("contentBlockStart", {"start": {"toolUse": start}, **place})
        for delta in _deltas(block, arguments.get(index, ""), reply.fragment):
            yield event("contentBlockDelta", {"delta": delta, **place})
        yield event("contentBlockStop", place)
    yield event("messageStop", {"stopReason": reply.stop_reason})
    yield event("metadata", _metadata(reply))


def _deltas(block: Json, arguments: str, fragment: int) -> Iterator[Json]:
    match block:
        case {"text": text}:
            yield from ({"text": part} for part in _cut(text, fragment))
        case {"toolUse": _}:
            yield from ({"toolUse": {"input": part}} for part in _cut(arguments, fragment))
        case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
            yield from ({"reasoningContent": {"text": part}} for part in _cut(text, fragment))
            yield {"reasoningContent": {"signature": signature}}
        case _:
            yield block


def _cut(text: str, fragment: int) -> list[str]:
    return [text[at : at + fragment] for at in range(0, len(text), fragment)]
