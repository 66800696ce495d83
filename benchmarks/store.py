"""What a write to the store costs: alone, and with many processes that write at once.

    python benchmarks/store.py

Ends with status 1 when a write fails, is lost, or when more than one in a hundred takes longer than a second.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from octo.services.standalone import standalone
from octo.store.store import Store

WRITES = 500
PROCESSES = (1, 4, 16)
LIMIT = 1.0
"""Seconds that 99 of 100 writes may take."""


async def write(directory: Path, name: str) -> list[float]:
    """Write as one of many; the seconds of each write."""
    seconds = []
    with Store(directory) as store:
        entries = standalone(store, clock=time.time_ns).entries
        for number in range(WRITES):
            begun = time.perf_counter()
            await entries.put("user", f"{name}:{number}", {"name": name, "number": number, "text": "x" * 200})
            seconds.append(time.perf_counter() - begun)
    return seconds


async def stored(directory: Path) -> int:
    with Store(directory) as store:
        return await store.read(lambda db: int(db.execute("SELECT count(*) FROM entries").fetchone()[0]), 0)


def main() -> int:
    if len(sys.argv) == 3:
        print(json.dumps(asyncio.run(write(Path(sys.argv[1]), sys.argv[2]))))  # noqa: T201
        return 0
    wrong = False
    for count in PROCESSES:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            command = [sys.executable, __file__, folder]
            writers = [subprocess.Popen([*command, str(name)], stdout=subprocess.PIPE) for name in range(count)]
            outputs = [writer.communicate()[0] for writer in writers]
            took = time.perf_counter() - begun
            seconds = sorted(second for output in outputs for second in json.loads(output or "[]"))
            lost = count * WRITES - asyncio.run(stored(Path(folder)))
        p50, p99, longest = (seconds[int((len(seconds) - 1) * part)] * 1000 for part in (0.5, 0.99, 1))
        wrong |= lost > 0 or p99 > LIMIT * 1000
        print(  # noqa: T201
            f"{count:2} processes x {WRITES} writes: p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {longest:.0f} ms, "
            f"{lost} lost, {took:.1f} s in all"
        )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
