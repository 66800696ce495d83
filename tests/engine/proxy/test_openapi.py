"""octo/proxy/openapi.py: what the proxy says of itself is true, by requests that Schemathesis draws from it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import httpx

import octo
from octo.proxy.guard import Guard
from proxied import proxy
from vendor.server import Answer, Request, Server

SCHEMATHESIS = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "octo-tests" / "schemathesis" / "bin" / "st"
)
EXAMPLES = 400 if os.environ.get("OCTO_SOAK") == "1" else 8
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "ignored_auth",
)


class Vendor(Server):
    """Answers everything, in the form of the API that is asked."""

    def answer(self, request: Request) -> Answer:
        body: Any = {"object": "list", "data": [{"id": "m"}]}
        if request.path.endswith("chat/completions"):
            choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
            body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        elif request.path.endswith("messages"):
            content = [{"type": "text", "text": "hi"}]
            body = {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn", "usage": {}}
        return Answer(200, (("content-type", "application/json"),), (json.dumps(body).encode(),))


DEMO = """
connectors:
  - name: demo
    type: llm-scripted
    settings: { model: m, rules: [{ when: "true", text: hi }] }
"""


def config(vendor: str) -> str:
    return f"""{DEMO}
  - {{ name: claude, type: llm-anthropic, settings: {{ baseURL: '{vendor}', apiKey: k, model: m }} }}
  - {{ name: gpt, type: llm-openai, settings: {{ baseURL: '{vendor}/v1', apiKey: k, model: m }} }}
"""


async def schemathesis(url: str, folder: Path, *options: str) -> str:
    """What Schemathesis says when it is content."""
    process = await asyncio.create_subprocess_exec(
        *(str(SCHEMATHESIS), "run", f"{url}/openapi.json", "--seed", "1", "--no-color"),
        *("--max-examples", str(EXAMPLES), "--generation-database", "none", *options),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    return told.decode()


async def test_every_request_that_is_described_has_an_answer_that_is_described(tmp_path: Path):
    with Vendor() as vendor:
        async with proxy(config(vendor.url), default="demo", guard=Guard(token="open")) as served:
            auth = ("--header", "Authorization: Bearer open")
            told = await schemathesis(served.url, tmp_path, *auth, "--checks", ",".join(CHECKS))

    assert "12 selected / 12 total" in told


async def test_every_request_for_a_model_that_is_described_is_answered(tmp_path: Path):
    async with proxy(DEMO) as served:
        only = ("--include-path-regex", "^/v1/(chat|fim)/")
        told = await schemathesis(served.url, tmp_path, *only, "--checks", "positive_data_acceptance")

    assert "2 selected / 12 total" in told


async def test_the_description_names_the_connectors_and_the_token():
    async with proxy(DEMO, guard=Guard(token="open")) as served, httpx.AsyncClient() as client:
        answer = await client.get(f"{served.url}/openapi.json", headers={"authorization": "Bearer open"})

    found = answer.json()
    below = found["paths"]["/c/{connector}/v1/chat/completions"]
    assert (found["openapi"], found["info"]["version"]) == ("3.1.0", octo.__version__)
    assert below["parameters"][0]["schema"] == {"enum": ["demo"]}
    assert found["security"] == [{"token": []}]
