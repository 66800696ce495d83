"""vendor/vertex.py: the double refuses what Vertex AI refuses."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from vendor.anthropic import reply
from vendor.vertex import VertexClaudeServer

Json = Any

GOOD: Json = {
    "anthropic_version": "vertex-2023-10-16",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hello"}],
}
TOKEN = {"authorization": "Bearer t"}


@pytest.mark.parametrize(
    ("method", "headers", "body", "status", "text"),
    [
        ("rawPredict", TOKEN, GOOD, 200, ""),
        ("streamRawPredict", TOKEN, {**GOOD, "stream": True}, 200, ""),
        ("predict", TOKEN, GOOD, 404, "Not found"),
        ("rawPredict", {"x-api-key": "k"}, GOOD, 401, "missing required authentication"),
        ("rawPredict", {**TOKEN, "x-api-key": "k"}, GOOD, 400, "are no headers of this API"),
        ("rawPredict", {**TOKEN, "anthropic-version": "2023-06-01"}, GOOD, 400, "are no headers of this API"),
        ("rawPredict", {**TOKEN, "anthropic-beta": "x"}, GOOD, 400, "nothing is to be sent for it"),
        ("rawPredict", TOKEN, {**GOOD, "anthropic_version": "2023-06-01"}, 400, "anthropic_version: Field required"),
        ("rawPredict", TOKEN, {**GOOD, "model": "claude"}, 400, "model: Extra inputs are not permitted"),
        ("rawPredict", TOKEN, {**GOOD, "stream": True}, 400, "stream: does not match the method"),
        ("rawPredict", TOKEN, {**GOOD, "messages": []}, 400, "at least one message is required"),
    ],
    ids=[
        "good",
        "good stream",
        "method",
        "no token",
        "a key beside it",
        "version header",
        "beta header",
        "other version",
        "model in the body",
        "stream of another method",
        "a rule of the vendor",
    ],
)
def test_what_is_taken_and_what_is_refused(
    method: str, headers: dict[str, str], body: Json, status: int, text: str
) -> None:
    with VertexClaudeServer([reply("x")]) as server:
        answer = httpx.post(f"{server.base_url}/claude-x@1:{method}", headers=headers, json=body)

    assert answer.status_code == status
    assert text in answer.text
