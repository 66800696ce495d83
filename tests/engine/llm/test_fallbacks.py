"""octo/llm/fallbacks.py: which parameters of a call its refusal is about."""

import json

import pytest

from octo.errors import ContextTooLong, ProviderError
from octo.llm import fallbacks
from octo.llm.wire import HttpCall

EVERYTHING = {
    "model": "m",
    "messages": [],
    "stream_options": {"include_usage": True},
    "usage": {"include": True},
    "prompt_cache_key": "k",
    "max_completion_tokens": 9,
    "temperature": 0.5,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "low", "summary": "auto"},
}


def call(**body: object) -> HttpCall:
    return HttpCall("http://x", (), json.dumps(body or EVERYTHING).encode())


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ('{"error": "Unknown parameter: stream_options"}', {"stream_options", "usage"}),
        ("include_usage: unexpected", {"stream_options", "usage"}),
        ("Additional properties are not allowed", {"stream_options", "usage"}),
        ('{"param": "prompt_cache_key"}', {"prompt_cache_key"}),
        ("Unsupported parameter: 'max_tokens'", {"max_completion_tokens"}),
        ("use max_completion_tokens", {"max_completion_tokens"}),
        ("`Temperature` does not support 0.5", {"temperature"}),
        ("temperature and max_tokens are not supported", {"temperature", "max_completion_tokens"}),
        ("invalid temperature: only 1 is allowed for this model", {"temperature"}),
        ("`temperature` and `top_p` cannot both be specified for this model", {"temperature"}),
        ('{"error": {"message": "no", "param": "temperature"}}', {"temperature"}),
        ('{"error": {"message": "Extra inputs are not permitted", "loc": ["prompt_cache_key"]}}', {"prompt_cache_key"}),
        ("temperature: not this one", set()),
        ("max_completion_tokens is too large: 100000. This model supports at most 16384 completion tokens", set()),
        ('{"error": {"message": "max_tokens is too large: 9", "param": "max_tokens"}}', set()),
        ("temperature must be between 0 and 2", set()),
        ("Invalid schema for function 'get_temperature': 'x' is not valid", set()),
        ("Invalid schema for function 'f': additional properties are not allowed ('y' was unexpected)", set()),
        ("Invalid value for 'messages': temperature", set()),
        ("Additional properties are not allowed: prompt_cache_key", {"stream_options", "usage", "prompt_cache_key"}),
        ('{"param": "reasoning.summary"}', {"reasoning.summary"}),
        ("Your organization must be verified to generate reasoning summaries", {"reasoning.summary"}),
        ("Encrypted content is not supported with this model.", {"include"}),
        ("The encrypted content gAAA... could not be verified.", {"include"}),
        ("Reasoning input items can only be provided to a reasoning model", {"include"}),
        ("no such model", set()),
        ("", set()),
    ],
)
def test_a_refusal_names_parameters(body: str, named: set[str]):
    assert fallbacks.refused(ProviderError("no", status=400, body=body), call()) == named


def test_what_was_not_sent_cannot_be_refused():
    error = ProviderError("no", status=400, body="unknown: temperature, max_tokens and stream_options")

    assert fallbacks.refused(error, call(model="m", max_tokens=1)) == {"max_tokens"}


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("no", status=401, body="temperature: unknown"),
        ProviderError("no", status=500, body="temperature: unknown"),
        ProviderError("temperature", status=400),
        ProviderError("no answer", body="temperature: unknown"),
        ContextTooLong("too long", status=400, body="unknown context length, lower max_tokens"),
    ],
    ids=["401", "500", "not in the body", "no status", "too long"],
)
def test_other_failures_are_no_refusals_of_a_parameter(error: ProviderError):
    assert fallbacks.refused(error, call()) == set()


def test_an_unverified_organization_may_also_be_forbidden_to_ask():
    error = ProviderError("no", status=403, body="reasoning.summary: verify organization; temperature")

    assert fallbacks.refused(error, call()) == {"reasoning.summary"} == fallbacks.LASTING
    assert fallbacks.refused(error, call(reasoning={"effort": "low"})) == set()
