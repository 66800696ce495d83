"""octo/store/runs.py: rows of runs, of their agents, and their logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from sqlite3 import Connection

import pytest

from octo.store import migrations, runs
from octo.store.runs import AgentRow, RunRow, Spent


@pytest.fixture
def db() -> Iterator[Connection]:
    import sqlite3

    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection)
    yield connection
    connection.close()


def run(id: str, began: int = 1, **more: object) -> RunRow:
    return replace(RunRow(id, "ask", "app.yaml", began, "host", 12, began), **more)  # type: ignore[arg-type]


def add(db: Connection, *rows: RunRow, log: str = "x") -> None:
    for row in rows:
        runs.begin(db, row, f"spare-{row.id}")
        runs.append_log(db, row.number, log)
        runs.update(db, replace(row, log_size=len(log)))


def known(db: Connection) -> list[str]:
    return [row.id for row in runs.newest(db)]


def test_a_run_is_read_as_it_was_stored(db: Connection) -> None:
    row = run("a")
    runs.begin(db, row, "spare")
    row.ended, row.outcome, row.error, row.spent = 9, "failed", "no", Spent(2, 3, 100, None, 0.5)
    row.records, row.log_size = 7, 70
    runs.update(db, row)

    assert list(runs.newest(db)) == [row]
    assert row.number == 1


def test_a_run_whose_id_is_taken_gets_the_spare_one(db: Connection) -> None:
    add(db, run("a"), run("a"))

    assert known(db) == ["spare-a", "a"]


def test_agents_are_stored_anew_at_their_positions(db: Connection) -> None:
    first = AgentRow("ask.a", "", "inline", None, "abc", "model")
    second = AgentRow("ask.b", "writer", "pinned", 4, "def", "model", 1.5, "model refused", "", Spent(1, 0, 5, 6))
    runs.update_agents(db, 1, [(0, first), (1, second)])
    runs.update_agents(db, 1, [(0, replace(first, seconds=2.0, error="no"))])

    assert runs.agents(db, 1) == [replace(first, seconds=2.0, error="no"), second]


def test_a_log_is_read_in_the_order_in_which_it_was_written(db: Connection) -> None:
    add(db, run("a"), log="1\n2\u0085")
    add(db, run("b"), log="other")
    runs.append_log(db, 1, "3")

    assert runs.log(db, 1) == ["1", "2\u0085", "3"]


def test_runs_are_chosen_by_flow_and_beginning(db: Connection) -> None:
    add(db, run("a", 1), run("b", 5, flow="other"), run("c", 9))

    assert [row.id for row in runs.newest(db, flow="ask")] == ["c", "a"]
    assert [row.id for row in runs.newest(db, since=5)] == ["c", "b"]


def test_a_prefix_is_taken_letter_by_letter(db: Connection) -> None:
    add(db, run("a%b"), run("axb"), run("A%b"))

    assert [row.id for row in runs.beginning_with(db, "a%")] == ["a%b"]


def test_what_is_deleted_is_gone_with_all_that_belongs_to_it(db: Connection) -> None:
    add(db, run("a"), run("b"))
    runs.update_agents(db, 1, [(0, AgentRow("ask.a", "", "inline", None, "", "model"))])

    runs.delete(db, [1])

    assert (known(db), runs.log(db, 1), runs.agents(db, 1), runs.log(db, 2)) == (["b"], [], [], ["x"])


@pytest.mark.parametrize(
    ("bounds", "left"),
    [({"most": 2}, ["d", "c"]), ({"room": 25}, ["d", "c"]), ({}, ["d", "c", "b", "a"])],
    ids=["too many", "too large", "neither"],
)
def test_the_oldest_runs_make_room_for_new_ones(db: Connection, bounds: dict[str, int], left: list[str]) -> None:
    add(db, *(run(id, ended=9) for id in "abcd"), log="0123456789")

    removed = runs.trim(db, seen=0, **bounds)

    assert (known(db), removed) == (left, 4 - len(left))


def test_a_run_that_goes_on_is_not_removed_to_make_room(db: Connection) -> None:
    add(db, run("goes on", seen=8), run("broke off", seen=3), run("over", ended=9))

    runs.trim(db, seen=5, most=0)

    assert known(db) == ["goes on"]
