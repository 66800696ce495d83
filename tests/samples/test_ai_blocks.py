"""samples/ai-router.yaml, ai-mapping.yaml, ai-retry.yaml and ai-embed.yaml: they do what their first lines say."""

import json
import re
import shlex
from pathlib import Path

import pytest

import octo
from octo.runtime import Runtime

SAMPLES = Path(__file__).parents[2] / "samples"


async def run(config: Path) -> object:
    """What the command in the head of a sample answers."""
    head = "".join(re.findall(r"^#(.*\n)", config.read_text(encoding="utf-8"), re.MULTILINE))
    words = shlex.split(head[head.index("octo invoke") :].replace("\\\n", " ").split("\n\n")[0])
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert options["--config"] == f"samples/{config.name}"
    async with Runtime(octo.load(config, environ={}, cwd=SAMPLES)) as runtime:
        return (await runtime.invoke(options["--flow"], json.loads(options["--data"]))).body


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("router", {"desk": "billing", "urgent": False, "text": "You charged me twice for invoice 7."}),
        (
            "mapping",
            {
                "booked": 2,
                "lines": [
                    {"article": "lemons", "qty": 2.0, "unit": "crate"},
                    {"article": "rice", "qty": 5.0, "unit": "sack"},
                ],
            },
        ),
        ("retry", {"accepted": True, "total": 37.5, "weekday": 1}),
        ("embed", [{"note": "a red chair", "likeness": 1.0}]),
    ],
)
async def test_the_command_in_the_head_runs_the_sample(name, body):
    assert await run(SAMPLES / f"ai-{name}.yaml") == body
