"""octo_cli/agents/carry.py: adopt, export and import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from desks import APP, answer


def test_an_agent_of_another_file_is_adopted(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    Path("other.yaml").write_text(APP.replace("Be kind.", "Be brief."), encoding="utf-8")
    refused = octo("invoke", "--config", "other.yaml", "--flow", "find", terminal="err")
    assert refused.status == 2
    assert f'agent "desk" is declared by `{Path.cwd() / "app.yaml"}`, in another way' in refused.stderr

    assert answer(agents("adopt desk --config other.yaml")) == {
        "adopted": [{"name": "desk", "version": 2, "changed": True}]
    }
    assert answer(agents("adopt desk --config other.yaml")) == {
        "adopted": [{"name": "desk", "version": 2, "changed": False}]
    }
    assert octo("invoke", "--config", "other.yaml", "--flow", "find").status == 0


def test_agents_are_carried_to_another_store(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    assert agents("export desk --with-deps --config app.yaml --out bundle.yaml") == ("", "", 0)
    assert Path("bundle.yaml").read_text(encoding="utf-8") == (
        "# Made by `octo agents export`; `octo agents import FILE` brings the agents into a store.\n"
        "env:\n"
        "  - name: MODEL\n"
        "    default: m1\n"
        "connectors:\n"
        "  - name: llm\n"
        "    type: llm-scripted\n"
        "    settings:\n"
        "      rules:\n"
        "        - text: hi\n"
        "          when: 'true'\n"
        "agents:\n"
        "  - name: desk\n"
        "    description: Answers customers\n"
        "    connector: llm\n"
        "    model: ${MODEL}\n"
        "    prompt: Be kind.\n"
        "    tools:\n"
        "      - name: look\n"
        "        flow: find\n"
        "flows:\n"
        "  - name: find\n"
        "    process: []\n"
    )
    assert answer(agents("import bundle.yaml --store there")) == {
        "imported": [{"name": "desk", "version": 1, "changed": True}]
    }
    assert answer(agents("import bundle.yaml --store there")) == {
        "imported": [{"name": "desk", "version": 1, "changed": False}]
    }
    one, other = (answer(agents(f"show desk{where}")) for where in ("", " --store there"))
    assert one["hash"] == other["hash"]


def test_no_credential_of_a_connector_is_carried_and_one_of_an_agent_is_told(agents: Any) -> None:
    key = "sk-" + "a" * 30
    Path("app.yaml").write_text(
        "env: [{name: PW, default: x}]\n"
        "connectors:\n"
        "  - name: far\n"
        "    type: llm-anthropic\n"
        f"    settings: {{apiKey: k, baseURL: 'https://u:hidden@far.example/v1', headers: {{x-more: {key}}}}}\n"
        "  - {name: near, type: llm-anthropic, settings: {apiKey: k, baseURL: 'https://u:${PW}@near.example'}}\n"
        "agents:\n"
        f"  a: {{connector: far, prompt: p, description: {key}}}\n"
        "  b: {connector: near, prompt: p}\n",
        encoding="utf-8",
    )

    told = agents("export a b --with-deps --config app.yaml", terminal="err")
    assert "warning: `agents.a.description` looks like a secret, and is exported as it is\n" in told.stderr
    assert "hidden" not in told.stdout
    assert told.stdout.count(key) == 1
    for line in ("https://${FAR_BASEURL_USER}@far.example/v1", "https://u:${PW}@near.example", "${FAR_HEADERS_X_MORE}"):
        assert line in told.stdout


@pytest.mark.parametrize("verb", ["import b.yaml", "deploy a --file a.yaml"])
@pytest.mark.parametrize("prompt", ["", "prompt: null", "prompt: ' '"])
def test_an_agent_without_a_prompt_does_not_come_into_the_store(agents: Any, verb: str, prompt: str) -> None:
    Path("b.yaml").write_text(f"agents:\n  - name: a\n    connector: far\n    {prompt}\n", encoding="utf-8")
    Path("a.yaml").write_text(f"connector: far\n{prompt}\n", encoding="utf-8")
    told = agents(verb, terminal="err")

    assert "ai-agent requires a prompt" in told.stderr
    assert told.status == 2
    assert answer(agents("list")) == {"agents": []}


def test_a_key_of_other_tools_is_left_out_at_import(agents: Any) -> None:
    Path("b.yaml").write_text("agents: {a: {connector: llm, prompt: x, streaming: true}}\n", encoding="utf-8")
    outcome = agents("import b.yaml", terminal="err")

    assert outcome.stderr == (
        "warning: agent a: `streaming` is left out: how much is shown is the affair of the caller\n"
    )
    assert answer(agents("show a"))["value"] == {"connector": "llm", "prompt": "x"}


def test_what_an_imported_agent_needs_and_the_config_lacks_is_told(agents: Any) -> None:
    Path("b.yaml").write_text("agents: {a: {connector: far, prompt: x}}\n", encoding="utf-8")

    assert agents("import b.yaml --config app.yaml", terminal="err").stderr == (
        "warning: agent a: connector `far` is not there\n"
    )
