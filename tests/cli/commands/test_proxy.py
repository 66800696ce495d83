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

from vendor.server import Answer, Request, Server

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
def proxy(folder: Path, *args: str, config: str = CONFIG) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    (folder / "app.yaml").write_text(config, encoding="utf-8")
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
    (tmp_path / "logs").mkdir()
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


def test_a_token_that_no_client_can_send_and_a_log_that_is_no_file_are_refused(tmp_path: Path):
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    outcomes = [
        subprocess.run(
            [sys.executable, "-m", "octo_cli", "proxy", "--config", "app.yaml", "--listen", "127.0.0.1:0", *args],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        for args in (["--token", "schlüssel"], ["--token", "a b"], ["--log", "."])
    ]

    assert [outcome.returncode for outcome in outcomes] == [2, 2, 2]
    assert "no client can send a key with other characters than those of ASCII" in outcomes[0].stderr
    assert "`--log`: `.` is a directory" in outcomes[2].stderr


def test_an_address_that_is_taken_is_told_of_and_nothing_is_stopped(tmp_path: Path):
    with proxy(tmp_path) as (url, _):
        address = url.removeprefix("http://").removesuffix("/v1")
        outcome = subprocess.run(
            [sys.executable, "-m", "octo_cli", "proxy", "--config", "app.yaml", "--listen", address],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )

    assert (outcome.returncode, 'msg="stopped"' in outcome.stderr) == (2, False)
    assert f"cannot listen on `{address}`: address already in use" in outcome.stderr


def test_one_log_is_of_one_proxy_and_a_record_never_follows_the_half_of_another(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"seq":1,"kind":"proxy.req', encoding="utf-8")
    with proxy(tmp_path, "--log", "log.jsonl") as (url, process):
        second = subprocess.run(
            [sys.executable, "-m", "octo_cli", "proxy", "--config", "app.yaml", "--log", "log.jsonl"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        assert answer(url) == "first"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)

    assert (second.returncode, "another program writes `log.jsonl`" in second.stderr) == (2, True)
    half, record = log.read_text(encoding="utf-8").splitlines()
    assert (half, json.loads(record)["seq"]) == ('{"seq":1,"kind":"proxy.req', 2)


SLOW = """
connectors:
  - name: slow
    type: llm-custom
    settings: { baseURL: "ADDRESS", apiKey: k, model: m }
"""


def test_a_stream_that_runs_when_the_proxy_ends_is_told_so_and_recorded(tmp_path: Path):
    beginning = Answer(
        200, (("content-type", "text/event-stream"),), (b'data: {"choices": []}\n\n',), streamed=True, ending="hang"
    )

    class Slow(Server):
        def answer(self, request: Request) -> Answer:
            return beginning

    with (
        Slow() as vendor,
        proxy(tmp_path, "--log", "log.jsonl", config=SLOW.replace("ADDRESS", vendor.url)) as (url, own),
    ):
        with httpx.stream("POST", f"{url}/chat/completions", json={**HELLO, "stream": True}, timeout=20) as response:
            lines = response.iter_lines()
            assert next(lines) == 'data: {"choices": []}'
            own.send_signal(signal.SIGTERM)
            rest = [line for line in lines if line]
        _, told = own.communicate(timeout=10)

    assert json.loads(rest[-1].removeprefix("data: "))["error"]["message"] == "the proxy is stopped"
    assert [json.loads(line)["error"] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == ["Stopping"]
    assert "Traceback" not in told
    assert told.splitlines()[-1].endswith('msg="stopped"')
