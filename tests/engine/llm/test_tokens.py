"""octo/llm/tokens.py: tokens for a client id and its secret."""

import asyncio
import base64
import json
from collections.abc import Callable, Sequence

import pytest

from octo.errors import AuthenticationFailed, NotAnAnswer, ProviderError
from octo.llm.tokens import Client, ClientTokens
from octo.llm.transport import Transport
from vendor.server import Answer, Request, Server

SECRET = "s3cret/with+signs"


class TokenServer(Server):
    """Gives the answers that it was made with, in turn."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__()
        self._answers = iter(answers)

    def answer(self, _: Request) -> Answer:
        return next(self._answers)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> int:
        return int(self.seconds * 1e9)


def answer(body: object, status: int = 200) -> Answer:
    return Answer(status, (("content-type", "application/json"),), (json.dumps(body).encode(),))


def grant(token: str, seconds: object = 3600) -> Answer:
    return answer({"token_type": "Bearer", "expires_in": seconds, "access_token": token})


def client(url: str) -> Client:
    return Client(f"{url}/token", "app", SECRET)


async def tokens(server: TokenServer, ask: Callable[[ClientTokens, Clock], object]) -> object:
    clock, who = Clock(), client(server.url)
    async with Transport({}, mask=who.mask, sleep=_at_once) as transport:
        return await ask(ClientTokens(who, transport, clock), clock)  # type: ignore[misc]  # each is a coroutine


async def _at_once(_: float) -> None:
    """Waits for nothing."""


async def test_a_token_is_asked_for_with_a_form_and_basic_authentication():
    async def ask(source: ClientTokens, _: Clock) -> str:
        return await source.current()

    with TokenServer([grant("t1")]) as server:
        assert await tokens(server, ask) == "t1"

    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/token")
    assert request.body == (b"grant_type=client_credentials&scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default")
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert base64.b64decode(request.headers["authorization"].removeprefix("Basic ")) == b"app:s3cret%2Fwith%2Bsigns"


async def test_a_token_is_used_until_two_minutes_before_its_end():
    async def ask(source: ClientTokens, clock: Clock) -> list[str]:
        found = []
        for clock.seconds in (1000.0, 1000.0 + 3479, 1000.0 + 3480, 1000.0 + 9000):
            found.append(await source.current())
        return found

    with TokenServer([grant("t1"), grant("t2", "3600"), grant("t3")]) as server:
        assert await tokens(server, ask) == ["t1", "t1", "t2", "t3"]


@pytest.mark.parametrize("seconds", [None, "soon", 60, -1, True], ids=str)
async def test_a_token_that_says_nothing_of_its_end_or_ends_at_once_is_used_once(seconds: object):
    async def ask(source: ClientTokens, _: Clock) -> list[str]:
        return [await source.current(), await source.current()]

    with TokenServer([grant("t1", seconds), grant("t2", seconds)]) as server:
        assert await tokens(server, ask) == ["t1", "t2"]


async def test_calls_at_the_same_time_share_one_exchange():
    async def ask(source: ClientTokens, _: Clock) -> list[str]:
        return await asyncio.gather(*(source.current() for _ in range(5)))

    with TokenServer([grant("t1")]) as server:
        assert await tokens(server, ask) == ["t1"] * 5

    assert len(server.requests) == 1


async def fails(*answers: Answer) -> tuple[ProviderError, str]:
    async def ask(source: ClientTokens, _: Clock) -> None:
        await source.current()

    with TokenServer(answers) as server, pytest.raises(ProviderError) as caught:
        await tokens(server, ask)
    return caught.value, server.url


async def test_a_refusal_shows_the_words_of_the_server_and_no_secret():
    words = f"AADSTS7000215: Invalid client secret {SECRET} provided"
    error, url = await fails(answer({"error": "invalid_client", "error_description": words}, 401))

    assert type(error) is AuthenticationFailed
    assert str(error) == "no access token: status 401: AADSTS7000215: Invalid client secret *** provided"
    assert error.hint == f"check `clientId`, `clientSecret` and `tokenURL`, which is `{url}/token`"


async def test_a_server_that_is_busy_is_asked_again():
    async def ask(source: ClientTokens, _: Clock) -> str:
        return await source.current()

    with TokenServer([answer({"error": "busy"}, 503), grant("t1")]) as server:
        assert await tokens(server, ask) == "t1"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"access_token": "", "id_token": "secret"}, "a mapping with `access_token`, `id_token`"),
        ({}, "a mapping with nothing in it"),
        (["secret"], "a list"),
    ],
    ids=["no token", "nothing", "a list"],
)
async def test_an_answer_without_a_token_is_not_quoted(body: object, found: str):
    error, url = await fails(answer(body))

    assert type(error) is NotAnAnswer
    assert str(error) == (
        f"no access token: POST {url}/token: status 200 without a usable answer: "
        f"expected a mapping with an `access_token`, found {found}"
    )


async def test_a_token_in_a_text_of_another_form_is_masked():
    error, _ = await fails(Answer(200, (("content-type", "text/plain"),), (b"access_token=abcdef&expires_in=1",)))

    assert str(error).endswith("expected JSON, found `access_token=***&expires_in=1`")


def test_what_is_kept_is_never_shown():
    who = client("http://x")

    assert SECRET not in repr(who)
    assert SECRET not in repr(who.call())
