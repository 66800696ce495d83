"""octo_cli/agents/carry.py: adopt, export and import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desks import APP, answer, failure

FILES = {
    "code/count.py": "from helper import twice\n\n\ndef double(body):\n    return twice(body['n'])\n",
    "code/helper.py": "def twice(n):\n    return 2 * n\n",
    "texts/ask.md": "Be brief.\n",
    "texts/letter.j2": 'Dear {% include "texts/who.j2" %}',
    "texts/returns.md": 'Returns: {{ templateResource("texts/rule.txt") }}',
    "texts/rule.txt": "{{ body.name }} within 30 days\r\n",
    "texts/who.j2": "number {{ body.n }}\n",
}
WITH_FILES = """\
connectors:
  - name: llm
    type: llm-scripted
    settings:
      turns:
        - calls:
            - {name: count, args: {n: 2}}
            - {name: letter, args: {n: 2}}
            - {name: load_skill, args: {name: back}}
            - {name: ask, args: {user_message: well?}}
            - {name: lost, args: {}}
        - {text: brief}
        - {text: done}
resources: {templates: [{resource: texts/returns.md, as: returns}]}
agents:
  desk:
    connector: llm
    prompt: {resource: prompt.md}
    skills: [{name: back, description: d, resource: returns}]
    tools:
      - {name: count, process: [{type: python, settings: {file: code/count.py, function: double}}]}
      - {name: letter, process: [{type: template-resource, id: texts/letter.j2}]}
      - {name: ask, agent: {connector: llm, prompt: {resource: texts/ask.md}}}
      - {name: lost, process: [{type: python, file: code/lost.py, function: f}]}
flows:
  - name: main
    process:
      - {type: ai-agent, name: answer, agent: desk, input: body.name}
