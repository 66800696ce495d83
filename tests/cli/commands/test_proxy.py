"""octo_cli/proxying.py, octo/proxy/access.py: `octo proxy` starts, logs what it does, reloads its config, and ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

CONFIG = """
connectors:
  - name: demo
    type: llm-scripted
    settings:
      model: small
      rules:
        - { when: "true", text: first }
"""
HELLO = {"messages": [{"role": "user", "content": "a secret thought"}]}


@contextmanager
def proxy(folder: Path, *args: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    (folder / "app.yaml").write_text(CONFIG, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "octo_cli", "proxy", "--config", "app.yaml", "--listen", "127.0.0.1:0", *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        ready = re.fullmatch(r"octo \S+ is ready: (http://127\.0\.0\.1:\d+/v1)\n", line)
        assert ready, line
        yield ready[1], process
    finally:
        process.kill()
        process.communicate()


def answer(url: str, **headers: str) -> str:
    response = httpx.post(f"{url}/chat/completions", json=HELLO, headers=headers)
    return str(response.json()["choices"][0]["message"]["content"])


def test_it_serves_tells_each_request_without_its_content_and_ends_with_a_signal(tmp_path: Path):
    with proxy(tmp_path, "--token", "open-sesame") as (url, process):
        assert answer(url, authorization="Bearer open-sesame") == "first"
        assert httpx.post(f"{url}/chat/completions", json=HELLO).status_code == 401
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=10)

    assert process.returncode == 0
    lines = [re.sub(r"^time=\S+ | ms=\d+", "", line) for line in log.splitlines()]
    assert lines == [
        'level=INFO msg="request" route=/v1/chat/completions connector=demo model=small status=200 inputTokens=4 '
        "outputTokens=2",
        'level=INFO msg="request" route=/v1/chat/completions status=401',
        'level=INFO msg="stopped"',
    ]


def test_a_run_log_has_a_record_of_each_request_without_its_content(tmp_path: Path):
    for _ in range(2):  # the second program appends
        with proxy(tmp_path, "--token", "open-sesame", "--log", "logs/requests.jsonl") as (url, process):
            assert answer(url, authorization="Bearer open-sesame") == "first"
            assert httpx.post(f"{url}/chat/completions", json=HELLO).status_code == 401
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=10)

    log = tmp_path / "logs" / "requests.jsonl"
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert (log.stat().st_mode & 0o777, [record["seq"] for record in records]) == (0o600, [1, 2, 3, 4])
    assert [record.get("error") for record in records] == [None, "status 401"] * 2
    assert records[0]["attrs"] == {
        "route": "/v1/chat/completions",
        "status": 200,
        "connector": "demo",
        "model": "small",
        "usage": {"promptTokens": 4, "outputTokens": 2},
    }
    shown = subprocess.run(
        [sys.executable, "-m", "octo_cli", "runs", "show", str(log), "--json"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    found = json.loads(shown.stdout)
    assert [(span["kind"], span["name"], span["outcome"]) for span in found["spans"]] == [
        ("turn", "/v1/chat/completions", "completed"),
        ("note", "/v1/chat/completions", "failed"),
    ] * 2
    assert (found["totals"]["turns"], found["totals"]["tokensRead"], found["totals"]["failures"]) == (2, 8, 2)


def test_a_file_that_is_no_run_log_is_kept(tmp_path: Path):
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-m", "octo_cli", "proxy", "--config", "app.yaml", "--log", "app.yaml"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={"PATH": os.environ["PATH"]},
        timeout=20,
        check=False,
    )

    assert (process.returncode, "exists and is no run log" in process.stderr) == (2, True)
    assert (tmp_path / "app.yaml").read_text(encoding="utf-8") == CONFIG


def test_a_changed_config_counts_from_the_next_request_and_a_broken_one_does_not(tmp_path: Path):
    with proxy(tmp_path) as (url, process):
        (tmp_path / "app.yaml").write_text(CONFIG.replace("first", "second"), encoding="utf-8")
        for _ in range(100):
            if answer(url) == "second":
                break
            time.sleep(0.05)
        assert answer(url) == "second"
        (tmp_path / "app.yaml").write_text("connectors: [3]", encoding="utf-8")
        time.sleep(1)
        assert answer(url) == "second"
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=10)

    assert "config cannot be used, the one before it stays in force" in log


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--listen", "0.0.0.0:4180"], "others than this machine can reach it, and there is no token"),
        (["--listen", "nowhere"], "expected `host:port`, found `nowhere`"),
        (["--connector", "demmo"], "`--connector`: there is no connector `demmo` to a model"),
    ],
)
def test_what_cannot_start(tmp_path: Path, args: list[str], text: str):
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-m", "octo_cli", "proxy", "--config", "app.yaml", *args],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={"PATH": os.environ["PATH"]},
        timeout=20,
        check=False,
    )

    assert process.returncode == 2
    assert text in process.stderr


def test_a_config_without_models_has_nothing_to_serve(tmp_path: Path):
    (tmp_path / "app.yaml").write_text("flows: []", encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-m", "octo_cli", "proxy", "--config", "app.yaml"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={"PATH": os.environ["PATH"]},
        timeout=20,
        check=False,
    )

    assert (process.returncode, "has no connector to a model" in process.stderr) == (2, True)
