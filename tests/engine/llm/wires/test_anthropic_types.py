"""octo/llm/wires/anthropic.py: every request is one that the vendor's published types allow."""

import json

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from histories import requests
from octo.llm.chat import ChatRequest
from octo.llm.credentials import Credentials
from octo.llm.wire import Endpoint
from octo.llm.wires import anthropic
from soaking import examples
from vendor.anthropic import search
from vendor.typed import mismatches

CREDENTIALS = Credentials("anthropic", "https://api.anthropic.com/v1", "x-api-key", api_key="key")
OWN = [
    {"wire": "anthropic", "signature": "c2ln"},
    {"wire": "anthropic", "data": "c2ln"},
    *({"wire": "anthropic", "block": block} for block in search("a", ("https://a", "A"))),
]
BEYOND = {"temperature"}
"""The newest models take none, so the types have lost it; the API takes it from the models before them."""
EXAMPLES = examples(few=150, all=4_000)


@given(
    request=requests(OWN),
    stream=st.booleans(),
    endpoint=st.sampled_from(
        [
            Endpoint(CREDENTIALS, "claude-sonnet-4-6", max_tokens=4096),
            Endpoint(CREDENTIALS, "claude-sonnet-4-6", max_tokens=4096, thinking="adaptive", prompt_cache="on"),
            Endpoint(CREDENTIALS, "claude-opus-4-1", max_tokens=4096, thinking="budgeted", thinking_budget=1024),
        ]
    ),
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_published_types_allow_every_request(request: ChatRequest, stream: bool, endpoint: Endpoint) -> None:
    call = anthropic.encode(request, endpoint, stream=stream)

    expected = MessageCreateParamsStreaming if stream else MessageCreateParamsNonStreaming
    assert mismatches(json.loads(call.body), expected, beyond=BEYOND) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_token": 1}, "max_token"),
        ({"max_tokens": "1"}, "max_tokens"),
        ({"messages": [{"role": "user"}]}, "content"),
    ],
    ids=["unknown key", "wrong kind", "missing key"],
)
def test_the_published_types_would_notice(change: dict[str, object], said: str) -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [], **change}

    assert any(said in mismatch for mismatch in mismatches(body, MessageCreateParamsNonStreaming))
