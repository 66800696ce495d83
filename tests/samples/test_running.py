"""samples/cron.yaml, samples/queue.yaml: flows that take messages from sources."""

from pathlib import Path

import octo
from octo.runtime import Runtime
from serving import Clock, served, until

SAMPLES = Path(__file__).parents[2] / "samples"


async def lines_of(sample, naps, count):
    """What a sample prints by the time that its log has so many lines."""
    clock, lines = Clock("2026-01-01T00:00:00+00:00", naps), []
    options = {"clock": clock, "sleep": clock.sleep, "outputs": {"stdout": lines.append}}
    text = (SAMPLES / sample).read_text(encoding="utf-8")
    async with served(text, **options):
        await until(lambda: len(lines) == count)
    return [line.partition('msg="')[2].partition('"')[0] for line in lines]


async def test_the_heart_beats_after_two_seconds():
    assert await lines_of("cron.yaml", 1, 1) == ["alive at 2026-01-01T00:00:02Z"]


async def test_the_clean_up_can_be_called_by_name():
    async with Runtime(octo.load(SAMPLES / "cron.yaml", environ={}), outputs={"stdout": print}) as runtime:
        message = await runtime.invoke("clean-up", {"before": "2026-01-01"})

    assert message.body == "removed what is older than 2026-01-01"


async def test_an_order_is_printed_and_told_to_two_flows():
    lines = await lines_of("queue.yaml", 1, 2)

    assert sorted(lines) == ["count: Order 2026-01-01T00:00:02Z", "ship: Order 2026-01-01T00:00:02Z"]
