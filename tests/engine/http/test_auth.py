"""octo/http/auth.py: the `Authorization` header, and the tokens that are fetched for it."""

import asyncio
import base64
import json
from urllib.parse import parse_qs

import pytest

from octo.http.auth import ClientCredentials, MetadataToken, basic, bearer
from octo.http.call import HttpError

SECOND = 10**9


class Network:
    """Answers fetches from a list and notes them; its clock is set by hand."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.seconds = 1_000_000.0

    def clock(self):
        return round(self.seconds * SECOND)

    async def __call__(self, method, url, headers, body=None):
        self.asked.append((method, url, dict(headers), None if body is None else parse_qs(body.decode())))
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, value = answer
        return status, value if isinstance(value, bytes) else json.dumps(value).encode()

    @property
    def forms(self):
        return [form for *_, form in self.asked]


def client(network, scopes=()):
    return ClientCredentials("https://id.example/token?x=1", "app", "s3cret!", scopes, clock=network.clock)


async def test_fixed_credentials_need_no_network():
    assert await bearer("t0")(None) == "Bearer t0"
    assert await basic("käte", "a:b")(None) == "Basic " + base64.b64encode("käte:a:b".encode()).decode()


async def test_a_token_is_granted_to_the_client():
    network = Network((200, {"access_token": "t1", "expires_in": 60.0}))

    assert await client(network, ["read", "write"])(network) == "Bearer t1"
    assert network.asked == [
        (
            "POST",
            "https://id.example/token?x=1",
            {
                "Authorization": "Basic " + base64.b64encode(b"app:s3cret!").decode(),
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
            },
            {"grant_type": ["client_credentials"], "scope": ["read write"]},
        )
    ]


async def test_a_token_is_renewed_half_a_minute_before_its_end():
    network = Network(
        (200, {"access_token": "t1", "expires_in": "60"}), (200, {"access_token": "t2", "expires_in": 60})
    )
    header = client(network)

    tokens = []
    for network.seconds in (100.0, 129.9, 130.0):
        tokens.append(await header(network))

    assert tokens == ["Bearer t1", "Bearer t1", "Bearer t2"]


@pytest.mark.parametrize("lifetime", [None, "soon", -5, 1e300])
async def test_a_token_without_an_end_is_used_once(lifetime):
    network = Network((200, {"access_token": "t1", "expires_in": lifetime}), (200, {"access_token": "t2"}))
    header = client(network)

    assert [await header(network), await header(network)] == ["Bearer t1", "Bearer t2"]


async def test_requests_at_once_share_one_fetch():
    network = Network((200, {"access_token": "t1", "expires_in": 60.0}))
    header = client(network)

    assert set(await asyncio.gather(*(header(network) for _ in range(5)))) == {"Bearer t1"}
    assert len(network.asked) == 1


async def test_a_refresh_token_is_used_and_kept_until_it_fails():
    network = Network(
        (200, {"access_token": "t1", "refresh_token": "r1"}),
        (200, {"access_token": "t2"}),
        (400, {"error": "invalid_grant"}),
        (200, {"access_token": "t3"}),
        (200, {"access_token": "t4"}),
    )
    header = client(network)

    assert [await header(network) for _ in range(4)] == ["Bearer t1", "Bearer t2", "Bearer t3", "Bearer t4"]
    granted, refreshed = (
        {"grant_type": ["client_credentials"]},
        {"grant_type": ["refresh_token"], "refresh_token": ["r1"]},
    )
    assert network.forms == [granted, refreshed, refreshed, granted, granted]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, b"client app:\n s3cret! unknown"), "returned 401: client app: *** unknown"),
        ((500, b""), "returned 500"),
        ((200, {"token": "t"}), "returned no `access_token`"),
        ((200, {"access_token": ""}), "returned no `access_token`"),
        ((200, b"<html>"), "returned no `access_token`"),
        ((200, ["t"]), "returned no `access_token`"),
        (HttpError("host not found"), ": host not found"),
    ],
    ids=["refused", "no body", "no token", "empty token", "no JSON", "no object", "no answer"],
)
async def test_a_token_that_is_not_granted_is_an_error_without_the_secret(answer, message):
    network = Network(answer)

    with pytest.raises(HttpError) as caught:
        await client(network)(network)

    space = "" if message.startswith(":") else " "
    assert caught.value.message == f"oauth2 token request to https://id.example/token{space}{message}"


def signed(**claims):
    """A token that looks signed, with these claims."""
    parts = ({"alg": "none"}, claims)
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*coded, "signature")).encode()


@pytest.mark.parametrize(
    ("token", "lasts"),
    [(signed(exp=1_000_100), 70), (signed(sub="x"), 1800), (b"opaque", 1800), (b"a.b!.c", 1800)],
    ids=["until its end", "no end", "not signed", "not readable"],
)
async def test_an_identity_token_of_the_machine_is_kept(token, lasts):
    network = Network((200, token))
    header = MetadataToken("meta", audience="https://api.example", clock=network.clock)
    counts = []
    for seconds in (0, lasts - 1, lasts):
        network.seconds = 1_000_000.0 + seconds
        assert await header(network) == f"Bearer {token.decode()}"
        counts.append(len(network.asked))

    assert counts == [1, 1, 2]
    assert network.asked[0] == (
        "GET",
        "http://meta/computeMetadata/v1/instance/service-accounts/default/identity"
        "?audience=https%3A%2F%2Fapi.example&format=full",
        {"Metadata-Flavor": "Google"},
        None,
    )


async def test_an_access_token_of_the_machine_may_have_scopes():
    network = Network((200, {"access_token": "t1", "expires_in": 3600.0}))

    assert await MetadataToken("meta", scopes=["a", "b"], clock=network.clock)(network) == "Bearer t1"
    assert network.asked[0][1] == (
        "http://meta/computeMetadata/v1/instance/service-accounts/default/token?scopes=a%2Cb"
    )


@pytest.mark.parametrize(
    ("answer", "message", "hint"),
    [
        (
            HttpError("host not found"),
            "auth type `gcp` works on Google Cloud only: its metadata service does not answer: host not found",
            "use another auth type on this machine",
        ),
        ((404, b"no account"), "the metadata service of Google Cloud returned 404: no account", None),
        ((200, b"{}"), "the metadata service of Google Cloud gave no token", None),
    ],
    ids=["elsewhere", "no account", "no token"],
)
async def test_a_machine_without_tokens_says_so(answer, message, hint):
    network = Network(answer)

    with pytest.raises(HttpError) as caught:
        await MetadataToken("meta", clock=network.clock)(network)

    assert (caught.value.message, caught.value.hint) == (message, hint)