"""


@pytest.fixture
def bundle(agents: Any) -> Any:
    """Make a bundle of an agent whose tools work with files, in a directory without anything else; what that told."""
    for name, text in {**FILES, "prompt.md": "Be kind.\n", "app.yaml": WITH_FILES}.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(text.encode())
    Path("there").mkdir()
    return agents("export --flow main --with-deps --config app.yaml --out there/bundle.yaml", terminal="err").stderr


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


@pytest.mark.parametrize("fallback", ["spare", "[spare]"], ids=["one", "a list"])
def test_connectors_that_stand_in_are_carried_too(agents: Any, octo: Any, fallback: str) -> None:
    key = "sk-" + "a" * 30
    Path("app.yaml").write_text(
        "connectors:\n"
        f"  - {{name: main, type: llm-custom, settings: {{baseURL: 'http://a.example', fallback: {fallback}}}}}\n"
        f"  - {{name: spare, type: llm-openai, settings: {{apiKey: {key}, fallback: last}}}}\n"
        "  - {name: last, type: llm-scripted, settings: {turns: [{text: hi}]}}\n"
        "  - {name: unused, type: llm-scripted, settings: {turns: [{text: hi}]}}\n"
        "agents: {a: {connector: main, prompt: p}}\n",
        encoding="utf-8",
    )

    assert agents("export a --with-deps --config app.yaml --out b.yaml", terminal="err").stderr == ""

    text = Path("b.yaml").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("  - name")] == [
        "  - name: SPARE_APIKEY",
        "  - name: main",
        "  - name: spare",
        "  - name: last",
        "  - name: a",
    ]
    assert key not in text
    assert octo("validate", "--config", "b.yaml", environ={"SPARE_APIKEY": "k"}).status == 0


def test_variables_that_expressions_read_are_carried_too(agents: Any, octo: Any) -> None:
    Path("app.yaml").write_text(
        "env: [{name: RATE, default: '3'}, {name: CITY, default: Oslo}, {name: ZONE, default: z}, {name: UNUSED}]\n"
        "connectors:\n"
        "  - name: m\n"
        "    type: llm-scripted\n"
        "    settings: {turns: [{calls: [{name: t, args: {}}]}, {text: ok}]}\n"
        "agents:\n"
        "  a:\n"
        "    connector: m\n"
        "    prompt: Read env.NOTHING, and my.env.UNUSED.\n"
        "    tools:\n"
        "      - {name: t, inputs: {zone: {expr: 'env[\"ZONE\"]'}}, flow: rate}\n"
        "flows:\n"
        "  - {name: rate, process: [{type: set-payload, settings: {value: 'env.RATE + env.?CITY.orValue(\"\")'}}]}\n"
        "  - {name: main, process: [{type: ai-agent, agent: a, name: b}]}\n",
        encoding="utf-8",
    )

    assert agents("export --flow main --with-deps --config app.yaml --out there.yaml", terminal="err").stderr == ""

    text = Path("there.yaml").read_text(encoding="utf-8")
    assert text.partition("connectors:")[0].splitlines()[1:] == [
        "env:",
        "  - name: ZONE",
        "    default: z",
        "  - name: RATE",
        "    default: '3'",
        "  - name: CITY",
        "    default: Oslo",
    ]
    told = octo("invoke", "--config", "there.yaml", "--flow", "main", "-v", "--store", ":memory:")
    assert 'result="\\"3Oslo\\""' in told.stderr


def test_a_name_that_is_nearly_right_is_told_once(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")

    assert failure(agents("export dusk --with-deps --config app.yaml", terminal="err")) == (
        'agent "dusk" not found',
        "did you mean `desk`?",
        2,
    )


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


def test_an_agent_works_in_an_empty_directory_with_the_files_of_its_tools(
    bundle: str, agents: Any, octo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = "resource `code/lost.py` does not exist"
    assert bundle == f"warning: file `code/lost.py` is needed, and cannot be carried: {lost}\n"
    monkeypatch.chdir("there")
    assert agents("import bundle.yaml", terminal="out").stdout == (
        "imported desk v1\n" + "".join(f"wrote {name}\n" for name in FILES)
    )
    assert {name: Path(name).read_bytes().decode() for name in FILES} == FILES
    assert answer(agents("import bundle.yaml")) == {
        "imported": [{"name": "desk", "version": 1, "changed": False}],
        "files": [],
    }

    ran = octo("invoke", "--config", "bundle.yaml", "--flow", "main", "--log", "log", "--data", '{"name": "hats"}')
    assert (ran.status, json.loads(ran.stdout)["body"]) == (0, "done")
    records = map(json.loads, Path("log").read_text(encoding="utf-8").splitlines())
    results = [record["attrs"] for record in records if record["kind"] == "agent.tool_result"]
    assert {one["tool"]: (one["isError"], one["output"]) for one in results} == {
        "count": (False, 4),
        "letter": (False, "Dear number 2\n"),
        "load_skill": (False, "Returns: hats within 30 days\r\n"),
        "ask": (False, "brief"),
        "lost": (True, f"tool `lost`: `process.0.file`: {lost}"),
    }


def test_an_import_overwrites_no_file_and_writes_none_elsewhere(bundle: str, agents: Any) -> None:
    Path("there/code").mkdir()
    Path("there/code/count.py").write_text("mine", encoding="utf-8")
    Path("there/code/helper.py").write_bytes(b"\xff")
    Path("there/texts").mkdir()
    Path("there/texts/ask.md").mkdir()
    outcome = agents("import there/bundle.yaml", terminal="err")

    there = ("code/count.py", "code/helper.py", "texts/ask.md")
    assert outcome.stderr == "".join(
        f"warning: file `{name}` is there, and says something else: it stays as it is\n" for name in there
    )
    assert json.loads(outcome.stdout)["files"] == [name for name in FILES if name not in there]
    assert Path("there/code/count.py").read_text(encoding="utf-8") == "mine"

    text = Path("there/bundle.yaml").read_text(encoding="utf-8").replace("  code/helper.py:", "  ../helper.py:")
    Path("there/bundle.yaml").write_text(text, encoding="utf-8")
    outcome = agents("import there/bundle.yaml", terminal="err")
    assert (outcome.stderr, outcome.status) == (
        'error: the bundle holds a file that cannot be: resource id "../helper.py" escapes the resource root\n',
        2,
    )
    assert not Path("helper.py").exists()


@pytest.mark.parametrize("name", [".env", "code/.hidden/a.py", "agents/other.agent.yaml"])
def test_a_file_that_would_have_an_effect_of_its_own_is_not_imported(bundle: str, agents: Any, name: str) -> None:
    text = Path("there/bundle.yaml").read_text(encoding="utf-8").replace("  code/helper.py:", f"  {name}:")
    Path("there/bundle.yaml").write_text(text, encoding="utf-8")
    outcome = agents("import there/bundle.yaml", terminal="err")

    assert failure(outcome) == (
        f"the bundle holds a file that no tool works with: `{name}`",
        "take it out of `x-files`",
        2,
    )
    assert not (Path("there") / name).exists()


def test_with_a_config_files_come_beside_that(bundle: str, agents: Any) -> None:
    Path("here").mkdir()
    Path("here/app.yaml").write_text(APP, encoding="utf-8")
    told = agents("import there/bundle.yaml --config here/app.yaml", terminal="err").stderr

    assert [name for name in FILES if not (Path("here") / name).is_file()] == []
    assert told == (
        "warning: agent desk: skill `returns` is not there\nwarning: agent desk: file `code/lost.py` is not there\n"
    )


OTHERWISE = "warning: agent desk: declared otherwise in `app.yaml`: that comes into force with the next run\n"


@pytest.mark.parametrize("with_config", [" --config app.yaml", ""], ids=["config", "no config"])
def test_an_agent_whose_file_was_edited_since_is_exported_with_a_warning(
    agents: Any, octo: Any, with_config: str
) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    assert agents(f"export desk{with_config}", terminal="err").stderr == ""
    Path("app.yaml").write_text(APP.replace("Be kind.", "Be brief."), encoding="utf-8")
    told = agents(f"export desk{with_config}", terminal="err")

    assert "prompt: Be kind." in told.stdout
    assert told.stderr == OTHERWISE


def test_an_agent_that_a_config_is_about_to_declare_is_exported_with_a_warning(agents: Any) -> None:
    agents("deploy desk --file one.agent.yaml")

    assert agents("export desk --config app.yaml", terminal="err").stderr == OTHERWISE


def test_an_agent_that_was_deployed_since_is_exported_without_a_word(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    agents("deploy desk --file one.agent.yaml")

    assert agents("export desk --config app.yaml", terminal="err").stderr == ""


def test_an_agent_of_a_file_that_is_gone_is_exported_without_a_word(agents: Any, octo: Any) -> None:
    octo("invoke", "--config", "app.yaml", "--flow", "find")
    Path("app.yaml").unlink()

    assert agents("export desk", terminal="err").stderr == ""
