"""What the proxy costs: requests per second, what it adds to each chunk of 50 streams, and its memory.

The upstream, the proxy and the clients are processes of their own; the proxy runs `octo proxy` as users do.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STREAMS, CHUNKS, PAUSE = 50, 60, 0.05
SECONDS, WORKERS = 5, 16

UPSTREAM = r"""
import asyncio, json, sys, time
STREAMS, CHUNKS, PAUSE = 50, 60, 0.05
BODY = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
  "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
  "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}}).encode()
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
                data = {"id": "1", "choices": [{"index": 0, "delta": {"content": "x"}}], "at": time.monotonic()}
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


async def request(reader, writer, body: bytes) -> None:
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % len(body) + body
    )
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head


async def streamed(port: int, waits: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await request(reader, writer, b'{"model": "m", "messages": [], "stream": true}')
    while (line := await reader.readline()) != b"data: [DONE]\n":
        if line.startswith(b"data: "):
            waits.append(time.monotonic() - json.loads(line[6:])["at"])
    writer.close()


async def hammer(port: int, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    done = 0
    while time.monotonic() < until:
        await request(reader, writer, b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}')
        await reader.readuntil(b"}}")
        done += 1
    writer.close()
    return done


def processor_seconds(pid: int) -> float:
    """What a process has used of the processor; nan where the system does not say it this way."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(port: int, pid: int) -> tuple[float, float, list[float]]:
    """Requests per second, per second of the processor, and what each chunk took."""
    until, used = time.monotonic() + SECONDS, processor_seconds(pid)
    done = await asyncio.gather(*(hammer(port, until) for _ in range(WORKERS)))
    used = processor_seconds(pid) - used
    waits: list[float] = []
    await asyncio.gather(*(streamed(port, waits) for _ in range(STREAMS)))
    return sum(done) / SECONDS, sum(done) / used, waits


def shown(name: str, rate: float, on_one_core: float, waits: list[float]) -> float:
    p99 = statistics.quantiles(waits, n=100)[98] * 1000
    p50 = statistics.median(waits) * 1000
    print(f"{name:10} {rate:6.0f} requests/s, {on_one_core:6.0f} per second of the processor")  # noqa: T201
    print(f"{'':10} chunks arrive after {p50:.2f} ms at p50, {p99:.2f} ms at p99")  # noqa: T201
    return p99


def main() -> None:
    upstream = subprocess.Popen([sys.executable, "-c", UPSTREAM], stdout=subprocess.PIPE, text=True)
    with tempfile.TemporaryDirectory() as folder:
        port = int(upstream.stdout.readline())
        config = Path(folder, "proxy.yaml")
        config.write_text(
            "connectors:\n  - name: models\n    type: llm-custom\n"
            f"    settings: {{ baseURL: 'http://127.0.0.1:{port}/v1', model: m }}\n",
            encoding="utf-8",
        )
        proxy = subprocess.Popen(
            [sys.executable, "-m", "octo_cli", "proxy", "--config", str(config), "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "LOG_LEVEL": "warn"},
        )
        try:
            address = re.search(r":(\d+)/v1", proxy.stdout.readline())
            direct = shown("upstream", *asyncio.run(measure(port, upstream.pid)))
            through = shown("octo proxy", *asyncio.run(measure(int(address[1]), proxy.pid)))
            print(f"added per chunk at p99, {STREAMS} streams: {through - direct:.2f} ms")  # noqa: T201
            status = Path(f"/proc/{proxy.pid}/status")
            if status.exists():
                print("memory:", re.search(r"VmHWM:\s+(\d+)", status.read_text())[1], "KiB at most")  # noqa: T201
        finally:
            proxy.terminate()
            upstream.terminate()
            proxy.wait()
            upstream.wait()


if __name__ == "__main__":
    main()
