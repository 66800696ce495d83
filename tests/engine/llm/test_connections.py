"""octo/llm/connections.py: which calls share a connection."""

import asyncio

import httpx
import pytest

from octo.llm.connections import Connections
from vendor.server import Answer, Request, Server


class Slow(Server):
    """Answers in two pieces with a pause in between."""

    def answer(self, request: Request) -> Answer:
        if request.path == "/reset":
            return Answer(send_head=False, ending="reset")
        return Answer(200, (), (b"one", b"two"), streamed=True, pause=0.1 if request.path == "/slow" else 0)


def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=Connections(proxy=None, verify=False), trust_env=False)


async def test_calls_at_the_same_time_have_connections_of_their_own_which_later_ones_take_over():
    with Slow() as server:
        async with client() as calling:
            await asyncio.gather(*(calling.get(f"{server.url}/slow") for _ in range(5)))
            for _ in range(3):
                await calling.get(server.url)

    assert sorted({request.connection for request in server.requests}) == [1, 2, 3, 4, 5]
    assert len({request.connection for request in server.requests[5:]}) == 1


async def test_an_answer_that_is_left_in_the_middle_leaves_its_connection_to_nobody():
    with Slow() as server:
        async with client() as calling:
            async with calling.stream("GET", f"{server.url}/slow") as response:
                async for _ in response.aiter_bytes():
                    break
            answer = await calling.get(server.url)

    assert answer.content == b"onetwo"
    assert [request.connection for request in server.requests] == [1, 2]


async def test_a_call_that_failed_is_no_harm_to_the_next():
    with Slow() as server:
        async with client() as calling:
            with pytest.raises(httpx.ReadError):
                await calling.get(f"{server.url}/reset")
            answer = await calling.get(server.url)

    assert answer.content == b"onetwo"


async def test_more_free_connections_than_anybody_needs_are_closed():
    with Slow() as server:
        transport = Connections(proxy=None, verify=False)
        async with httpx.AsyncClient(transport=transport, trust_env=False) as calling:
            await asyncio.gather(*(calling.get(f"{server.url}/slow") for _ in range(40)))
            await asyncio.gather(*(calling.get(f"{server.url}/slow") for _ in range(40)))

    connections = {request.connection for request in server.requests}
    assert len(connections) == 48
