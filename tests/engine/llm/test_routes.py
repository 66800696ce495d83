"""octo/llm/providers.py, octo/llm/model.py: which API of a provider a call goes to, and with which key."""

import json
from collections.abc import Callable

import pytest

from octo.errors import BadRequest, ProviderError
from octo.llm.chat import ChatMessage, ChatRequest, ChatResponse, Delta, user
from octo.llm.credentials import Credentials, Headers, Route
from octo.llm.model import HttpModel
from octo.llm.providers import PROVIDERS
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint, HttpCall
from octo.values import Json
from vendor import chat, responses
from vendor.server import Answer, Request, Server

HELLO = ChatRequest((user("hello"),))


class Sent(Transport):
    """Stands for the network: keeps the calls, and answers nothing."""

    def __init__(self) -> None:
        super().__init__({})
        self.calls: list[HttpCall] = []

    async def send(self, call: HttpCall, *_: object) -> ChatResponse:  # type: ignore[override]  # of one kind only
        self.calls.append(call)
        return ChatResponse(ChatMessage("assistant", ()), "end_turn")


async def sent(provider: str, base_url: str, model: str = "m", key: str = "k", own: Headers = ()) -> HttpCall:
    credentials = Credentials(provider, base_url, PROVIDERS[provider].key_header, api_key=key, custom_headers=own)
    transport = Sent()
    await HttpModel(Endpoint(credentials, model), transport).complete(HELLO, session={})
    (call,) = transport.calls
    return call


AZURE = "https://r.openai.azure.com"
FOUNDRY = "https://r.services.ai.azure.com"


@pytest.mark.parametrize(
    ("provider", "base_url", "model", "url"),
    [
        ("openai", "https://api.openai.com/v1", "gpt-5.4", "https://api.openai.com/v1/responses"),
        ("openai", "https://gw.example/llm/", "gpt-5.4", "https://gw.example/llm/responses"),
        (
            "openai",
            f"{AZURE}/openai/deployments/gpt?api-version=1",
            "gpt",
            f"{AZURE}/openai/v1/responses?api-version=1",
        ),
        ("azure_openai", AZURE, "gpt", f"{AZURE}/openai/v1/responses"),
        ("azure_openai", f"{AZURE}/openai/", "gpt", f"{AZURE}/openai/v1/responses"),
        ("azure_openai", "https://gw.example/team", "gpt", "https://gw.example/team/responses"),
        ("azure_foundry", FOUNDRY, "grok-4", f"{FOUNDRY}/openai/v1/chat/completions"),
        ("azure_foundry", f"{FOUNDRY}/models", "grok-4", f"{FOUNDRY}/models/chat/completions"),
        ("azure_foundry", FOUNDRY, "claude-opus-4-7", f"{FOUNDRY}/anthropic/v1/messages"),
        ("azure_foundry", f"{FOUNDRY}/openai/v1", "Claude-Sonnet", f"{FOUNDRY}/anthropic/v1/messages"),
        ("azure_foundry", FOUNDRY, "my-claude", f"{FOUNDRY}/openai/v1/chat/completions"),
    ],
)
async def test_the_address_of_a_call(provider: str, base_url: str, model: str, url: str):
    assert (await sent(provider, base_url, model)).url == url


@pytest.mark.parametrize(
    ("provider", "model", "key", "own", "expected"),
    [
        ("openai", "m", "k", (), {"authorization": "Bearer k"}),
        ("openai", "m", "", (), {}),
        ("openai", "m", "k", (("Authorization", "own"),), {"Authorization": "own"}),
        ("openai", "m", "k", (("x-api-key", "other"),), {"authorization": "Bearer k", "x-api-key": "other"}),
        ("azure_openai", "m", "k", (), {"api-key": "k"}),
        ("azure_openai", "m", "k", (("API-Key", "own"),), {"API-Key": "own"}),
        ("azure_openai", "m", "k", (("authorization", "own"),), {"authorization": "own"}),
        ("azure_foundry", "grok-4", "k", (), {"api-key": "k"}),
        ("azure_foundry", "claude-x", "k", (), {"x-api-key": "k", "anthropic-version": "2023-06-01"}),
        ("azure_foundry", "claude-x", "", (), {"anthropic-version": "2023-06-01"}),
    ],
)
async def test_the_key_goes_out_as_the_api_wants_it(
    provider: str, model: str, key: str, own: Headers, expected: dict[str, str]
):
    call = await sent(provider, AZURE, model, key, own)

    assert {name: value for name, value in call.headers if name != "content-type"} == expected


async def test_a_connector_for_two_apis_answers_for_the_one_of_its_model():
    transport = Sent()
    credentials = Credentials("azure_foundry", FOUNDRY, "api-key", api_key="k")
    ask = HttpModel(Endpoint(credentials, "grok-4"), transport)
    for model in (None, "claude-x", "grok-4"):
        await ask.complete(ChatRequest((user("x"),), model=model), session={})

    assert [call.url.rpartition("/")[2] for call in transport.calls] == ["completions", "messages", "completions"]


# ---------------------------------------------------------------- the other route


class Both(Server):
    """Has Responses as `first` has it, and Chat Completions."""

    def __init__(self, first: Callable[[Request], Answer], script: list[chat.Reply | Answer]) -> None:
        super().__init__()
        self._first = first
        self._chat = chat.ChatServer(script)

    def answer(self, request: Request) -> Answer:
        return self._first(request) if request.path.endswith("/responses") else self._chat.answer(request)

    @property
    def paths(self) -> list[str]:
        return [request.path.removeprefix("/openai/v1/") for request in self.requests]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> int:
        return int(self.seconds * 1e9)


