"""octo/llm/google.py: access tokens of a Google account."""

import asyncio
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import exceptions

from octo.errors import AuthenticationFailed
from octo.llm.google import AccountTokens
from vendor.server import Answer, Request, Server


class Account:
    """Stands for the credentials of an account: gives a new token each time, good until it is spoilt."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.valid = False
        self.refreshed = 0

    def refresh(self, request: object) -> None:
        self.refreshed += 1
        self.token, self.valid = f"token-number-{self.refreshed}", True


async def test_a_token_is_used_as_long_as_it_is_good():
    account, found = Account(), []
    tokens = AccountTokens({"A": "b"}, lambda environ, request: found.append(environ) or account)
    first = await tokens.current()
    again = await asyncio.gather(*(tokens.current() for _ in range(5)))
    account.valid = False

    assert (first, set(again), await tokens.current()) == ("token-number-1", {"token-number-1"}, "token-number-2")
    assert found == [{"A": "b"}]


async def test_calls_at_once_ask_for_one_token():
    account = Account()
    tokens = AccountTokens({}, lambda environ, request: account)

    assert set(await asyncio.gather(*(tokens.current() for _ in range(5)))) == {"token-number-1"}
    assert account.refreshed == 1


async def test_tokens_are_masked():
    tokens = AccountTokens({}, lambda environ, request: Account())
    before = tokens.mask("None of token-number-1")
    await tokens.current()

    assert (before, tokens.mask("token-number-1 is bad")) == ("None of token-number-1", "*** is bad")


@pytest.mark.parametrize(
    "error",
    [
        exceptions.DefaultCredentialsError("Your default credentials were not found."),
        exceptions.RefreshError("Your default credentials were not found.", {"error": "invalid_grant"}),
        OSError("Your default credentials were not found"),
    ],
    ids=["no account", "no token", "no file"],
)
async def test_an_account_that_gives_no_token_is_an_error_that_says_what_to_do(error: Exception):
    def find(environ: object, request: object) -> Account:
        raise error

    with pytest.raises(AuthenticationFailed) as caught:
        await AccountTokens({}, find).current()

    assert str(caught.value) == "no access token of a Google account: your default credentials were not found"
    assert caught.value.hint == (
        "`GOOGLE_APPLICATION_CREDENTIALS` names the key file of a service account; a person logs in with "
        "`gcloud auth application-default login`"
    )


# ---------------------------------------------------------------- a key file


class TokenServer(Server):
    """Gives a token for the signed claim of a service account."""

    def __init__(self, status: int = 200) -> None:
        super().__init__()
        self._status = status

    def answer(self, request: Request) -> Answer:
        given = {"access_token": "ya29.loopback", "expires_in": 3600, "token_type": "Bearer"}
        body = given if self._status == 200 else {"error": "invalid_grant", "error_description": "Invalid JWT"}
        return Answer(self._status, (("content-type", "application/json"),), (json.dumps(body).encode(),))


def key_file(folder: Path, token_url: str) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "account.json"
    fields = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "1",
        "private_key": key.decode(),
        "client_email": "octo@p.iam.gserviceaccount.com",
        "token_uri": token_url,
    }
    file.write_text(json.dumps(fields), encoding="utf-8")
    return str(file)


async def test_a_key_file_that_the_environment_names_gives_tokens(tmp_path: Path):
    with TokenServer() as server:
        environ = {"GOOGLE_APPLICATION_CREDENTIALS": key_file(tmp_path, f"{server.url}/token")}
        tokens = AccountTokens(environ)
        found = [await tokens.current(), await tokens.current()]

    assert found == ["ya29.loopback"] * 2
    assert [(request.method, request.path) for request in server.requests] == [("POST", "/token")]
    assert b"grant_type=urn" in server.requests[0].body


@pytest.mark.parametrize(
    ("status", "text"),
    [(400, "invalid_grant: Invalid JWT"), (200, "")],
    ids=["refused", "unreachable"],
)
async def test_a_server_of_tokens_that_gives_none(tmp_path: Path, status: int, text: str):
    with TokenServer(status) as server:
        file = key_file(tmp_path, f"{server.url if status == 400 else 'http://127.0.0.1:9'}/token")
        with pytest.raises(AuthenticationFailed) as caught:
            await AccountTokens({"GOOGLE_APPLICATION_CREDENTIALS": file}).current()

    assert str(caught.value).startswith("no access token of a Google account: ")
    assert text in str(caught.value)


async def test_a_key_file_that_is_not_there_is_named(tmp_path: Path):
    file = tmp_path / "gone.json"

    with pytest.raises(AuthenticationFailed, match=r"no access token of a Google account: .*gone\.json"):
        await AccountTokens({"GOOGLE_APPLICATION_CREDENTIALS": str(file)}).current()
