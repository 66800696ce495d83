"""samples/agents: agents with names, and the flows that link them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

import octo
from octo.runtime import Runtime
from octo.testing.suite import read_suite

SAMPLES = Path(__file__).parents[2] / "samples"
CONFIGS = [file for file in sorted((SAMPLES / "agents").glob("*.yaml")) if not file.stem.endswith("_test")]


def option(words, name):
    return words[words.index(name) + 1]


async def run(config, flow=None, body=None):
    """Run a sample as its head comment says, or another flow of it."""
    head = "".join(re.findall(r"^#(.*\n)", config.read_text(encoding="utf-8"), re.MULTILINE))
    words = shlex.split(head[head.index("octo invoke") :].replace("\\\n", " ").split("\n\n")[0].split("\n \n")[0])
    assert option(words, "--config") == f"samples/agents/{config.name}"
    loaded = octo.load(config, environ={}, cwd=SAMPLES)
    assert loaded.warnings == ()
    async with Runtime(loaded) as runtime:
        return (await runtime.invoke(flow or option(words, "--flow"), body or json.loads(option(words, "--data")))).body


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_every_sample_has_a_suite_that_names_its_command(config):
    suite = config.with_name(f"{config.stem}_test.yaml")

    assert f"#   octo test samples/agents/{suite.name}\n" in suite.read_text(encoding="utf-8")
    assert [case.name for case in read_suite(suite).value.cases if case.skip] == []


@pytest.mark.parametrize(
    ("name", "flow", "body", "result"),
    [
        pytest.param("linked", None, None, {"team": "billing"}, id="a linked flow"),
        pytest.param("linked", "sort_all", {"mails": ["a", "b"]}, [{"team": "billing"}] * 2, id="another one"),
        pytest.param("support", None, None, "Your order is on its way. We are sorry for the delay.", id="a desk"),
        pytest.param(
            "support",
            "world",
            {"customer": "c", "question": "?"},
            "Your order is on its way. We are sorry for the delay.",
            id="another one",
        ),
    ],
)
async def test_the_flows_that_link_an_agent_run(name, flow, body, result):
    assert await run(SAMPLES / "agents" / f"{name}.yaml", flow, body) == result
