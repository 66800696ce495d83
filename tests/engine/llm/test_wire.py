"""octo/llm/wire.py: what wires have in common; octo/llm/facts.py: what is known of models."""

import pytest

from octo.llm.chat import ChatRequest, user
from octo.llm.credentials import Credentials
from octo.llm.facts import takes_temperature
from octo.llm.wire import Endpoint, PromptCache, to_bytes
from octo.values import Json


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"b": 1.0, "a": [2.5, True, None]}, '{"b":1,"a":[2.5,true,null]}'),
        ({"é": "日本 </script>"}, '{"é":"日本 </script>"}'),
        ([10.0**15, 1e21, -0.5], "[1000000000000000,1e+21,-0.5]"),
        ([12345678901234567890], "[12345678901234567890]"),
        ([float("inf")], '["inf"]'),
        ({"half": "\ud83d", "pair": "\ud83d\ude00"}, '{"half":"�","pair":"😀"}'),
    ],
    ids=["order and numbers", "text", "large numbers", "whole numbers of any size", "no number", "half an emoji"],
)
def test_a_body_as_bytes(body: Json, expected: str):
    assert to_bytes(body).decode() == expected


@pytest.mark.parametrize(
    ("setting", "asked", "expected"),
    [("auto", True, True), ("auto", False, False), ("on", False, True), ("off", True, False)],
)
def test_when_a_prompt_is_marked_for_caching(setting: PromptCache, asked: bool, expected: bool):
    endpoint = Endpoint(Credentials("p", "u", "k"), "m", prompt_cache=setting)

    assert endpoint.caches(ChatRequest((user("x"),), cache=asked)) is expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-4-6", True),
        ("claude-haiku-4-5-20251001", True),
        ("claude-opus-4-20250514", True),
        ("claude-opus-4.6", True),
        ("claude-opus-4-7", False),
        ("Claude-Opus-9", False),
        ("claude-something-new", False),
        ("claude-opus-4@20250514", True),
        ("claude-3-5-sonnet-20240620", True),
        ("anthropic.claude-sonnet-4-20250514-v1:0", True),
        ("claude-sonnet-latest", True),
        ("claude-sonnet-5", False),
        ("us.anthropic.claude-haiku-5-20270101-v1:0", False),
        ("claude-opus-5", False),
        ("claude-sonnet-10", False),
        ("my-gateway-alias", True),
    ],
)
def test_which_models_take_a_temperature(model: str, expected: bool):
    assert takes_temperature(model) is expected


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("leads/enrich.agent", "leads/enrich.agent"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 47 + "-9537c5fdf120482f"),
        ("", ""),
    ],
    ids=["short", "just fits", "too long", "none"],
)
def test_a_cached_prompt_has_one_key_in_all_runs(name: str, key: str):
    endpoint = Endpoint(Credentials("openai", "http://x", "authorization"), "m")

    assert endpoint.cache_key(ChatRequest((), cache=True, cache_key=name)) == key
    assert endpoint.cache_key(ChatRequest((), cache=False, cache_key=name)) == ""
