"""octo_cli/commands/models.py, octo/models.py: providers, connectors that can be used, and one tiny call of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from octo.llm.providers import PROVIDERS
from octo.models import known
from vendor import AnthropicServer, error, reply

CONFIG = """\
env:
  - {name: THE_KEY, secret: true}
connectors:
  - {name: main, type: llm-anthropic, settings: {apiKey: '${THE_KEY}', baseURL: "ADDRESS", fallback: spare}}
  - name: spare
    type: llm-scripted
    settings: {model: m-1, turns: [{text: ok, usage: {inputTokens: 5, outputTokens: 1}}]}
  - {name: log, type: logger}
aiPricing:
  "spare:m-1": {input: 100, output: 500}
flows:
  - name: broken
    process: [{type: no-such-block}]
"""
KEY = {"THE_KEY": "sk-secret-0123456789"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "app.yaml"
    file.write_text(CONFIG.replace("ADDRESS", "http://127.0.0.1:9"), encoding="utf-8")
    return file


def test_every_provider_is_listed_with_what_it_reads_and_gives(octo: Any) -> None:
    stdout, stderr, status = octo("models")
    providers = {one["type"]: one for one in json.loads(stdout)["providers"]}

    assert (stderr, status) == ("", 0)
    assert {row.connector for row in PROVIDERS.values()} | {"llm-scripted"} == providers.keys()
    assert providers["llm-deepseek"] == {
        "type": "llm-deepseek",
        "api": "Chat Completions",
        "model": "deepseek-chat",
        "reads": [],
        "gives": ["text"],
        "missing": None,
    }
    assert providers["llm-gemini"]["gives"] == ["text", "images", "vectors"]
    assert providers["llm-scripted"]["reads"] == "every type"


def test_a_terminal_shows_a_table(octo: Any, config: Path) -> None:
    lines = octo("models", "--config", str(config), environ=KEY, terminal="out").stdout.splitlines()

    assert lines[0].split() == ["CONNECTOR", "TYPE", "API", "DEFAULT", "MODEL", "READS", "GIVES"]
    assert " ".join(lines[1].split()) == "llm-anthropic Anthropic Messages claude-sonnet-4-6 documents, images text"
    assert [" ".join(line.split()) for line in lines[-3:]] == [
        "CONNECTOR TYPE MODEL USABLE",
        "main llm-anthropic claude-sonnet-4-6 yes, key from `apiKey` (variable `THE_KEY`)",
        "spare llm-scripted m-1 yes",
    ]


def test_a_variable_that_only_one_connector_requires_is_no_fault_of_the_others(octo: Any, config: Path) -> None:
    text = config.read_text(encoding="utf-8").replace("secret: true", "secret: true, required: true")
    config.write_text(text, encoding="utf-8")
    main, spare = json.loads(octo("models", "--config", str(config)).stdout)["connectors"]

    assert (main["usable"], spare["usable"], spare["problems"]) == (False, True, [])
    assert [one["message"] for one in main["problems"]] == ['required environment variable "THE_KEY" is not set']


def test_a_connector_without_its_key_cannot_be_used_and_the_others_can(octo: Any, config: Path) -> None:
    outcome = octo("models", "--config", str(config))
    main, spare = json.loads(outcome.stdout)["connectors"]

    assert (main["usable"], spare["usable"], outcome.status) == (False, True, 0)
    assert main["fallback"] == ["spare"]
    assert main["problems"] == [
        {
            "message": 'environment variable "THE_KEY" is referenced but not set and has no default',
            "hint": "run `export THE_KEY=…`, or put `THE_KEY=…` into `.env` in the directory where you run octo",
        }
    ]


def test_a_check_tells_what_came_back_and_what_it_cost(octo: Any, config: Path) -> None:
    with AnthropicServer([reply("ok", usage={"input_tokens": 12, "output_tokens": 3})]) as server:
        config.write_text(CONFIG.replace("ADDRESS", server.url), encoding="utf-8")
        outcome = octo("models", "check", "--config", str(config), environ=KEY)
    told = json.loads(outcome.stdout)
    main, spare = told["connectors"]

    assert (told["ok"], outcome.status, server.refusals) == (True, 0, [])
    assert (main["text"], main["tokensRead"], main["tokensWritten"], main["costUSD"]) == ("ok", 12, 3, None)
    assert (spare["model"], spare["text"], spare["costUSD"]) == ("m-1", "ok", 0.001)
    (request,) = server.requests
    assert request.json["max_tokens"] == 4096


def test_a_check_of_one_that_fails_is_a_failure_and_nobody_stands_in(octo: Any, config: Path) -> None:
    with AnthropicServer([error(401, "invalid x-api-key sk-secret-0123456789")]) as server:
        config.write_text(CONFIG.replace("ADDRESS", server.url), encoding="utf-8")
        outcome = octo("models", "check", "--config", str(config), environ=KEY, terminal="out")

    first, hint, second = outcome.stdout.splitlines()
    assert outcome.status == 1
    assert first == 'main: failed: llm-anthropic complete: connector "main": status 401: invalid x-api-key ***'
    assert hint == "  hint: check the key, which comes from `apiKey` (variable `THE_KEY`)"
    assert second.startswith("spare: m-1 answered `ok` in ")
    assert second.endswith(", 5 → 1 tokens, $0.001")


def test_an_empty_answer_is_a_failure(octo: Any, config: Path) -> None:
    with AnthropicServer([reply(" ", stop_reason="refusal")] * 2) as server:
        config.write_text(CONFIG.replace("ADDRESS", server.url), encoding="utf-8")
        shown = octo("models", "check", "--config", str(config), environ=KEY, terminal="out")
        told = json.loads(octo("models", "check", "--config", str(config), environ=KEY).stdout)

    assert (shown.status, told["ok"], [one["ok"] for one in told["connectors"]]) == (1, False, [False, True])
    assert "answered no text (refusal) in " in shown.stdout
    assert [one["error"] for one in told["connectors"]] == ["no text (refusal)", None]


def test_a_config_without_models_says_so(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("flows: []", encoding="utf-8")

    for status, args in enumerate((["models"], ["models", "check"])):
        outcome = octo(*args, "--config", "app.yaml", terminal="out")
        assert (outcome.stdout.splitlines()[-1], outcome.status) == ("The config has no connectors to models.", status)
    assert json.loads(octo("models", "check", "--config", "app.yaml").stdout) == {"ok": False, "connectors": []}


def test_a_file_that_is_no_config_is_an_error(octo: Any) -> None:
    outcome = octo("models", "--config", "nowhere.yaml")

    assert (outcome.stdout, outcome.status) == ("", 2)
    assert "config `nowhere.yaml` does not exist" in outcome.stderr


def test_every_type_that_leads_to_an_api_has_a_row() -> None:
    assert all(one.api and one.gives[0] == "text" for one in known())
