"""samples/: every config in it loads, and does what its first lines say."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest

import octo
from octo.runtime import Runtime
from vendor import AnthropicServer, call, reply

SAMPLES = Path(__file__).parents[2] / "samples"
CONFIGS = [file for file in sorted(SAMPLES.glob("*.yaml")) if not file.stem.endswith("_test")]
KEY = {"ANTHROPIC_API_KEY": "sk-ant-sample"}


def command(config):
    """The words of the command that the head comment of a sample shows."""
    head = "".join(re.findall(r"^#(.*\n)", config.read_text(encoding="utf-8"), re.MULTILINE))
    return shlex.split(head[head.index("octo invoke") :].replace("\\\n", " ").split("\n\n")[0])


def option(words, name):
    return words[words.index(name) + 1]


async def run(config, **environ):
    """Run a sample as its head comment says."""
    words = command(config)
    assert option(words, "--config") == f"samples/{config.name}"
    loaded = octo.load(config, environ=environ, cwd=SAMPLES)
    async with Runtime(loaded) as runtime:
        return await runtime.invoke(option(words, "--flow"), json.loads(option(words, "--data")))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_every_sample_loads_without_a_warning(config):
    assert octo.load(config, environ=KEY | {"PATH": os.environ["PATH"]}, cwd=SAMPLES).warnings == ()


async def test_the_quick_start_runs_without_key_and_network():
    message = await run(SAMPLES / "quickstart.yaml")

    assert message.body == {"company": "Acme", "lead": {"tier": "smb", "fit": True}}


async def test_the_agent_classifies_a_lead():
    script = [reply(calls=[call("classify_size", {"company": "Acme"})]), reply('{"tier": "smb", "fit": true}')]
    with AnthropicServer(script) as server:
        message = await run(SAMPLES / "ai-agent.yaml", **KEY, ANTHROPIC_BASE_URL=server.url)

    assert message.body == {"tier": "smb", "fit": True}
    assert server.refusals == []
    assert [tool["name"] for tool in server.requests[0].json["tools"]] == ["classify_size", "take_default_path"]


async def test_the_agent_that_is_not_sure_takes_the_default_path():
    script = [reply(calls=[call("take_default_path", {"reason": "no such company"})])]
    with AnthropicServer(script) as server:
        message = await run(SAMPLES / "ai-agent.yaml", **KEY, ANTHROPIC_BASE_URL=server.url)

    assert message.body == {"status": "needs-manual-review"}
    assert message.vars["guardrailReason"] == "no such company"


async def test_the_agent_describes_an_image():
    script = [reply(calls=[call("list_files", {})]), reply("A red dot.")]
    with AnthropicServer(script) as server:
        message = await run(SAMPLES / "ai-agent-attachments.yaml", **KEY, ANTHROPIC_BASE_URL=server.url)

    first, second = (request.json["messages"] for request in server.requests)
    assert message.body == "A red dot."
    assert server.refusals == []
    assert [part["type"] for part in first[0]["content"]] == ["image", "text"]
    assert [part["type"] for part in second[0]["content"]] == ["text"]
    assert '[{"mimeType":"image/png","name":"red.png"}]' in json.dumps(second[2]).replace('\\"', '"')
