"""Answers one request of a client: passes it on as it is, or asks the model and translates the answer."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from octo.config.pricing import bill, bill_of_failure
from octo.errors import BadRequest, NotAnAnswer, OctoError, OutOfTime, ProviderError, Truncated, Unreachable
from octo.llm import completions, faults, fim, proxy
from octo.llm.chat import ChatModel, ChatRequest, Delta, Retry
from octo.llm.completions import Chunks, Head, error_body, event
from octo.llm.framing import WholeEvents
from octo.llm.model import HttpModel
from octo.llm.proxy import ProxyBuildArgs
from octo.llm.raw import RawObject
from octo.llm.transport import target
from octo.llm.wire import BROKE_OFF, HttpCall
from octo.proxy.access import Entry
from octo.proxy.client import Client, Headers, Late
from octo.proxy.gateway import Gateway, NoConnector, Reached, Stopping
from octo.proxy.overseer import Overseer
from octo.values import Json

if TYPE_CHECKING:
    import httpx

IGNORED: Final = "x-octo-ignored"
"""The header of an answer that names what made no difference to it."""

_TRAVELS: Final = re.compile(
    r"content-type|cache-control|retry-after(-ms)?|x-should-retry"
    r"|(x-)?request-id|x-amzn-requestid|x-goog-request-id|apim-request-id"
    r"|((x|anthropic)-)?rate-?limit(-.*)?|anthropic-organization-id|openai-(processing-ms|version|model)"
)
"""The headers of an answer that the client is told of."""


_FIELDS: Final = {"parallel_calls": "parallel_tool_calls"}
"""What clients call a setting that a model may ignore, where it is not its own name."""


class BrokenOff(Exception):
    """An answer that the client has the beginning of cannot be told to its end."""

    def __init__(self, error: OctoError) -> None:
        super().__init__(error.message)
        self.error = error


class Relay:
    """Answers one request."""

    def __init__(self, client: Client, gateway: Gateway, entry: Entry) -> None:
        self._client = client
        self._gateway = gateway
        self._entry = entry
        self._kept: list[tuple[str, str]] = []
        """What the provider told in headers, for a failure that is told in the place of its answer."""

    async def answer(self, path: str, named: str, raw: bytes) -> None:
        """Answer a request for a path below `/v1/`. A failure is told to the client, in the form that it reads."""
        try:
            await self._answer(path, named, raw)
        except BrokenOff as broken:
            await self._break_off(path, broken.error)
        except OctoError as error:
            await self.fail(path, error)
        finally:
            self._entry.price(self._gateway.prices)

    async def _answer(self, path: str, named: str, raw: bytes) -> None:
        try:
            body = RawObject(raw)
        except ValueError as error:
            raise BadRequest(f"the body is not a JSON object: {error}") from error
        if not isinstance(body.fields.get("model"), str | None):
            raise BadRequest("expected text as `model`")
        reached, model = self._gateway.choose(named, body.text("model"))
        model = model or reached.default_model
        self._entry.leads_to(reached.name, model)
        body = body.with_fields({"model": model} if model else {})
        if path == proxy.FIM and not await self._fills_in(reached, model):
            path, body = proxy.CHAT, RawObject(json.dumps(fim.as_chat(body.fields)).encode())
        http = reached.http
        if http is not None and proxy.forwards(path, await http.credentials(), model):
            await self._forward(http, path, body)
        elif path == proxy.CHAT:
            await self._translate(reached.alone, body, model)
        else:
            raise BadRequest(proxy.refusal(path, reached.type))

    async def _fills_in(self, reached: Reached, model: str) -> bool:
        http = reached.http
        return http is not None and proxy.forwards(proxy.FIM, await http.credentials(), model)

    # ------------------------------------------------------------ passed on

    async def _forward(self, model: HttpModel, path: str, body: RawObject) -> None:
        credentials = await model.credentials()
        call = proxy.build_proxy_request(ProxyBuildArgs("POST", path, body, credentials, self._client.headers))
        late = Late(self._client, expects=call.stream)
        async with late as stream, model.forward(call) as response:
            told = response.headers.items()
            headers = [(name, credentials.mask(value)) for name, value in told if _TRAVELS.fullmatch(name)]
            self._kept = [(name, value) for name, value in headers if name != "content-type"]
            if response.is_success and not response.is_closed:
                await self._stream(call, response, stream.told(headers), credentials.mask)
            else:
                await self._whole(call, response, headers, stream)

    async def _stream(self, call: HttpCall, response: httpx.Response, stream: Late, mask: Callable[[str], str]) -> None:
        import httpx

        events, seen = WholeEvents(), Overseer(self._entry)
        try:
            async for chunk in response.aiter_bytes():
                if whole := events.feed(chunk):
                    seen.see(whole)
                    await stream.write(self._shown(whole, mask))
            if last := events.finish():
                seen.see(last)
                await stream.write(self._shown(last, mask))
        except httpx.RequestError:  # what breaks after the end of an answer makes no difference to it
            if not seen.ended:
                raise
        if not seen.ended:
            raise Truncated(f"{target(call)}: status {response.status_code}, but {BROKE_OFF}")
        await self._client.close_stream()

    def _shown(self, events: bytes, mask: Callable[[str], str]) -> bytes:
        """Events as they are; those of a failure without the secrets that it may repeat."""
        if not self._entry.broken:
            return events
        return mask(events.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    async def _whole(self, call: HttpCall, response: httpx.Response, headers: Headers, stream: Late) -> None:
        body, status = response.content, response.status_code
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        usable = isinstance(answer, dict | list)
        found = faults.found(body, response.headers)
        if response.is_success and not usable:
            raise NotAnAnswer(f"{target(call)}: status {status} without a usable answer: expected JSON, found {found}")
        await stream.hold()
        if self._client.started:  # as a stream, which the answer is not
            if response.is_success:
                raise NotAnAnswer(f"{target(call)}: expected a stream of events, found {found}")
            raise faults.from_answer(status, response.headers, body)
        if usable:
            self._entry.count_in(answer)
            await self._client.answer(status, body, headers)
        else:
            raise ProviderError(f"{target(call)}: status {status}: {found}", status=status)

    # ------------------------------------------------------------ translated

    async def _translate(self, model: ChatModel, body: RawObject, name: str) -> None:
        asked = completions.read(body.fields)
        tools = bool(asked.request.tools)
        if asked.request.output_schema is not None and model.answers_by_tool(name, with_tools=tools):
            asked = asked.by_tool()
        head = Head(f"chatcmpl-{secrets.token_hex(12)}", int(time.time()), name)
        ignored = [*asked.ignored, *(_FIELDS.get(one, one) for one in _ignored(model, asked.request))]
        headers = [(IGNORED, ", ".join(sorted(ignored)))] if ignored else []
        if not asked.stream:
            response = await model.complete(asked.request, session={})
            self._entry.count(bill(self._gateway.prices, response))
            await self._client.answer_json(200, completions.whole(response, head, asked.answer_tool), headers)
            return
        chunks = Chunks(head, asked.answer_tool, include_usage=asked.include_usage)

        stream = Late(self._client, headers, event(chunks.first()))

        async def listen(delta: Delta) -> None:
            if isinstance(delta, Retry):
                if self._client.started:
                    raise BrokenOff(_cause(delta))
            elif told := chunks.of(delta):
                await stream.write(b"".join(map(event, told)))

        async with stream:
            response = await model.complete(asked.request, session={}, on_delta=listen)
            self._entry.count(bill(self._gateway.prices, response))
            await stream.write(b"".join(map(event, chunks.end(response))))
        await self._client.write(b"data: [DONE]\n\n")
        await self._client.close_stream()

    # ------------------------------------------------------------ failures

    async def fail(self, path: str, error: OctoError) -> None:
        """Tell the client of a failure, as long as it can still be told."""
        if isinstance(error, ProviderError):
            self._entry.count(bill_of_failure(self._gateway.prices, error))
        if self._client.streams:
            await self._break_off(path, error)
        elif not self._client.started:
            await self._refuse(error)

    async def _refuse(self, error: OctoError) -> None:
        status = status_of(error)
        wait = error.retry_after if isinstance(error, ProviderError) else None
        headers = [*self._kept, *([("retry-after", f"{wait:g}")] if wait is not None else [])]
        kind, code = _kind(error)
        await self._client.refuse(status, _words(error), kind, headers, code)

    async def _break_off(self, path: str, error: OctoError) -> None:
        """Tell that a stream that began will not come to its end."""
        self._entry.broken = type(error).__name__
        kind, code = _kind(error)
        if path == proxy.MESSAGES:
            told = {"type": "error", "error": {"type": "api_error", "message": _words(error)}}
            await self._client.write(b"event: error\n" + event(told))
        else:
            await self._client.write(event(error_body(_words(error), kind, code)))
        await self._client.close_stream()


def _ignored(model: ChatModel, request: ChatRequest) -> tuple[str, ...]:
    return model.ignores(request) if isinstance(model, HttpModel) else ()


def _cause(retry: Retry) -> OctoError:
    return retry.error if isinstance(retry.error, OctoError) else ProviderError(retry.reason)


def _words(error: OctoError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def status_of(error: OctoError) -> int:
    """The status that a failure is told with, before the first byte of an answer."""
    match error:
        case NoConnector():
            return error.status
        case Stopping():
            return 503
        case OutOfTime():
            return 504
        case Unreachable() | NotAnAnswer() | Truncated():
            return 502
        case ProviderError(status=int(status)) if status >= 400:
            return status
        case BadRequest():
            return 400
    return 502


def _kind(error: OctoError) -> tuple[str, str | None]:
    """The type and the code of a failure: the provider's own, where it gave some."""
    if isinstance(error, NoConnector) or (isinstance(error, BadRequest) and error.status is None):
        return "invalid_request_error", "model_not_found" if isinstance(error, NoConnector) else None
    own = _own(error.body) if isinstance(error, ProviderError) else {}
    kind, code = own.get("type") or own.get("status"), own.get("code")
    code = str(code) if isinstance(code, int | str) else None
    return kind if isinstance(kind, str) else "upstream_error", code


def _own(body: str) -> Mapping[str, Json]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    return error if isinstance(error, dict) else {}
