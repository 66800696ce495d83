"""samples/store.yaml: what one run keeps, the next one knows."""

from pathlib import Path

import octo
from octo.runtime import Runtime
from octo.store.store import Store

SAMPLE = Path(__file__).parents[2] / "samples" / "store.yaml"


async def call(directory, flow, name):
    with Store(directory) as store:
        async with Runtime(octo.load(SAMPLE, environ={}), store=store) as runtime:
            return (await runtime.invoke(flow, {"name": name})).body


async def test_the_second_visit_knows_of_the_first(tmp_path):
    first = await call(tmp_path, "visit", "Ada")
    second = await call(tmp_path, "visit", "Ada")
    another = await call(tmp_path, "visit", "Bob")

    assert first["greeting"].startswith("Hello Ada, it is ")
    assert first == {"greeting": first["greeting"], "known": False, "visits": 1.0}
    assert second == {"greeting": first["greeting"], "known": True, "visits": 2.0}
    assert another == {"greeting": another["greeting"], "known": False, "visits": 1.0}


async def test_what_is_forgotten_begins_anew(tmp_path):
    first = await call(tmp_path, "visit", "Ada")
    await call(tmp_path, "forget", "Ada")
    second = await call(tmp_path, "visit", "Ada")

    assert second == {"greeting": second["greeting"], "known": False, "visits": 1.0}
    assert second["greeting"] != first["greeting"]
