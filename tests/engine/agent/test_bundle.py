"""octo/agent/bundle.py, octo/agent/files.py, octo/agent/references.py: what agents need, and carrying it elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import octo
from octo.agent import bundle
from octo.agent.references import Reference, missing, references
from octo.agent.shown import yaml_document
from octo.errors import ConfigError

VALUES: dict[str, dict[str, Any]] = {
    "desk": {
        "connector": "llm",
        "prompt": {"resource": "p.md", "text": "for ${HOME}"},
        "model": "${MODEL}",
        "skills": [{"name": "s", "description": "d", "resource": "returns"}],
        "tools": [
            {"name": "look", "process": [{"ref": "finder"}]},
            {"name": "refund", "flow": "refunds", "inputs": {"key": {"value": "${SALT}"}}},
            {"name": "ask", "agent": "expert@2"},
            {"name": "self", "agent": {"name": "desk"}},
        ],
    },
    "expert": {"connector": "llm", "prompt": "x", "tools": [{"name": "gone", "agent": "nobody"}]},
}
CONFIG = """
env:
  - {name: MODEL, default: m1}
  - {name: SALT, default: pepper, secret: true}
  - {name: UNUSED}
resources:
  templates: [{resource: skills/r.md, as: returns}]
connectors:
  - {name: llm, type: llm-openai, settings: {apiKey: sk-literal-secret, model: '${MODEL}'}}
  - {name: unused, type: llm-openai, settings: {apiKey: x}}
processors:
  - {name: finder, type: set-payload, settings: {value: body}}
flows:
  - name: refunds
    process: [{type: flow-ref, settings: {flow: ledger}}]
  - name: ledger
    process: []
  - name: unused
    process: []
