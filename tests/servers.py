"""Database servers that tests start for themselves, on a free port, when the first test asks for one.

Each process of a parallel run starts its own. A server that is not installed is an error, never a skipped test.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "p@ss:w/ord# 1"
"""Holds every character that a URL would need to have escaped."""


@dataclass(frozen=True)
class DatabaseServer:
    """A running server, and how to reach its database `octo` as user `octo`."""

    port: int
    scheme: str

    @property
    def dsn(self) -> str:
        """The address, without the password."""
        return f"{self.scheme}://octo@127.0.0.1:{self.port}/octo"


@pytest.fixture(scope="session")
def postgres() -> Iterator[DatabaseServer]:
    """A PostgreSQL server."""
    import psycopg

    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    initdb, server = (program(name, programs, "postgresql") for name in ("initdb", "postgres"))
    with directory("postgres") as (data, user):
        secret = data.with_suffix(".password")
        secret.write_text(PASSWORD, encoding="utf-8")
        run_as(
            user,
            [initdb, "-D", data, "-U", "octo", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "-N"],
            ["--locale=C.UTF-8"],
        )
        port = free_port()
        command = [server, "-D", data, "-h", "127.0.0.1", "-p", port, "-c", "fsync=off"]
        with running(user, command, ["-c", "unix_socket_directories="]) as alive:
            login = {"host": "127.0.0.1", "port": port, "user": "octo", "password": PASSWORD, "autocommit": True}
            with until(alive, psycopg.OperationalError, lambda: psycopg.connect(dbname="postgres", **login)) as first:
                first.execute("CREATE DATABASE octo")
            yield DatabaseServer(port, "postgres")


@pytest.fixture(scope="session")
def mysql() -> Iterator[DatabaseServer]:
    """A MariaDB server, which speaks the protocol of MySQL."""
    import pymysql

    install, server = (program(name, [Path("/usr/sbin")], "mariadb-server") for name in INSTALLED_BY_MARIADB)
    with directory("mysql") as (data, user):
        run_as(
            user,
            [install, "--no-defaults", f"--datadir={data}", "--skip-test-db", "--skip-name-resolve"],
            ["--auth-root-authentication-method=normal"],
        )
        port = free_port()
        command = [server, "--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1"]
        options = [f"--socket={data}/socket", "--innodb-flush-log-at-trx-commit=0", "--innodb-fast-shutdown=2"]
        with running(user, command, options) as alive:
            login = {"host": "127.0.0.1", "port": port, "user": "root"}
            with (
                until(alive, pymysql.OperationalError, lambda: pymysql.connect(**login)) as first,
                first.cursor() as do,
            ):
                do.execute("CREATE DATABASE octo CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
                do.execute("CREATE USER octo@'%%' IDENTIFIED BY %s", (PASSWORD,))
                do.execute("GRANT ALL ON octo.* TO octo@'%'")
            yield DatabaseServer(port, "mysql")


@contextlib.contextmanager
def interrupting(connection: Any) -> Iterator[None]:
    """Interrupt a connection again and again, so that a query which runs meanwhile is met at some time."""
    done = threading.Event()

    def interrupt() -> None:
        while not done.wait(0.05):
            connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


INSTALLED_BY_MARIADB = ("mariadb-install-db", "mariadbd")


def program(name: str, places: Sequence[Path], package: str) -> str:
    """Where a program is; one that is missing is an error that says what to install."""
    for place in reversed(places):
        if (place / name).exists():
            return str(place / name)
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"the tests need `{name}`: apt-get install {package}")
    return found


@contextlib.contextmanager
def directory(owner: str) -> Iterator[tuple[Path, str | None]]:
    """An empty directory, and the user who owns it: these servers refuse to run as root."""
    with tempfile.TemporaryDirectory(prefix=f"octo-{owner}-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        data = home / "data"
        data.mkdir(mode=0o700)
        user = None
        if os.geteuid() == 0:
            user = owner
            for path in (home, data):
                os.chown(path, pwd.getpwnam(owner).pw_uid, pwd.getpwnam(owner).pw_gid)
        yield data, user


def run_as(user: str | None, *command: Sequence[object]) -> None:
    """Run a program to its end."""
    words = [str(word) for part in command for word in part]
    done = subprocess.run(words, user=user, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words[0]}: {done.stdout}{done.stderr}"


@contextlib.contextmanager
def running(user: str | None, *command: Sequence[object]) -> Iterator[Callable[[], bool]]:
    """Run a server meanwhile; gives what tells whether it still runs."""
    words = [str(word) for part in command for word in part]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(words, user=user, cwd="/", **quiet)
    try:
        yield lambda: process.poll() is None
    finally:
        process.send_signal(signal.SIGQUIT)  # both stop at once, without waiting for clients
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(alive: Callable[[], bool], refused: type[Exception], connect: Callable[[], Any]) -> Any:
    """The first connection that a server that is starting accepts."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return connect()
        except refused:
            if not alive() or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
