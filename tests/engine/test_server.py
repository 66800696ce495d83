"""octo/server.py, octo/admin.py: the HTTP server, and what answers on the admin port."""

import socket
import time

import httpx
import pytest

from octo.admin import Status, admin_app
from octo.errors import UsageError
from octo.metrics import Metrics
from octo.server import missing, serving, split_address


async def get(port, path, host="127.0.0.1"):
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"http://{host}:{port}{path}")
    return answer.status_code, answer.text


@pytest.mark.parametrize(
    ("state", "status"), [("starting", 503), ("ready", 200), ("reloading", 503), ("draining", 503), ("stopped", 503)]
)
async def test_it_tells_whether_the_program_is_ready(state, status):
    async with serving(admin_app(Status(state), None, version="1"), "127.0.0.1:0") as port:
        assert await get(port, "/readyz") == (status, state)
        assert await get(port, "/healthz") == (200, "ok")


async def test_metrics_are_there_when_they_are_on():
    async with serving(admin_app(Status(), Metrics(), version="1.2"), "127.0.0.1:0") as port:
        status, text = await get(port, "/metrics")
        assert await get(port, "/") == (200, "/healthz\n/readyz\n/metrics\n")

    assert status == 200
    assert 'octo_build_info{version="1.2"' in text
    assert "octo_ready 0\n" in text


async def test_without_them_there_is_a_word_on_how_to_turn_them_on():
    async with serving(admin_app(Status(), None, version="1"), "127.0.0.1:0") as port:
        assert await get(port, "/metrics") == (404, "metrics are off, `--metrics` turns them on")
        assert await get(port, "/") == (200, "/healthz\n/readyz\n")
        assert (await get(port, "/else"))[0] == 404


async def test_without_a_host_it_listens_on_all_addresses():
    async with serving(admin_app(Status(), None, version="1"), ":0") as port:
        assert await get(port, "/healthz") == (200, "ok")
        assert await get(port, "/healthz", host="localhost") == (200, "ok")


async def test_an_address_that_is_taken_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError) as caught:
            async with serving(admin_app(Status(), None, version="1"), address):
                pass

    assert str(caught.value) == f"cannot listen on `{address}`: address already in use"


async def test_answers_on_a_connection_that_is_kept_do_not_wait_for_its_acknowledgements():
    waits = []
    async with (
        serving(admin_app(Status(), None, version="1"), "127.0.0.1:0") as port,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        for _ in range(10):
            began = time.perf_counter()
            await client.get(f"http://127.0.0.1:{port}/healthz")
            waits.append(time.perf_counter() - began)

    assert min(waits[1:]) < 0.03


async def test_when_the_context_ends_the_port_is_free():
    async with serving(admin_app(Status(), None, version="1"), "127.0.0.1:0") as port:
        await get(port, "/healthz")

    socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize(
    ("address", "parts"), [(":80", ("", 80)), ("localhost:8080", ("localhost", 8080)), ("[::1]:0", ("::1", 0))]
)
def test_an_address_has_a_host_and_a_port(address, parts):
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "80", "localhost", "localhost:http", ":65536", ":-1"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError):
        split_address(address)


def test_nothing_is_missing_here():
    assert missing() is None
