"""The five wires with their doubles, each under one form: what a model says, and how it is asked.

Without a network a request goes to the rules of its vendor at once, and the answer comes back whole or as events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from octo.llm import faults
from octo.llm.chat import ChatResponse, OnDelta
from octo.llm.credentials import Credentials
from octo.llm.framing import DONE
from octo.llm.model import HttpModel
from octo.llm.providers import PROVIDERS
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint, HttpCall
from vendor import anthropic, bedrock, chat, gemini, responses
from vendor.scripted import ScriptedServer
from vendor.server import Answer, Json, Request

KEY = "secret-key-0123456789"


@dataclass(frozen=True)
class Said:
    """What a model says, in no vendor's form."""

    text: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    """Names and arguments; text stands for arguments as they are, which may be broken."""
    thinking: str = ""
    cut_off: bool = False
    """Whether the output cap ended it."""
    refuses: bool = False
    searched: str = ""
    """What was searched for in the web; the text then rests on `PAGES`."""


PAGES = (("https://a.example/1", "First"), ("https://b.example/2", "Second"))


@dataclass(frozen=True)
class Double:
    """One wire, spoken by one provider."""

    name: str
    provider: str
    model: str
    serve: Callable[..., ScriptedServer[Any]]
    say: Callable[[Said], Any]
    base: str = ""
    """The path of the API, below the address of the server."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the endpoint, so that the model thinks."""
    stream_error: Callable[..., Any] = chat.error_event
    """The fault of a stream that ends with an error."""
    error: Callable[..., Answer] = chat.error

    def asked(self, url: str, transport: Transport, **settings: Any) -> HttpModel:
        """The model behind a server at this address."""
        row = PROVIDERS[self.provider]
        credentials = Credentials(self.provider, url + self.base, row.key_header, api_key=KEY)
        return HttpModel(Endpoint(credentials, **{"model": self.model, **settings}), transport, "m")


class Offline(Transport):
    """Stands for the network between a model and its double."""

    def __init__(self, server: ScriptedServer[Any]) -> None:
        super().__init__({})
        self.server = server

    async def send(self, call: HttpCall, decoder: Any, on_delta: OnDelta | None = None) -> Any:
        parts = urlsplit(call.url)
        headers = {name.lower(): value for name, value in call.headers}
        request = Request(call.method, parts.path, parts.query, headers, call.body, 1)
        self.server.requests.append(request)
        answer = self.server.answer(request)
        if request.refusal is not None:
            raise AssertionError(f"{request.refusal}\n{call.body.decode()}")
        return await _decoded(answer, call, decoder(), on_delta)


async def _decoded(answer: Answer, call: HttpCall, decoder: Any, on_delta: OnDelta | None) -> ChatResponse:
    if answer.status != 200:
        raise faults.from_answer(answer.status, dict(answer.headers), answer.body)
    events: list[Json] = []
    if answer.streamed:
        framing = call.framing()
        found = [data for piece in answer.pieces for data in framing.feed(piece)]
        events = [DONE if data == DONE else json.loads(data) for data in (*found, *framing.finish())]
    else:
        events = [json.loads(answer.body)]
    for event in events:
        for delta in decoder.feed(event):
            if on_delta is not None:
                await on_delta(delta)
    response: ChatResponse = decoder.finish()
    return response


# ---------------------------------------------------------------- the five


def _chat(said: Said) -> chat.Reply:
    calls = [chat.call(name, arguments) for name, arguments in said.calls]
    finish = "length" if said.cut_off else None
    refusal = (said.text or "I will not.") if said.refuses else ""
    text = None if said.refuses else said.text or None
    more = {"annotations": [_chat_page(*page) for page in PAGES]} if said.searched else None
    return chat.reply(text, calls=calls, reasoning=said.thinking, refusal=refusal, finish_reason=finish, more=more)


def _chat_page(url: str, title: str) -> Json:
    return {"type": "url_citation", "url_citation": {"url": url, "title": title, "start_index": 0, "end_index": 2}}


def _responses(said: Said) -> responses.Reply:
    calls = [responses.call(name, arguments) for name, arguments in said.calls]
    items: list[Any] = (
        [responses.Refusal(said.text or "I will not.")] if said.refuses else [said.text] * bool(said.text)
    )
    cut_by = "max_output_tokens" if said.cut_off else None
    if said.searched:
        places = {"start_index": 0, "end_index": 2}
        pages = [{"type": "url_citation", "url": url, "title": title, **places} for url, title in PAGES]
        items = [responses.search(said.searched), responses.cited(said.text, *pages)]
    return responses.reply(*items, calls=calls, reasoning=said.thinking, cut_by=cut_by)


def _anthropic(said: Said) -> anthropic.Reply:
    calls = [anthropic.call(name, arguments) for name, arguments in said.calls]
    stop = "max_tokens" if said.cut_off else "refusal" if said.refuses else None
    if said.searched:
        blocks = (*anthropic.search(said.searched, *PAGES), anthropic.cited(said.text, *PAGES))
        return anthropic.reply(blocks=blocks, calls=calls, thinking=said.thinking or (), stop_reason=stop)
    return anthropic.reply(*_texts(said), calls=calls, thinking=said.thinking or (), stop_reason=stop)


def _gemini(said: Said) -> gemini.Reply:
    if said.refuses:
        return gemini.blocked()
    calls = [gemini.call(name, _object(arguments)) for name, arguments in said.calls]
    finish = "MAX_TOKENS" if said.cut_off else "STOP"
    rests_on = gemini.grounded(said.searched, pages=PAGES) if said.searched else None
    return gemini.reply(*_texts(said), calls=calls, thinking=said.thinking or None, finish=finish, grounding=rests_on)


def _bedrock(said: Said) -> anthropic.Reply:
    calls = [anthropic.call(name, arguments) for name, arguments in said.calls]
    stop = "max_tokens" if said.cut_off else "content_filtered" if said.refuses else None
    return anthropic.reply(*_texts(said), calls=calls, thinking=said.thinking or (), stop_reason=stop)


def _texts(said: Said) -> Sequence[str]:
    return (said.text,) if said.text else ()


def _object(arguments: Json) -> Json:
    """The vendor gives calls whole, so their arguments are never broken."""
    return arguments if isinstance(arguments, dict) else {}


DOUBLES = (
    Double("Chat Completions", "openrouter", "vendor/model", partial(chat.ChatServer, dialect="openrouter"), _chat),
    Double(
        "Responses",
        "openai",
        "gpt-5.4",
        responses.ResponsesServer,
        _responses,
        settings={"reasoning": "low"},
        stream_error=responses.error_event,
        error=responses.error,
    ),
    Double(
        "Anthropic Messages",
        "anthropic",
        "claude-sonnet-4-6",
        anthropic.AnthropicServer,
        _anthropic,
        settings={"thinking": "adaptive"},
        stream_error=anthropic.error_event,
        error=anthropic.error,
    ),
    Double(
        "Gemini",
        "googleai",
        "gemini-3.5-flash",
        gemini.GeminiServer,
        _gemini,
        base="/v1beta",
        stream_error=gemini.error_event,
        error=gemini.error,
    ),
    Double(
        "Bedrock Converse",
        "aws_bedrock",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        bedrock.BedrockServer,
        _bedrock,
        settings={"thinking": "budgeted", "thinking_budget": 2048, "max_tokens": 4096},
        stream_error=bedrock.exception_after,
        error=bedrock.error,
    ),
)
