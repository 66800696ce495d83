"""samples/order-intake.yaml and samples/split-aggregate.yaml: they do what their first lines say."""

from pathlib import Path

import pytest

import octo
from octo.observe import LogLine
from octo.runtime import Runtime

SAMPLES = Path(__file__).parents[2] / "samples"


class Log:
    kinds = (LogLine,)

    def __init__(self):
        self.lines = []

    def notify(self, event):
        self.lines.append((event.level, event.text))


async def run(sample, flow, body, **options):
    """What a sample answers, and what it logs."""
    log = Log()
    loaded = octo.load(SAMPLES / sample, environ={}, cwd=SAMPLES)
    async with Runtime(loaded, observers=[log]) as runtime:
        message = await runtime.invoke(flow, body, **options)
    return message, log.lines


@pytest.mark.parametrize(
    ("body", "answer", "lines"),
    [
        ({"sku": "A-7", "qty": 3.0}, {"sku": "A-7", "total": 37.5}, [("info", "order of A-7")]),
        (
            {"sku": "B", "qty": 3.0},
            {"sku": "B", "total": 297.0},
            [("info", "order of B"), ("warn", "large order: 297")],
        ),
        (
            {"qty": 0.0},
            {
                "error": "validation_failed",
                "messages": ["sku is missing", "qty must be greater than 0"],
            },
            [],
        ),
    ],
    ids=["small", "large", "incomplete"],
)
async def test_an_order_is_taken_in(body, answer, lines):
    message, logged = await run("order-intake.yaml", "intake", body)

    assert message.body == answer
    assert sorted(logged) == lines


async def test_lines_of_sales_are_added_up_by_region():
    text = "north,3\nsouth,4\nnorth,five\nsouth,1\nnorth,6"

    message, logged = await run("split-aggregate.yaml", "sales", text, content_type="text/csv")

    assert message.body == {"taken": 5.0}
    assert sorted(logged) == [
        ("info", "north: 9"),
        ("info", "south: 5"),
        ("warn", "line 3 is left out: north,five"),
    ]
