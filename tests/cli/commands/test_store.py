"""octo_cli/commands/store.py: what the store holds, a copy of it, less of it; and `--store` of `invoke`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from octo.store.migrations import LATEST

STORE = "conf/.octo/octo.db"
CONFIG = """\
flows:
  - name: keep
    process: [{type: object-write, settings: {key: '"k"'}}]
  - name: recall
    process: [{type: object-read, settings: {key: '"k"'}}]
  - name: cached
    process: [{type: cache-scope, key: '"k"', ttl: 1ns, body: {process: [{type: set-payload, value: '1'}]}}]
  - name: plain
"""


@pytest.fixture
def invoke(octo: Any, tmp_path: Path) -> Any:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "app.yaml").write_text(CONFIG, encoding="utf-8")

    def call(flow: str, *args: str, **more: Any) -> Any:
        outcome = octo("invoke", "--config", "conf/app.yaml", "--flow", flow, *args, **more)
        assert (outcome.stderr, outcome.status) == ("", 0)
        return json.loads(outcome.stdout).get("body")

    return call


def size_of(name: str) -> int:
    return Path(name).stat().st_size


# ---------------------------------------------------------------- where it lies


def test_two_invocations_remember_each_other_beside_the_config(invoke: Any, tmp_path: Path) -> None:
    invoke("keep", "--data", "1")

    assert invoke("recall") == 1
    assert sorted(path.name for path in (tmp_path / "conf" / ".octo").iterdir()) == [".gitignore", "octo.db"]


def test_a_config_that_is_a_directory_has_its_store_inside(octo: Any, invoke: Any, tmp_path: Path) -> None:
    octo("invoke", "--config", "conf", "--flow", "keep", "--data", "1")

    assert invoke("recall") == 1


def test_an_invocation_that_keeps_nothing_creates_nothing(invoke: Any, tmp_path: Path) -> None:
    invoke("plain")
    invoke("recall")

    assert [path.name for path in (tmp_path / "conf").iterdir()] == ["app.yaml"]


def test_the_option_beats_the_variable_and_the_variable_the_place_beside_the_config(invoke: Any) -> None:
    environ = {"OCTO_STORE": "of-variable"}
    invoke("keep", "--data", "1", "--store", "of-option", environ=environ)
    invoke("keep", "--data", "2", environ=environ)

    assert invoke("recall", "--store", "of-option", environ=environ) == 1
    assert invoke("recall", environ=environ) == 2
    assert invoke("recall") is None


@pytest.mark.parametrize(
    ("args", "environ"),
    [
        (["--store", ":memory:"], {}),
        (["--store", ""], {"OCTO_STORE": "somewhere"}),
        (["--store="], {}),
        ([], {"OCTO_STORE": ":memory:"}),
        ([], {"OCTO_STORE": ""}),
    ],
)
def test_a_store_in_memory_keeps_nothing(invoke: Any, tmp_path: Path, args: list[str], environ: dict[str, str]) -> None:
    invoke("keep", "--data", "1", *args, environ=environ)

    assert invoke("recall", *args, environ=environ) is None
    assert [path.name for path in tmp_path.iterdir()] == ["conf"]


def test_a_store_that_cannot_be_used_is_named_at_the_block_that_needs_it(octo: Any, invoke: Any) -> None:
    outcome = octo("invoke", "--config", "conf/app.yaml", "--flow", "keep", "--store", "conf/app.yaml", terminal="err")

    assert outcome == (
        "",
        'error: conf/app.yaml:3:15: block "object-write": object-write "k": cannot create the store `conf/app.yaml`: '
        "a file of that name exists\n"
        "  in flow `keep`, at keep.object-write\n"
        "hint: name another directory with `--store DIR`\n",
        1,
    )


@pytest.mark.parametrize("command", ["store info", "memory list", "runs list", "agents list"])
def test_a_store_that_is_a_file_is_told_of(octo: Any, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    assert octo(*command.split(), "--store", "file", terminal="err") == (
        "",
        "error: cannot create the store `file`: a file of that name exists\n"
        "hint: name another directory with `--store DIR`\n",
        2,
    )


@pytest.mark.parametrize("command", ["store info", "memory list", "runs list", "agents list"])
def test_a_config_that_does_not_exist_has_no_store(octo: Any, command: str) -> None:
    outcome = octo(*command.split(), "--config", "none.yaml", terminal="err")

    assert outcome == ("", "error: config `none.yaml` does not exist\n", 2)


# ---------------------------------------------------------------- info


def test_info_tells_what_is_kept(octo: Any, invoke: Any) -> None:
    invoke("keep", "--data", "1")
    facts = f'"version":{LATEST},"size":{size_of(STORE)},"log":0,"rows":{{"entries":1}}'

    assert octo("store", "info", "--config", "conf/app.yaml") == (
        f'{{"path":"conf/.octo/octo.db","exists":true,{facts}}}\n',
        "",
        0,
    )
    assert octo("store", "info", "--config", "conf", terminal="out err") == (
        f"conf/.octo/octo.db\n  version {LATEST}, {size_of(STORE) / 1000:.1f} kB\n  entries: 1\n",
        "",
        0,
    )


def test_info_of_what_is_not_there_creates_nothing(octo: Any, tmp_path: Path) -> None:
    assert octo("store", "info").stdout == '{"path":".octo/octo.db","exists":false}\n'
    assert octo("store", "info", "--store", "kept", terminal="out") == (
        "kept/octo.db\n  nothing is kept there yet\n",
        "",
        0,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("args", [("info",), ("backup", "copy.db"), ("prune",)], ids=lambda args: args[0])
def test_a_file_that_is_no_store_ends_with_2(octo: Any, tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "octo.db").write_text("precious", encoding="utf-8")

    assert octo("store", *args, "--store", ".", terminal="err") == (
        "",
        "error: `octo.db` is not an SQLite file\nhint: move it away, or name another directory with `--store DIR`\n",
        2,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["octo.db"]


@pytest.mark.parametrize("args", [("info",), ("backup", "copy.db"), ("prune",)], ids=lambda args: args[0])
def test_a_store_in_memory_is_nothing_to_look_after(octo: Any, args: tuple[str, ...]) -> None:
    assert octo("store", *args, "--store", ":memory:", terminal="err") == (
        "",
        "error: a store in memory keeps nothing\nhint: name a directory with `--store DIR`\n",
        2,
    )


# ---------------------------------------------------------------- backup


def test_a_backup_is_a_store_again(octo: Any, invoke: Any, tmp_path: Path) -> None:
    invoke("keep", "--data", "1")
    (tmp_path / "copy").mkdir()

    shown = octo("store", "backup", "copy/octo.db", "--config", "conf", terminal="out")
    invoke("keep", "--data", "2")

    size = size_of("copy/octo.db") / 1000
    assert shown == (f"copied conf/.octo/octo.db to copy/octo.db, {size:.1f} kB\n", "", 0)
    assert invoke("recall", "--store", "copy") == 1


def test_a_backup_overwrites_only_when_it_is_forced_to(octo: Any, invoke: Any, tmp_path: Path) -> None:
    invoke("keep", "--data", "1")
    (tmp_path / "copy.db").write_text("precious", encoding="utf-8")

    assert octo("store", "backup", "copy.db", "--config", "conf", terminal="err") == (
        "",
        "error: `copy.db` exists already\nhint: name another file, or replace it with `--force`\n",
        2,
    )
    assert (tmp_path / "copy.db").read_text(encoding="utf-8") == "precious"
    assert octo("store", "backup", "copy.db", "--force", "--config", "conf") == (
        f'{{"path":"conf/.octo/octo.db","backup":"copy.db","size":{size_of("copy.db")}}}\n',
        "",
        0,
    )


def test_there_is_no_backup_of_nothing(octo: Any) -> None:
    assert octo("store", "backup", "copy.db", terminal="err") == (
        "",
        "error: there is no store `.octo/octo.db`\nhint: it is created when something is first kept in it\n",
        2,
    )


# ---------------------------------------------------------------- prune


def test_pruning_says_what_it_removed(octo: Any, invoke: Any) -> None:
    invoke("keep", "--data", json.dumps("x" * 100_000))
    invoke("keep", "--data", "1")
    invoke("cached")

    shown = octo("store", "prune", "--config", "conf", terminal="out")

    assert re.fullmatch(r"removed 1 expired entry and freed 9\d\.\d kB\n", shown.stdout)
    assert octo("store", "prune", "--config", "conf", "--json", terminal="out") == (
        '{"path":"conf/.octo/octo.db","expired":0,"freed":0}\n',
        "",
        0,
    )
    assert invoke("recall") == 1


# ---------------------------------------------------------------- the command line


def test_the_command_alone_shows_its_verbs(octo: Any) -> None:
    shown = octo("store")

    assert shown.status == 0
    assert shown.stdout.endswith(
        "Commands:\n"
        "  info    Show where the store lies and what it holds\n"
        "  backup  Copy the store as it is at this moment into one file\n"
        "  prune   Remove what has expired and give its room back to the disk\n"
    )
    assert octo("store", "--help") == octo("help", "store") == shown


@pytest.mark.parametrize(
    ("args", "text", "hint"),
    [
        (["inf"], "`octo store` has no command `inf`", "did you mean `info`?"),
        (["--stor", "x"], "`octo store` has no option `--stor`", "the verb comes first: `octo store VERB --stor`"),
        (["backup"], "`octo store backup` needs `FILE`", "see `octo store backup --help`"),
        (["info", "--stor", "x"], "`octo store info` has no option `--stor`", "did you mean `--store`?"),
        (["info", "more"], "`octo store info` takes no argument `more`", "see `octo store info --help`"),
    ],
)
def test_faults_of_grammar_are_named(octo: Any, args: list[str], text: str, hint: str) -> None:
    assert octo("store", *args, terminal="err") == ("", f"error: {text}\nhint: {hint}\n", 2)


@pytest.mark.parametrize("name", ["octo.db", "octo.db-wal", "octo.db-shm"])
def test_a_store_is_not_replaced_by_its_own_copy(octo: Any, invoke: Any, name: str) -> None:
    invoke("keep", "--data", "1")

    assert octo("store", "backup", f"conf/.octo/{name}", "--force", "--config", "conf/app.yaml", terminal="err") == (
        "",
        f"error: `conf/.octo/{name}` is the store itself, which others may be using\nhint: name another file\n",
        2,
    )
    assert invoke("recall") == 1
