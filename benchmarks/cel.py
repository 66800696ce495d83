"""How long expressions take, beside the same work in plain Python.

    python benchmarks/cel.py

All but the start is time of the processor. Ends with status 1 when a limit is exceeded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

from octo.cel import compile as compile_expression
from octo.values import parse

FILTER = "body.files.filter(f, f.size > 100).map(f, f.name)"


def files(count: int, padding: int) -> dict[str, Any]:
    entries = [
        {"name": f"file-{number}.txt", "size": number * 37 % 400, "tags": ["a", "b"], "note": "x" * padding}
        for number in range(count)
    ]
    decoded: dict[str, Any] = parse(json.dumps({"a": {"b": "found"}, "status": "open", "n": 3, "files": entries}))
    return decoded


def filtered(body: Any) -> list[Any]:
    return [entry["name"] for entry in body["files"] if entry["size"] > 100]


SMALL, LARGE = files(20, 10), files(2_000, 430)
LIMITS = {"filter and map, 20 files": 15, "filter and map, 2000 files, 1 MB": 5_000}
"""Microseconds."""
CASES: list[tuple[str, str, Any, Callable[[Any], Any]]] = [
    ("field", "body.a.b", SMALL, lambda body: body["a"]["b"]),
    ("sum", "body.n * 2 + 1", SMALL, lambda body: body["n"] * 2 + 1),
    (
        "condition",
        'body.status == "open" && body.n > 2',
        SMALL,
        lambda body: body["status"] == "open" and body["n"] > 2,
    ),
    ("text", '"case " + string(body.n) + ": " + body.a.b', SMALL, lambda body: f"case {body['n']}: {body['a']['b']}"),
    ("filter and map, 20 files", FILTER, SMALL, filtered),
    ("filter and map, 2000 files, 1 MB", FILTER, LARGE, filtered),
    ("the whole of 1 MB", "body", LARGE, lambda body: body),
]


def microseconds(call: Callable[[], Any]) -> float:
    """The best of several rounds, per call."""
    timer = timeit.Timer(call, timer=time.process_time)
    count, taken = timer.autorange()
    count = max(1, int(count * 0.1 / max(taken, 1e-9)))
    return min(timer.repeat(7, count)) / count * 1e6


def start_up() -> float:
    """Milliseconds to import the language and evaluate `1+1`, beyond an empty interpreter."""
    expression = "import octo.cel; octo.cel.compile('1+1', ())({})"

    def run(code: str) -> float:
        return min(timeit.repeat(lambda: subprocess.run([sys.executable, "-c", code], check=True), number=1, repeat=9))

    return (run(expression) - run("pass")) * 1e3


def write(line: str) -> None:
    sys.stdout.write(line + "\n")


def main() -> int:
    wrong = False
    write(f"{'expression':36}{'octo µs':>10}{'Python µs':>11}{'ratio':>8}")
    for label, source, body, plain in CASES:
        program = compile_expression(source, ["body"], json=["body"])
        activation = {"body": body}
        ours = microseconds(lambda program=program, activation=activation: program(activation))  # type: ignore[misc]
        theirs = microseconds(lambda plain=plain, body=body: plain(body))  # type: ignore[misc]
        wrong |= ours > LIMITS.get(label, float("inf"))
        write(f"{label:36}{ours:10.2f}{theirs:11.2f}{ours / theirs:8.1f}")
    write(f"{'compile ' + FILTER[:20] + '…':36}{microseconds(lambda: compile_expression(FILTER, ['body'])):10.2f}")
    write(f"{'start and evaluate 1+1':36}{start_up():10.1f} ms")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
