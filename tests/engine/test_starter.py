"""octo/starter.py: projects to start from load, run, are tested, and are laid out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import octo
from octo.dotenv import parse
from octo.layout.lay_out import lay_out
from octo.runtime import Runtime
from octo.starter import Kind, start
from octo.testing.pairing import pairs
from octo.testing.results import Result
from octo.testing.runner import Runner, Surroundings
from octo.testing.trial import trials

KINDS: list[Kind] = ["flow", "agent"]


def texts(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file()}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_project_runs_at_once(tmp_path, kind):
    project = start(tmp_path / "shop", kind)
    config = octo.load(project.config, environ={}, cwd=tmp_path)

    async with Runtime(config) as runtime:
        message = await runtime.invoke(project.flow, json.loads(project.data))

    assert config.warnings == ()
    assert message.body == {"flow": {"text": "Hello, Ada!"}, "agent": {"answer": "Order 17 is on its way."}}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_project_has_a_config_a_suite_and_an_example_of_an_env_file(tmp_path, kind):
    project = start(tmp_path / "shop", kind)

    assert sorted(texts(tmp_path / "shop")) == [".env.example", f"{kind}.yaml", f"{kind}_test.yaml"]
    assert set(project.files) == {file for file in (tmp_path / "shop").rglob("*") if file.is_file()}
    assert len(parse(texts(tmp_path / "shop")[".env.example"])) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_of_a_project_are_laid_out(tmp_path, kind):
    for file in start(tmp_path / "shop", kind).files:
        if file.suffix == ".yaml":
            assert lay_out(file.read_bytes(), file.name) == file.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_cases_of_the_suite_are_true(tmp_path, kind):
    project = start(tmp_path / "shop", kind)
    suite: Any = yaml.safe_load(texts(tmp_path / "shop")[f"{kind}_test.yaml"])
    config = octo.load(project.config, environ=suite.get("env", {}), cwd=tmp_path)

    for case in suite["cases"]:
        given = suite["inputs"][case["input"]] if isinstance(case["input"], str) else case["input"]
        async with Runtime(config) as runtime:
            message = await runtime.invoke(suite["flow"], given["data"])
        assert message.body == case["expect"].get("body", message.body)


@pytest.mark.parametrize("name", ["shop", "my shop: #1", "2024", "true", "ünï"])
def test_the_service_is_called_as_the_directory_is(tmp_path, name):
    config = octo.load(start(tmp_path / name, "flow").config, environ={}, cwd=tmp_path)

    assert config.service.name == name


def test_a_name_that_looks_like_a_reference_is_none(tmp_path):
    config = octo.load(start(tmp_path / "a${HOME}b", "flow").config, environ={}, cwd=tmp_path)

    assert config.service.name == "a{HOME}b"


@pytest.mark.parametrize("kind", KINDS)
def test_editors_find_the_schemas_of_all_files(tmp_path, kind):
    project = start(tmp_path / "shop", kind)

    for file in project.files:
        if file.suffix == ".yaml":
            first = file.read_text(encoding="utf-8").splitlines()[0]
            schema = json.loads((file.parent / first.removeprefix("# yaml-language-server: $schema=")).read_text())
            written = yaml.safe_load(file.read_text(encoding="utf-8"))
            assert set(written) <= set(schema["properties"])


async def test_the_tests_of_the_agent_call_no_real_model(tmp_path):
    project = start(tmp_path, "agent")
    scripted = project.config.read_text(encoding="utf-8")
    head, _, rest = scripted.partition("  - name: model\n    type: llm-scripted")
    _, _, flows = rest.partition("\nflows:\n")
    real = "  - name: model\n    type: llm-anthropic\n    settings:\n      apiKey: ${ANTHROPIC_API_KEY}\n"
    declared = "env:\n  - name: ANTHROPIC_API_KEY\n    required: true\n\nconnectors:\n"
    text = head.replace("connectors:\n", declared, 1) + real + "\nflows:\n" + flows
    project.config.write_text(text, encoding="utf-8")
    runner = Runner(Surroundings(environ={}, cwd=tmp_path))
    results: list[Result] = []

    await runner.run(trials(pairs([project.config])), results.append)

    assert [(result.status, result.error, result.notes) for result in results] == [("passed", "", ())]
