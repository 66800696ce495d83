"""What the proxy costs: requests per second, what it adds to each chunk of 50 streams, and its memory.

The upstream, the proxy and the clients are processes of their own; the proxy runs `octo proxy` as users do. Chunks tell
when they were sent, and rounds with and without a proxy alternate. `--core N` leaves the proxy one core of the machine
(Linux only). Ends with status 1 when octo misses a limit. `--litellm DIR` measures LiteLLM's proxy beside it, from a
virtual environment that it is installed in:

    python -m venv DIR && DIR/bin/pip install 'litellm[proxy]' && python benchmarks/proxy.py --litellm DIR
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

RATE, ADDED, MEMORY = 300, 2.0, 120
"""Requests per second of the processor, milliseconds per chunk at p99, and MiB."""
STREAMS, CHUNKS, PAUSE = 50, 60, 0.05
SECONDS, WORKERS, ROUNDS = 5, 16, 3

UPSTREAM = r"""
import asyncio, json, sys, time
STREAMS, CHUNKS, PAUSE = 50, 60, 0.05
BODY = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
  "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
  "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}}).encode()
CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
def chunk(data): return b"%x\r\n%s\r\n" % (len(data), data)
async def talk(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            if b'"stream"' not in body:
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                writer.write(head % len(BODY) + BODY)
                continue
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(CHUNKS):
                await asyncio.sleep(PAUSE)
                data = {**CHUNK, "choices": [{"index": 0, "delta": {"content": str(time.monotonic())}}]}
                writer.write(chunk(b"data: " + json.dumps(data).encode() + b"\n\n"))
            writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


async def request(reader, writer, body: bytes) -> bytes:
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer none\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    )
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    return head


async def streamed(port: int, waits: list[float], delay: float = 0) -> None:
    await asyncio.sleep(delay)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await request(reader, writer, b'{"model": "m", "messages": [{"role": "user", "content": "hello"}], "stream": true}')
    while (line := await reader.readline()) and not line.startswith(b"data: [DONE]"):
        if sent := re.search(rb'"content": ?"(\d+\.\d+)"', line):
            waits.append(time.monotonic() - float(sent[1]))
    writer.close()


async def streams(port: int) -> list[float]:
    """What each chunk of 50 streams took."""
    waits: list[float] = []
    await asyncio.gather(*(streamed(port, waits, PAUSE * number / STREAMS) for number in range(STREAMS)))
    return waits


async def hammer(port: int, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    done = 0
    while time.monotonic() < until:
        head = await request(reader, writer, b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}')
        await reader.readexactly(int(re.search(rb"(?i)content-length: *(\d+)", head)[1]))
        done += 1
    writer.close()
    return done


async def rate(port: int) -> int:
    """How many requests are answered in some seconds."""
    until = time.monotonic() + SECONDS
    return sum(await asyncio.gather(*(hammer(port, until) for _ in range(WORKERS))))


def processor_seconds(pid: int) -> float:
    """What a process has used of the processor; nan where the system does not say it this way."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98] * 1000


def compare(name: str, direct: int, port: int, pid: int) -> bool:
    """Measure a proxy, and the way without it; whether it keeps to the limits, as far as the system tells."""
    asyncio.run(rate(port))
    used = processor_seconds(pid)
    done = asyncio.run(rate(port))
    used = processor_seconds(pid) - used
    rounds = [(asyncio.run(streams(direct)), asyncio.run(streams(port))) for _ in range(ROUNDS)]
    without, through = (list(chain(*waits)) for waits in zip(*rounds, strict=True))
    added = statistics.median(p99(b) - p99(a) for a, b in rounds)
    print(f"{name}: {done / SECONDS:.0f} requests/s, {done / used:.0f} per second of the processor")  # noqa: T201
    for what, waits in (("without", without), ("through", through)):
        print(f"  {what}: chunks after {statistics.median(waits) * 1000:.2f} ms at p50, {p99(waits):.2f} ms at p99")  # noqa: T201
    print(f"  added per chunk at p99, {STREAMS} streams: {added:.2f} ms (median of {ROUNDS} rounds)")  # noqa: T201
    status = Path(f"/proc/{pid}/status")
    memory = math.nan
    if status.exists():
        memory = int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024
        print(f"  memory: {memory:.0f} MiB at most")  # noqa: T201
    is_quiet = p99(without) < ADDED  # else the machine is too busy to tell
    return not (done / used < RATE or (is_quiet and added > ADDED) or memory > MEMORY)


@contextmanager
def octo(upstream: int, folder: Path, prefix: list[str]) -> Iterator[tuple[int, int]]:
    config = folder / "proxy.yaml"
    config.write_text(
        "connectors:\n  - name: models\n    type: llm-custom\n"
        f"    settings: {{ baseURL: 'http://127.0.0.1:{upstream}/v1', model: m }}\n",
        encoding="utf-8",
    )
    with started(
        [*prefix, sys.executable, "-m", "octo_cli", "proxy", "--config", str(config), "--listen", "127.0.0.1:0"],
        LOG_LEVEL="warn",
    ) as proxy:
        yield int(re.search(r":(\d+)/v1", proxy.stdout.readline())[1]), proxy.pid


@contextmanager
def litellm(upstream: int, folder: Path, prefix: list[str], environment: Path) -> Iterator[tuple[int, int]]:
    config = folder / "litellm.yaml"
    config.write_text(
        "model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n      api_key: none\n"
        f"      api_base: http://127.0.0.1:{upstream}/v1\n",
        encoding="utf-8",
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = [
        str(environment / "bin" / "litellm"),
        "--config",
        str(config),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with started(
        [*prefix, *program], LITELLM_LOG="ERROR", LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY="true"
    ) as proxy:
        for _ in range(120):
            time.sleep(1)
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness")
                break
            except OSError:
                continue
        yield port, proxy.pid


@contextmanager
def started(command: list[str], **environ: str) -> Iterator[subprocess.Popen]:
    quiet = subprocess.DEVNULL
    out = quiet if any(word.endswith("litellm") for word in command) else subprocess.PIPE
    process = subprocess.Popen(command, stdout=out, stderr=quiet, text=True, env={**os.environ, **environ})
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--core", type=int, metavar="N")
    options.add_argument("--litellm", type=Path, metavar="DIR")
    asked = options.parse_args()
    prefix = [] if asked.core is None else ["taskset", "--cpu-list", str(asked.core)]
    with started([sys.executable, "-c", UPSTREAM]) as upstream, tempfile.TemporaryDirectory() as folder:
        direct = int(upstream.stdout.readline())
        with octo(direct, Path(folder), prefix) as proxy:
            kept_to = compare("octo proxy", direct, *proxy)
        if asked.litellm:
            with litellm(direct, Path(folder), prefix, asked.litellm) as proxy:
                compare("LiteLLM", direct, *proxy)
    return 0 if kept_to else 1


if __name__ == "__main__":
    sys.exit(main())
