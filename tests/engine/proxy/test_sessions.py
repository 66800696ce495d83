"""octo/proxy/relay.py: the stock clients of OpenAI, for Python and Node, see the same of the proxy as of the vendor."""

import asyncio
import json
import os
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxied import UPSTREAMS, Upstream, proxy
from sessions import STEPS, WORDS, Step, client_of, played
from vendor.scripted import ScriptedServer

OPENAI = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "octo-tests" / "openai" / "index.mjs"
NODE_CLIENT = Path(__file__).parents[2] / "openai_client.mjs"

Json = Any
Seen = dict[str, Json]
"""What a client saw of each step."""

wires = pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.name)


@asynccontextmanager
async def reached(upstream: Upstream, script: deque[Any], *, directly: bool) -> AsyncIterator[tuple[str, str, Any]]:
    """The address and the model that a client is told, and the vendor behind them."""
    with upstream.server(lambda _: script.popleft()) as vendor:
        if directly:
            yield vendor.url + upstream.path, upstream.model, vendor
        else:
            async with proxy(upstream.yaml(vendor.url)) as served:
                yield f"{served.url}/v1", f"models/{upstream.model}", vendor
        assert (vendor.refusals, script) == ([], deque())


async def by_python(upstream: Upstream, steps: Sequence[Step], *, directly: bool = False) -> Seen:
    script: deque[Any] = deque()
    seen = {}
    async with reached(upstream, script, directly=directly) as (url, model, vendor), client_of(url) as client:
        for step in steps:
            script.extend(step.script(upstream))
            seen[step.name] = await played(client, model, step)
            assert vendor.refusals == []
            if step.ends == "aborted":
                await was_let_go(vendor)
    return seen


async def by_node(upstream: Upstream, steps: Sequence[Step], *, directly: bool = False) -> Seen:
    script = deque(answer for step in steps for answer in step.script(upstream))
    async with reached(upstream, script, directly=directly) as (url, model, _):
        told = {"library": str(OPENAI), "url": url, "model": model, "steps": [step.play for step in steps]}
        process = await asyncio.create_subprocess_exec(
            "node", str(NODE_CLIENT), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await process.communicate(json.dumps(told).encode())
        assert process.returncode == 0, err.decode()
    return dict(zip((step.name for step in steps), json.loads(out), strict=True))


async def was_let_go(vendor: ScriptedServer[Any]) -> None:
    assert await asyncio.to_thread(vendor.requests[-1].abandoned.wait, 0.1)


def without_ids(seen: Json) -> Json:
    """What was seen, without the ids that a vendor makes up anew each time."""
    if isinstance(seen, list):
        return [without_ids(one) for one in seen]
    raw = {"raw": [{**call, "id": bool(call["id"])} for call in seen["raw"]]} if "raw" in seen else {}
    return {**seen, **raw}


def in_all_wires(seen: Json) -> Json:
    """What is the same whoever answers: neither names and words of a vendor, nor what calls carry for their echo."""
    if isinstance(seen, list):
        return [in_all_wires(one) for one in seen]
    if "error" in seen:
        return {"error": seen["error"], "told": WORDS in seen["message"]}
    same = {key: value for key, value in seen.items() if key not in ("model", "raw")}
    if same.get("content", "").startswith("{"):
        same["content"] = json.loads(same["content"])
    return same


@pytest.fixture(scope="module")
def vendor_seen() -> Seen:
    """What the client for Python sees of the vendor itself."""
    return asyncio.run(by_python(UPSTREAMS[0], STEPS, directly=True))


def test_the_script_has_forty_calls_and_each_kind_of_end(vendor_seen: Seen):
    ends = {
        step.name: "refused"
        if "error" in seen
        else "broken off"
        if "broken" in seen
        else "aborted"
        if "aborted" in seen
        else "answered"
        for step in STEPS
        for seen in [vendor_seen[step.name][-1] if isinstance(vendor_seen[step.name], list) else vendor_seen[step.name]]
    }

    assert sum(len(seen) if isinstance(seen, list) else 1 for seen in vendor_seen.values()) > 40
    assert ends == {step.name: step.ends for step in STEPS}


async def test_on_the_same_wire_python_sees_no_difference(vendor_seen: Seen):
    seen = await by_python(UPSTREAMS[0], STEPS)

    assert {name: without_ids(one) for name, one in seen.items()} == {
        name: {"broken": True} if name == "a stream that is cut" else without_ids(one)
        for name, one in vendor_seen.items()
    }


@wires
async def test_over_every_wire_python_sees_the_same(upstream: Upstream, vendor_seen: Seen):
    seen = await by_python(upstream, STEPS)

    assert {name: in_all_wires(one) for name, one in seen.items()} == {
        name: {"broken": True} if "broken" in one else in_all_wires(one) for name, one in vendor_seen.items()
    }


@wires
async def test_over_every_wire_node_sees_the_same(upstream: Upstream, vendor_seen: Seen):
    seen = await by_node(upstream, STEPS)

    assert {name: in_all_wires(one) for name, one in seen.items()} == {
        name: {"broken": True} if "broken" in one else in_all_wires(one) for name, one in vendor_seen.items()
    }


async def test_on_the_same_wire_node_sees_no_difference():
    direct, through = await by_node(UPSTREAMS[0], STEPS, directly=True), await by_node(UPSTREAMS[0], STEPS)

    del direct["a stream that is cut"], through["a stream that is cut"]
    assert {name: without_ids(one) for name, one in through.items()} == {
        name: without_ids(one) for name, one in direct.items()
    }


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_what_is_passed_on_is_the_same_byte_for_byte(streamed: bool):
    (chat, *_), bodies = UPSTREAMS, []
    for directly in (True, False):
        script = deque([chat.reply("naïve — 😀")])
        async with reached(chat, script, directly=directly) as (url, model, _), httpx.AsyncClient() as client:
            asks = {"model": model, "messages": [{"role": "user", "content": "hello"}], "stream": streamed}
            answer = await client.post(f"{url}/chat/completions", json=asks)
            bodies.append((answer.status_code, answer.headers["content-type"], answer.content))

    assert bodies[0] == bodies[1]
