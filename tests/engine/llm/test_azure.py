"""octo/llm/azure.py: from the addresses that the portals show to the root of the API."""

import pytest

from octo.llm import azure


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("https://res.openai.azure.com", True),
        ("https://res.openai.azure.us/openai", True),
        ("https://res.openai.azure.cn/openai/v1", True),
        ("https://gate.azure-api.net/llm", True),
        ("https://gate.azure-api.us", True),
        ("https://gate.azure-api.cn", True),
        ("https://res.services.ai.azure.com/models", True),
        ("https://someone@RES.OpenAI.Azure.Com.:8443/openai", True),
        ("https://gw.example/team/openai/deployments/gpt", True),
        ("https://azure.com.example/openai", False),
        ("https://azure.com", False),
        ("https://gw.example/.azure.com", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_an_address_of_azure_is_told_by_its_host_or_the_path_of_a_deployment(base_url: str, expected: bool):
    assert azure.is_azure(base_url) is expected


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("https://res.openai.azure.com", "https://res.openai.azure.com/openai/v1"),
        ("https://res.openai.azure.com/", "https://res.openai.azure.com/openai/v1"),
        ("https://res.openai.azure.com:443/openai", "https://res.openai.azure.com:443/openai/v1"),
        ("https://res.openai.azure.com/openai/", "https://res.openai.azure.com/openai/v1"),
        ("https://res.openai.azure.com/openai/v1", "https://res.openai.azure.com/openai/v1"),
        ("https://res.openai.azure.com/openai/v1//", "https://res.openai.azure.com/openai/v1"),
        (
            "https://res.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
            "https://res.openai.azure.com/openai/v1",
        ),
        (
            "https://res.cognitiveservices.azure.com/openai/responses?api-version=2025-04-01-preview",
            "https://res.cognitiveservices.azure.com/openai/v1",
        ),
        (
            "https://res.openai.azure.com/openai/v1/chat/completions/?api-version=2024-10-21&a=b",
            "https://res.openai.azure.com/openai/v1?a=b",
        ),
        ("https://res.openai.azure.com/openai/v1/responses?a=b", "https://res.openai.azure.com/openai/v1?a=b"),
        (
            "https://res.openai.azure.com/openai?a=b&api-version=2024-10-21",
            "https://res.openai.azure.com/openai/v1?a=b",
        ),
        (
            "https://res.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
            "https://res.services.ai.azure.com/models?api-version=2024-05-01-preview",
        ),
        ("https://res.services.ai.azure.com/api/projects/p-1", "https://res.services.ai.azure.com/openai/v1"),
        (
            "https://res.services.ai.azure.com/api/projects/p-1/openai/v1/responses",
            "https://res.services.ai.azure.com/api/projects/p-1/openai/v1",
        ),
        ("https://gw.example/team/openai/deployments", "https://gw.example/team/openai/v1"),
        ("https://gw.example/team", "https://gw.example/team"),
        ("https://gw.example/team/", "https://gw.example/team"),
        ("https://gw.example/team/openai/v1?a=b", "https://gw.example/team/openai/v1?a=b"),
        (
            "https://res.openai.azure.com?api-version=preview",
            "https://res.openai.azure.com/openai/v1?api-version=preview",
        ),
    ],
)
def test_the_root_of_the_openai_api(base_url: str, root: str):
    assert azure.openai_root(base_url) == root


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("https://gw.example", "https://gw.example"),
        ("https://res.openai.azure.com", "https://res.openai.azure.com/openai/v1"),
        ("https://gw.example/openai/deployments/gpt", "https://gw.example/openai/v1"),
    ],
)
def test_an_address_that_need_not_be_one_of_azure(base_url: str, root: str):
    assert azure.openai_root_if_azure(base_url) == root


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/openai/v1", "/anthropic/v1", "/openai", "/anthropic/", "/models"),
        *(
            "/anthropic/v1/messages",
            "/openai/responses?api-version=2025-04-01-preview",
            "/openai/deployments/claude/chat",
        ),
        *("/models/chat/completions?api-version=2024-05-01-preview", "/api/projects/p", "/api/projects/p/openai/v1"),
    ],
)
def test_the_root_of_the_anthropic_api(path: str):
    assert (
        azure.claude_root(f"https://res.services.ai.azure.com{path}") == "https://res.services.ai.azure.com/anthropic"
    )


def test_the_root_of_the_anthropic_api_behind_a_gateway():
    assert azure.claude_root("https://gw.example/team/openai/v1?a=b") == "https://gw.example/team/anthropic?a=b"
