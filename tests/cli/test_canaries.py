"""Forty secrets in all places that take one show nowhere: not in plain, nor in another form, whatever goes wrong."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from octo.config.load import load
from octo.llm.credentials import Credentials
from vendor import faults
from vendor.server import Answer, Request, Server

SPECIAL = "/+ü &?=\"'"
"""What URLs, JSON and base64 each write in another way."""


class Canaries:
    """Makes secrets, each with a name that tells it from all others."""

    def __init__(self) -> None:
        self.all: dict[str, str] = {}

    def __call__(self, place: str, more: str = "") -> str:
        number = len(self.all) + 1
        self.all[place] = f"canary{number:02}{more}Zq7Kx{number * 7919:06}Wm"
        return self.all[place]


def connector(name: str, type: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "settings": settings}


def planted(url: str, make: Canaries) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """A config that reaches every connector at one address; the variables of the process, and those of an env file."""
    host = url.removeprefix("http://")
    process = {
        "ANTHROPIC_KEY": make("key in the environment", SPECIAL),
        "HEADER_TOKEN": make("header in the environment"),
        "AWS_SECRET": make("secret key of AWS", "/+"),
        "AWS_TOKEN": make("session token of AWS", "/+="),
        "CLIENT_SECRET": make("secret of an application", SPECIAL),
        "OCTO_AI_HTTP_HEADERS": f"x-shared-token: {make('shared header')}",
        "PLAIN_PASSWORD": make("password by its name"),
        "OTHER_SECRET": make("secret by its name"),
        "DECLARED": make("variable declared secret"),
    }
    beside = {
        "GEMINI_KEY": make("key in an env file"),
        "URL_PASSWORD": make("password of a URL in an env file"),
        "BEARER_TOKEN": make("authorization in an env file"),
        "UNUSED_TOKEN": make("token that nothing uses"),
    }

    def behind(place: str) -> str:
        return (
            f"http://user:{make(f'password of the URL of {place}')}@{host}?code={make(f'query of the URL of {place}')}"
        )

    def headers(place: str) -> dict[str, str]:
        return {"x-gateway-secret": make(f"header of {place}"), "cookie": f"session={make(f'cookie of {place}')}"}

    connectors = [
        connector(
            "claude", "llm-anthropic", apiKey="${ANTHROPIC_KEY}", baseURL=behind("claude"), headers=headers("claude")
        ),
        connector(
            "gpt", "llm-openai", apiKey=make("key of gpt in the config"), baseURL=behind("gpt"), headers=headers("gpt")
        ),
        connector("gemini", "llm-gemini", apiKey="${GEMINI_KEY}", baseURL=behind("gemini"), headers=headers("gemini")),
        connector("azure", "llm-azure-openai", model="m", apiKey=make("key of azure"), baseURL=behind("azure")),
        connector(
            "foundry", "llm-azure-foundry", model="claude-x", apiKey=make("key of foundry"), baseURL=behind("foundry")
        ),
        connector("router", "llm-openrouter", apiKey=make("key of router"), baseURL=behind("router")),
        connector("mistral", "llm-mistral", apiKey=make("key of mistral"), baseURL=url),
        connector("deepseek", "llm-deepseek", apiKey=make("key of deepseek"), baseURL=url),
        connector("groq", "llm-groq", model="m", apiKey=make("key of groq"), baseURL=url),
        connector("together", "llm-together", model="m", apiKey=make("key of together"), baseURL=url),
        connector("custom", "llm-custom", model="m", baseURL=url, headers={"authorization": "Bearer ${BEARER_TOKEN}"}),
        connector(
            "vertex",
            "llm-anthropic",
            platform="vertex",
            apiKey=make("token of vertex"),
            baseURL=f"{url}/publishers/anthropic/models",
        ),
        connector(
            "bedrock",
            "llm-bedrock",
            model="anthropic.claude-x",
            region="eu-west-1",
            baseURL=url,
            awsAccessKeyId="AKIDEXAMPLE1",
            awsSecretAccessKey="${AWS_SECRET}",
            awsSessionToken="${AWS_TOKEN}",
        ),
        connector(
            "token",
            "llm-azure-openai",
            model="m",
            baseURL=url,
            tokenURL=f"http://:${{URL_PASSWORD}}@{host}/token",
            clientId="me",
            clientSecret="${CLIENT_SECRET}",
            headers={"x-api-token": "${HEADER_TOKEN}"},
        ),
    ]
    names = [*process, *beside]
    config = {
        "env": [
            {"name": name, **({"secret": True} if name == "DECLARED" else {})} for name in names if "OCTO" not in name
        ],
        "resources": {"env": ["keys.env"]},
        "connectors": connectors,
        "flows": [
            {
                "name": one["name"],
                "process": [
                    {
                        "type": "ai-agent",
                        "name": "ag",
                        "connector": one["name"],
                        "prompt": "Do it.",
                        "tools": [{"name": "t", "description": "A tool.", "process": []}],
                    }
                ],
            }
            for one in connectors
        ],
    }
    return config, process, beside


class Echo(Server):
    """Says everything that it was asked, as it is and encoded, in answers that go wrong in all ways."""

    def answer(self, request: Request) -> Answer:
        heard = "\n".join(
            [
                f"{request.path}?{request.query}",
                *(f"{key}: {value}" for key, value in request.headers.items()),
                request.body.decode(),
            ]
        )
        words = heard.split()
        told = " ".join(
            [
                heard,
                quote(heard),
                quote_plus(heard),
                *(b64encode(word.encode()).decode() for word in words),
                *(urlsafe_b64encode(word.encode()).decode() for word in words),
            ]
        )
        return FAULTS[self.way](told)

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way


JSON = (("content-type", "application/json"),)


def failed(status: int, told: str) -> Answer:
    body = {"error": {"message": told, "type": "x", "code": told, "param": told}, "message": told, "detail": told}
    return Answer(
        status,
        (*JSON, ("retry-after-ms", "1"), ("x-request-id", told[:80].replace("\n", " "))),
        (json.dumps(body).encode(),),
    )


def streamed(told: str) -> Answer:
    event = f"data: {json.dumps({'error': {'message': told, 'code': 400}, 'type': 'error'})}\n\n"
    return Answer(200, (("content-type", "text/event-stream"),), (event.encode(),), streamed=True)


FAULTS = {
    "refused": lambda told: failed(400, told),
    "not let in": lambda told: failed(401, told),
    "tried again": lambda told: failed(503, told),
    "an error in a stream": streamed,
    "a page": lambda told: faults.html(502, f"<html><title>{told}</title></html>"),
    "text": lambda told: Answer(200, JSON, (told.encode(),)),
    "a redirect": lambda told: Answer(307, (("location", f"https://elsewhere.example/{quote(told[:2000])}"),)),
}


def written(text: str) -> Iterator[str]:
    """The forms in which a secret may be read out of a text."""
    data = text.encode()
    yield from (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    yield from (quote(text), quote(text, ""), quote_plus(text), data.hex())
    for before in range(3):  # what of its base64 is the same wherever it stands
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(b"x" * before + data)[4 if before else 0 : -4].decode()


def found(text: str, canaries: dict[str, str]) -> list[str]:
    return [place for place, canary in canaries.items() if any(form in text for form in written(canary))]


@pytest.mark.parametrize("way", FAULTS)
def test_no_secret_is_shown(octo: Any, tmp_path: Path, way: str) -> None:
    make = Canaries()
    with Echo(way) as server:
        config, process, beside = planted(server.url, make)
        (tmp_path / "app.yaml").write_text(json.dumps(config), encoding="utf-8")
        lines = [f"{name}={value}" for name, value in beside.items()]
        (tmp_path / "keys.env").write_text("\n".join(lines), encoding="utf-8")
        shown = ""
        for flow in config["flows"]:
            args = ("invoke", "--config", "app.yaml", "--flow", flow["name"])
            files = ("--log", f"{flow['name']}.jsonl", "--debug")
            shown += "".join(map(str, octo(*args, *files, environ=process)))
            shown += "".join(map(str, octo(*args, "-v", environ=process, terminal="out err")))
        for args in (("validate",), ("models",), ("models", "check")):
            shown += "".join(map(str, octo(*args, "--config", "app.yaml", environ=process)))
        asked = len(server.requests)

    assert len(make.all) == 40
    assert asked >= 2 * len(config["connectors"])
    assert found(shown, make.all) == []
    assert len(list(tmp_path.glob("*.jsonl"))) == len(config["connectors"])
    own = {tmp_path / "app.yaml", tmp_path / "keys.env"}
    for file in sorted(tmp_path.rglob("*")):
        if file.is_file() and file not in own:
            assert found(file.read_bytes().decode("latin-1"), make.all) == [], file.name


def test_no_secret_stands_in_what_a_debugger_shows(tmp_path: Path) -> None:
    make = Canaries()
    config, process, beside = planted("http://127.0.0.1:9", make)
    (tmp_path / "app.yaml").write_text(json.dumps(config), encoding="utf-8")
    loaded = load(tmp_path / "app.yaml", environ=process | beside)
    credentials = [one.credentials(process) for one in loaded.connectors if hasattr(one, "credentials")]

    assert all(isinstance(one, Credentials) for one in credentials)
    assert found(repr(credentials), make.all) == []


def test_a_secret_would_be_found() -> None:
    canary = {"x": "canary01/+Zq7Kx007919Wm"}

    for form in (canary["x"], quote_plus(canary["x"]), b64encode(f"ab{canary['x']}cd".encode()).decode()):
        assert found(f"said {form} so", canary) == ["x"]