def missing(_: Request) -> Answer:
    return responses.error(404, "Resource not found")


def unsupported(_: Request) -> Answer:
    return responses.error(400, "The requested operation is unsupported.")


def model(
    server: Server, transport: Transport, provider: str = "azure_openai", route: Route = "responses"
) -> HttpModel:
    credentials = Credentials(provider, f"{server.url}/openai/v1", "api-key", api_key="k", route=route)
    return HttpModel(Endpoint(credentials, "m"), transport, clock=Clock())


async def ignore(_: Delta) -> None:
    """A listener that does not care."""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("first", [missing, unsupported], ids=["404", "400"])
@pytest.mark.parametrize(
    ("provider", "route"), [("azure_openai", "responses"), ("azure_openai", "auto"), ("openai", "auto")]
)
async def test_an_endpoint_without_responses_is_called_by_chat_completions(
    provider: str, route: Route, first: Callable[[Request], Answer], stream: bool
):
    session: dict[object, Json] = {}
    with Both(first, [chat.reply("one"), chat.reply("two")]) as server:
        async with Transport({}) as transport:
            ask = model(server, transport, provider, route)
            answers = [
                await ask.complete(HELLO, session=session, on_delta=ignore if stream else None) for _ in range(2)
            ]

    assert [answer.text for answer in answers] == ["one", "two"]
    assert server.paths == ["responses", "chat/completions", "chat/completions"]


@pytest.mark.parametrize(
    ("provider", "route", "paths"),
    [("openai", "responses", ["responses"]), ("azure_openai", "chat", ["chat/completions"])],
    ids=["not offered", "chosen already"],
)
async def test_there_is_no_other_route(provider: str, route: Route, paths: list[str]):
    with Both(missing, [chat.error(404, "Resource not found")]) as server:
        async with Transport({}) as transport:
            with pytest.raises(BadRequest, match="status 404: Resource not found"):
                await model(server, transport, provider, route).complete(HELLO, session={})

    assert server.paths == paths


async def test_openai_itself_has_its_api():
    credentials = Credentials("openai", "https://api.openai.com/v1/", "authorization", route="auto")

    assert not PROVIDERS["openai"].may_chat(credentials)


async def test_when_both_routes_are_refused_the_last_refusal_is_the_error():
    with Both(missing, [chat.error(404, "The deployment does not exist")]) as server:
        async with Transport({}) as transport:
            with pytest.raises(BadRequest) as caught:
                await model(server, transport).complete(HELLO, session={})

    assert str(caught.value) == "llm-azure-openai complete: status 404: The deployment does not exist"
    assert server.paths == ["responses", "chat/completions"]


@pytest.mark.parametrize(
    "answer",
    [
        responses.error(401, "no"),
        responses.error(403, "no"),
        responses.error(422, "no"),
        responses.error(400, "This model's maximum context length is 7 tokens", code="context_length_exceeded"),
    ],
    ids=["401", "403", "422", "too long"],
)
async def test_other_failures_do_not_change_the_route(answer: Answer):
    with Both(lambda _: answer, []) as server:
        async with Transport({}) as transport:
            with pytest.raises(ProviderError):
                await model(server, transport).complete(HELLO, session={})

    assert server.paths == ["responses"]


async def test_a_route_that_has_answered_is_not_left():
    double = responses.ResponsesServer([responses.reply("one"), responses.error(400, "bad image")])
    session: dict[object, Json] = {}
    with Both(double.answer, []) as server:
        async with Transport({}) as transport:
            ask = model(server, transport)
            await ask.complete(HELLO, session=session)
            with pytest.raises(BadRequest, match="bad image"):
                await ask.complete(HELLO, session=session)

    assert server.paths == ["responses", "responses"]


async def test_an_image_is_made_on_one_route_only():
    with Both(missing, []) as server:
        async with Transport({}) as transport:
            with pytest.raises(BadRequest, match="Resource not found"):
                await model(server, transport).complete(ChatRequest((user("a cat"),), output_type="image"), session={})


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (missing, ["responses", "chat", "chat", "chat", "responses", "chat"]),
        (unsupported, ["responses", "chat"] * 4),
    ],
    ids=["404 for an hour", "400 for the session"],
)
async def test_how_long_it_is_remembered_that_the_route_is_missing(
    first: Callable[[Request], Answer], expected: list[str]
):
    with Both(first, [chat.reply("x")] * 4) as server:
        async with Transport({}) as transport:
            clock = Clock()
            credentials = Credentials("azure_openai", f"{server.url}/openai/v1", "api-key", api_key="k")
            ask = HttpModel(Endpoint(credentials, "m"), transport, clock=clock)
            for clock.seconds in (0, 10, 3599, 3601):
                await ask.complete(HELLO, session={})

    assert [path.partition("/")[0] for path in server.paths] == expected


async def test_what_the_first_route_refuses_is_left_out_before_the_route_is_changed():
    def picky(request: Request) -> Answer:
        held = "temperature" in request.json
        return responses.error(400, "temperature is not supported") if held else missing(request)

    with Both(picky, [chat.reply("fine")]) as server:
        async with Transport({}) as transport:
            request = ChatRequest((user("x"),), temperature=0.5)
            answer = await model(server, transport).complete(request, session={})

    assert (answer.text, server.paths) == ("fine", ["responses", "responses", "chat/completions"])
    assert "temperature" not in json.loads(server.requests[-1].body)
