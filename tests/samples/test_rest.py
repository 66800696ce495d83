"""samples/rest.yaml: what it asks an API, and what it makes of the answers."""

from pathlib import Path

import octo
from http_api import Api, as_json, text
from octo.runtime import Runtime

SAMPLE = Path(__file__).parents[2] / "samples" / "rest.yaml"


async def run(api, flow, body, **environ):
    loaded = octo.load(SAMPLE, environ={"API_URL": api.url, **environ}, cwd=SAMPLE.parent)
    async with Runtime(loaded) as runtime:
        return await runtime.invoke(flow, body)


def depots(request):
    if request.path == "/depots/7.json":
        return as_json({"city": "Bonn", "free": 3})
    return text("<h1>Not Found</h1>", 404, "text/html")


async def test_a_depot_is_read():
    with Api(depots) as api:
        message = await run(api, "depot", {"id": 7.0}, API_AUTH="bearer", API_TOKEN="t0ken")

    assert message.body == {"city": "Bonn", "free": 3.0}
    assert api.headers("authorization") == ["Bearer t0ken"]


async def test_a_depot_that_does_not_exist_is_no_failure():
    with Api(depots) as api:
        message = await run(api, "depot", {"id": 8.0})

    assert message.body == {"error": "no such depot"}
    assert api.headers("authorization") == [None]


async def test_a_slot_is_booked():
    with Api(lambda request: as_json({"booked": True}, 201)) as api:
        message = await run(api, "book", {"depot": 7.0, "day": "2030-05-01"})

    (request,) = api.requests
    assert message.body == {"booked": True}
    assert (request.method, request.path, request.query) == ("POST", "/bookings", "notify=false")
    assert request.json == {"depot": 7, "day": "2030-05-01"}
    assert request.headers["idempotency-key"] == message.event_id


async def test_a_booking_that_is_refused_is_answered():
    with Api(lambda request: text("the depot is full", 409)) as api:
        message = await run(api, "book", {"depot": 7.0, "day": "2030-05-01"})

    assert message.body == {
        "booked": False,
        "status": 409.0,
        "reason": f'block "book-slot": rest request to {api.url}/bookings returned 409: the depot is full',
    }
