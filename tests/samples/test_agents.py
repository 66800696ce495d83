"""samples/ai-agent-skills.yaml, ai-agent-nested.yaml and ai-agent-tools.yaml: they do what their first lines say."""

import json
import re
import shlex
from pathlib import Path

import pytest

import octo
from octo.runtime import Runtime

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("skills", {"reply": "Your 40 euro are on their way. We are sorry about the lamp.", "refunded": 17}),
        ("nested", {"title": "The harbour of Bergen", "text": "Founded around 1070, and still at work."}),
        ("tools", {"reserved": 2, "sku": "A1"}),
    ],
)
async def test_the_command_in_the_head_runs_the_sample(name, body):
    config = SAMPLES / f"ai-agent-{name}.yaml"
    head = "".join(re.findall(r"^#(.*\n)", config.read_text(encoding="utf-8"), re.MULTILINE))
    words = shlex.split(head[head.index("octo invoke") :].replace("\\\n", " ").split("\n\n")[0])
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert options["--config"] == f"samples/{config.name}"

    async with Runtime(octo.load(config, environ={}, cwd=SAMPLES)) as runtime:
        message = await runtime.invoke(options["--flow"], json.loads(options["--data"]))

    assert message.body == body