"""


@pytest.fixture
def config(tmp_path: Path) -> Any:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "r.md").write_text("How to return", encoding="utf-8")
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    return octo.load(tmp_path / "app.yaml", environ={}, cwd=tmp_path)


def test_what_a_value_refers_to_is_found_wherever_it_stands() -> None:
    assert [str(one) for one in references(VALUES["desk"])] == [
        "connector `llm`",
        "skill `returns`",
        "variable `MODEL`",
        "processor `finder`",
        "flow `refunds`",
        "variable `SALT`",
        "agent `expert`",
        "agent `desk`",
    ]


def test_what_is_not_there_is_found(config: Any) -> None:
    value = {
        "connector": "nope",
        "prompt": "${GONE} ${MODEL}",
        "skills": [{"name": "s", "description": "d", "resource": "lost.md"}, {"name": "r", "resource": "returns"}],
        "tools": [{"name": "a", "flow": "void"}, {"name": "b", "agent": "ghost"}, {"name": "c", "agent": "desk"}],
    }

    assert missing(value, config, ["desk"]) == [
        Reference("connector", "nope"),
        Reference("skill", "lost.md"),
        Reference("variable", "GONE"),
        Reference("flow", "void"),
        Reference("agent", "ghost"),
    ]


def test_a_bundle_holds_all_that_is_needed_once_and_no_credential(config: Any) -> None:
    made, left = bundle.bundle([Reference("agent", "desk")], VALUES.get, config)

    assert left == ["agent `nobody` is needed, and is not there"]
    assert made == {
        "env": [
            {"name": "MODEL", "default": "m1"},
            {"name": "SALT", "secret": True},
            {"name": "LLM_APIKEY", "required": True, "secret": True},
        ],
        "resources": {"templates": [{"resource": "skills/r.md", "as": "returns"}]},
        "connectors": [
            {"name": "llm", "type": "llm-openai", "settings": {"apiKey": "${LLM_APIKEY}", "model": "${MODEL}"}}
        ],
        "agents": [{"name": "desk", **VALUES["desk"]}, {"name": "expert", **VALUES["expert"]}],
        "processors": [{"name": "finder", "type": "set-payload", "settings": {"value": "body"}}],
        "flows": [
            {"name": "refunds", "process": [{"type": "flow-ref", "settings": {"flow": "ledger"}}]},
            {"name": "ledger", "process": []},
        ],
        "x-files": {"skills/r.md": "How to return"},
    }


FILES = {
    "code/count.py": "import json, helper\nfrom pack import *\n",
    "code/helper.py": "from .. import nowhere\n",
    "code/pack/__init__.py": "from .inner import x\nimport shared\n",
    "code/pack/inner.py": "x = 1",
    "shared.py": "",
    "letter.j2": "{% extends 'frame.j2' %}{% include body.name %}{% import 'lost.j2' as lost %}",
    "frame.j2": "{{ templateResource('line.txt') }}",
    "line.txt": 'at {{ templateResource( "returns" ) }} {{ templateResource(body.x) }}',
    "broken.j2": "{% if %}",
    "broken.py": "def (",
    "ask.md": "Ask.",
    "script.yaml": "turns: []",
    "unused.py": "",
}


def test_a_bundle_holds_the_files_that_tools_work_with_and_those_that_they_lead_to(config: Any) -> None:
    for name, text in FILES.items():
        path = config.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (config.root / "image.md").write_bytes(b"\xff")
    blocks = [
        {"type": "python", "settings": {"file": "code/count.py", "function": "f"}},
        {"ref": "runner", "file": "broken.py"},
        {"type": "template-resource", "id": "letter.j2"},
        {"ref": "writer", "settings": {"id": "broken.j2"}},
        {"type": "python", "file": "${NAMED}"},
        {"type": "python", "file": "../out.py"},
        {"type": "template-resource", "id": "gone.txt"},
        {"type": "ai-mapping", "prompt": {"resource": "image.md"}},
    ]
    value: dict[str, Any] = {
        "connector": "llm",
        "prompt": "x",
        "tools": [
            {"name": "a", "process": blocks},
            {"name": "b", "agent": {"connector": "llm", "prompt": {"resource": "ask.md"}}},
            {"name": "c", "process": [{"type": "llm-scripted", "settings": {"script": "script.yaml"}}]},
        ],
    }
    made, left = bundle.bundle([Reference("agent", "one")], {"one": value}.get, config)

    assert made["x-files"] == {name: text for name, text in FILES.items() if name != "unused.py"} | {
        "skills/r.md": "How to return"
    }
    assert made["resources"] == {"templates": [{"resource": "skills/r.md", "as": "returns"}]}
    assert sorted(left) == [
        'file `../out.py` is needed, and cannot be carried: resource id "../out.py" escapes the resource root',
        "file `gone.txt` is needed, and cannot be carried: resource `gone.txt` does not exist",
        "file `image.md` is needed, and cannot be carried: resource `image.md` is not UTF-8 text (line 1)",
        "file `lost.j2` is needed, and cannot be carried: resource `lost.j2` does not exist",
        "processor `runner` is needed, and is not there",
        "processor `writer` is needed, and is not there",
        "variable `NAMED` is needed, and is not there",
    ]


def test_without_a_config_a_bundle_holds_agents_alone() -> None:
    made, left = bundle.bundle([Reference("agent", "desk")], VALUES.get, None)

    assert list(made) == ["agents"]
    assert [one["name"] for one in made["agents"]] == ["desk", "expert"]
    assert left == ["agent `nobody` is needed, and is not there"]


def test_a_flow_takes_the_agents_that_it_links_along(config: Any) -> None:
    flow = "  - {name: main, process: [{type: ai-agent, agent: expert, input: body.q}]}\n"
    config.origin.path.write_text(CONFIG + flow, encoding="utf-8")
    made, _ = bundle.bundle([Reference("flow", "main")], VALUES.get, config)

    assert list(made) == ["env", "connectors", "agents", "flows"]
    assert [one["name"] for one in made["agents"]] == ["expert"]


def test_a_bundle_is_unpacked_into_the_values_that_went_in(config: Any, tmp_path: Path) -> None:
    made, _ = bundle.bundle([Reference("agent", "desk")], VALUES.get, config)
    file = tmp_path / "b.yaml"
    file.write_text(yaml_document(made), encoding="utf-8")

    found, warnings = bundle.unpack(made, str(file))
    assert {one.name: one.value for one in found} == VALUES
    assert warnings == []


def test_a_bundle_with_a_faulty_agent_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    file.write_text("agents: [{name: a, promt: x}]\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        bundle.unpack({"agents": [{"name": "a", "promt": "x"}]}, str(file))

    assert [problem.message for problem in caught.value.problems] == ['unknown field "promt" in agent `a`']
