"""octo/agent/versions.py, octo/store/agents.py: which value a name stands for, and how that changes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from octo.agent import versions
from octo.agent.versions import Change, Deployed, Resolved
from octo.errors import OctoError, StoreError, UsageError
from octo.store import agents
from octo.store.store import Store

ANN = Change("ann", 1)
BOB = Change("bob", 2)


def value(prompt: str, **more: Any) -> dict[str, Any]:
    return {"connector": "llm", "prompt": prompt, **more}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
async def filled(store: Store) -> AsyncIterator[Store]:
    """A store in which the prompts of `a` were `one`, `two` and `three`."""
    with store:
        for prompt in ("one", "two", "three"):
            await versions.deploy(store, "a", value(prompt), ANN)
        yield store


async def history(store: Store, name: str = "a") -> list[tuple[int, str, str]]:
    rows = await store.read(lambda db: agents.versions(db, name), [])
    return [(row.version, row.origin, row.created_by) for row in rows]


# ---------------------------------------------------------------- resolving


async def test_a_name_stands_for_what_is_deployed_at_this_moment(filled: Store) -> None:
    found = await versions.resolve(filled, "a")

    assert found == Resolved("a", value("three"), 3, "deployed", found.hash)
    await versions.deploy(filled, "a", value("four"), ANN)
    assert (await versions.resolve(filled, "a")).value == value("four")


async def test_a_pin_stands_for_its_version(filled: Store) -> None:
    found = await versions.resolve(filled, "a", 2, "ann")

    assert (found.value, found.version, found.source) == (value("two"), 2, "pinned")


async def test_the_draft_of_a_user_counts_only_for_who_asks_for_it(filled: Store) -> None:
    await versions.put_draft(filled, "a", value("mine"), ANN)

    drafted = await versions.resolve(filled, "a", None, "ann")
    assert (drafted.value, drafted.version, drafted.source) == (value("mine"), 3, "draft")
    assert (await versions.resolve(filled, "a", None, "bob")).value == value("three")
    assert (await versions.resolve(filled, "a")).value == value("three")


@pytest.mark.parametrize(
    ("known", "message", "hint"),
    [
        (["triage"], 'agent "triaje" not found', "did you mean `triage`?"),
        (
            ["triage", "triages", "triag", "triages2"],
            'agent "triaje" not found',
            "did you mean `triage` or `triages` or `triag`?",
        ),
        (["other"], 'agent "triaje" not found', "`octo agents list` shows which agents there are"),
        ([], 'agent "triaje" not found', "`octo agents list` shows which agents there are"),
    ],
    ids=["one", "three of four", "none alike", "no store"],
)
async def test_a_missing_agent_is_told_with_names_like_it(
    store: Store, known: list[str], message: str, hint: str
) -> None:
    with store:
        for name in known:
            await versions.deploy(store, name, value("x"), ANN)
        with pytest.raises(OctoError) as caught:
            await versions.resolve(store, "triaje")

    assert (caught.value.message, caught.value.hint) == (message, hint)


async def test_a_store_in_memory_hints_at_one_that_keeps() -> None:
    with Store() as memory, pytest.raises(OctoError) as caught:
        await versions.resolve(memory, "a")

    assert caught.value.hint == "the store is in memory; `--store DIR` names one that keeps agents"


async def test_a_version_that_is_not_kept_is_told_with_those_that_are(filled: Store) -> None:
    with pytest.raises(OctoError) as caught:
        await versions.resolve(filled, "a", 9)

    assert str(caught.value.message) == 'agent "a" has no version 9: versions 1 to 3 are kept'


async def test_what_the_config_declares_counts_where_the_store_could_not_take_it(filled: Store) -> None:
    found = await versions.resolve(filled, "a", declared={"a": value("declared")})

    assert (found.value, found.version, found.source) == (value("declared"), None, "deployed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", 'agent "a": its stored value is no mapping'),
        ("{", 'agent "a": its stored value is not JSON: expecting property name enclosed in double quotes at '),
    ],
)
async def test_a_stored_value_that_is_none_is_an_error(filled: Store, text: str, message: str) -> None:
    await filled.write(lambda db: db.execute("UPDATE agent SET value = ?", (text,)))

    with pytest.raises(OctoError) as caught:
        await versions.resolve(filled, "a")
    assert caught.value.message.startswith(message)


# ---------------------------------------------------------------- versions


async def test_every_write_is_a_version_numbered_from_1(filled: Store) -> None:
    assert await history(filled) == [(3, "deploy", "ann"), (2, "deploy", "ann"), (1, "deploy", "ann")]


async def test_a_value_that_is_in_force_is_not_written_again(filled: Store) -> None:
    same = {"prompt": "three", "connector": "llm"}

    assert await versions.deploy(filled, "a", same, BOB) == Deployed("a", 3, is_new=False)
    assert len(await history(filled)) == 3


async def test_a_restore_writes_forward_and_always(filled: Store) -> None:
    assert await versions.restore(filled, "a", 1, BOB) == Deployed("a", 4, is_new=True)
    assert await versions.restore(filled, "a", 4, BOB) == Deployed("a", 5, is_new=True)
    assert (await versions.resolve(filled, "a")).value == value("one")
    assert (await history(filled))[:2] == [(5, "restore of v4", "bob"), (4, "restore of v1", "bob")]


async def test_the_last_100_versions_are_kept_and_numbers_go_on(store: Store) -> None:
    with store:
        for number in range(105):
            await versions.deploy(store, "a", value(str(number)), ANN)
            await versions.deploy(store, "b", value(str(number % 2)), ANN)
        kept = [version for version, _, _ in await history(store)]
        assert kept == list(range(105, 5, -1))
        with pytest.raises(UsageError) as caught:
            await versions.restore(store, "a", 5, ANN)

    assert caught.value.message == 'agent "a" has no version 5: versions 6 to 105 are kept'


async def test_numbers_are_not_used_again_after_the_history_was_cleared(filled: Store) -> None:
    assert await versions.clear_history(filled, "a") == (2, 3)
    assert await versions.clear_history(filled, "a") == (0, 3)
    assert (await versions.deploy(filled, "a", value("four"), ANN)).version == 4
    assert [version for version, _, _ in await history(filled)] == [4, 3]


async def test_what_is_cleared_leaves_the_bytes_of_the_store(store: Store, tmp_path: Path) -> None:
    secrets = [f"SECRET-{number}-" + "s" * (50 if number % 2 else 9000) for number in range(6)]
    with store:
        for secret in secrets:
            await versions.deploy(store, "a", value(secret), ANN)
            await versions.deploy(store, "b", value(secret.replace("SECRET", "OTHER")), ANN)
        assert _bytes_hold(tmp_path / "store", b"SECRET-0-")

        await versions.deploy(store, "a", value("clean"), ANN)
        await versions.clear_history(store, "a")

        assert not _bytes_hold(tmp_path / "store", b"SECRET-")
        assert _bytes_hold(tmp_path / "store", b"OTHER-0-")
    assert not _bytes_hold(tmp_path / "store", b"SECRET-")


def _bytes_hold(folder: Path, what: bytes) -> bool:
    return any(what in file.read_bytes() for file in folder.iterdir())


async def test_a_reader_that_holds_the_log_is_waited_for_and_told(tmp_path: Path) -> None:
    with Store(tmp_path / "store", patience=0.2) as store:
        await versions.deploy(store, "a", value("one"), ANN)
        await versions.deploy(store, "a", value("two"), ANN)
        reader = sqlite3.connect(tmp_path / "store" / "octo.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM agent").fetchall()
        with pytest.raises(StoreError) as caught:
            await versions.clear_history(store, "a")
        reader.close()

        assert caught.value.hint == (
            "the versions are gone, their bytes may not be: run `octo agents clear-history a` once more"
        )
        assert await versions.clear_history(store, "a") == (0, 2)


# ---------------------------------------------------------------- drafts


async def test_a_draft_replaces_the_one_before_and_keeps_its_base(filled: Store) -> None:
    assert await versions.put_draft(filled, "a", value("d1"), ANN) == 3
    await versions.deploy(filled, "a", value("four"), BOB)
    assert await versions.put_draft(filled, "a", value("d2"), ANN) == 3
    assert await versions.put_draft(filled, "a", value("d3"), BOB) == 4
    rows = await filled.read(lambda db: db.execute("SELECT user, base_version FROM agent_draft").fetchall(), [])
    assert rows == [("ann", 3), ("bob", 4)]


async def test_a_draft_is_deployed_forward_and_dropped(filled: Store) -> None:
    await versions.put_draft(filled, "a", value("mine"), ANN)

    assert await versions.deploy_draft(filled, "a", ANN) == Deployed("a", 4, is_new=True)
    assert (await history(filled))[0] == (4, "draft", "ann")
    with pytest.raises(UsageError) as caught:
        await versions.deploy_draft(filled, "a", ANN)
    assert caught.value.message == 'agent "a" has no draft of `ann`'


async def test_a_draft_of_a_new_agent_has_no_base(store: Store) -> None:
    with store:
        assert await versions.put_draft(store, "new", value("x"), ANN) is None
        assert await versions.deploy_draft(store, "new", ANN) == Deployed("new", 1, is_new=True)


async def test_a_draft_is_not_deployed_over_what_came_after_its_base(filled: Store) -> None:
    await versions.put_draft(filled, "a", value("mine", temperature=0.5), ANN)
    await versions.deploy(filled, "a", value("theirs", model="m2"), BOB)

    with pytest.raises(UsageError) as caught:
        await versions.deploy_draft(filled, "a", ANN)
    assert caught.value.message == (
        'agent "a": the draft was begun from v3, and v4 is deployed; deployed since: `model`, `prompt`; changed in the '
        "draft: `prompt`, `temperature`; in both: `prompt`"
    )
    assert await versions.deploy_draft(filled, "a", ANN, force=True) == Deployed("a", 5, is_new=True)


async def test_a_draft_of_a_new_agent_is_not_deployed_over_one_that_came_meanwhile(store: Store) -> None:
    with store:
        await versions.put_draft(store, "new", value("mine"), ANN)
        await versions.deploy(store, "new", value("theirs"), BOB)
        with pytest.raises(UsageError) as caught:
            await versions.deploy_draft(store, "new", ANN)

    assert caught.value.message.startswith(
        'agent "new": the draft was begun before the agent was deployed, and v1 is deployed; '
    )


async def test_a_draft_is_discarded(filled: Store) -> None:
    await versions.put_draft(filled, "a", value("mine"), ANN)
    await versions.discard_draft(filled, "a", "ann")
    with pytest.raises(UsageError) as caught:
        await versions.discard_draft(filled, "a", "ann")

    assert caught.value.hint == "`octo agents draft a --edit` begins one"


# ---------------------------------------------------------------- whole agents


async def test_a_new_name_takes_value_versions_and_drafts_along(filled: Store) -> None:
    await versions.put_draft(filled, "a", value("mine"), BOB)
    await versions.rename(filled, "a", "team/b")

    assert (await versions.resolve(filled, "team/b", None, "bob")).value == value("mine")
    assert len(await history(filled, "team/b")) == 3
    assert await history(filled) == []


async def test_no_number_comes_twice_under_a_name(filled: Store) -> None:
    await versions.delete(filled, "a")
    assert (await versions.deploy(filled, "a", value("again"), ANN)).version == 4

    await versions.rename(filled, "a", "b")
    assert (await versions.deploy(filled, "a", value("another"), ANN)).version == 5
    assert (await versions.deploy(filled, "b", value("changed"), ANN)).version == 5
    with pytest.raises(UsageError) as caught:
        await versions.resolve(filled, "a", 4)
    assert caught.value.message == 'agent "a" has no version 4: version 5 is kept'


async def test_an_agent_that_comes_back_goes_on_counting_before_it_is_stored(filled: Store) -> None:
    await versions.delete(filled, "a")
    declared = {"a": value("declared")}

    assert (await versions.resolve(filled, "a", 4, declared=declared)).value == value("declared")
    with pytest.raises(UsageError) as caught:
        await versions.resolve(filled, "a", 1, declared=declared)
    assert (caught.value.message, caught.value.hint) == (
        'agent "a" has no version 1',
        "the next run stores what is declared as version 4",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("a", "b", 'there is an agent "b" already'),
        ("a", "d", 'there is an agent "d" already'),
        ("a", "a", 'the agent "a" has that name already'),
        ("a", "a@2", "`a@2` is no name of an agent"),
        ("nope", "c", 'agent "nope" not found'),
    ],
    ids=["taken", "a draft", "its own", "no name", "missing"],
)
async def test_a_name_that_cannot_be_given_changes_nothing(filled: Store, old: str, new: str, message: str) -> None:
    await versions.deploy(filled, "b", value("b"), ANN)
    await versions.put_draft(filled, "d", value("d"), ANN)
    with pytest.raises(UsageError) as caught:
        await versions.rename(filled, old, new)

    assert caught.value.message == message
    assert await filled.read(agents.names, []) == ["a", "b"]


async def test_an_agent_goes_with_its_versions_and_drafts(filled: Store) -> None:
    await versions.put_draft(filled, "a", value("mine"), ANN)

    assert await versions.delete(filled, "a") == (3, 1)
    with pytest.raises(UsageError):
        await versions.delete(filled, "a")


async def test_readers_see_a_whole_value_while_others_write(filled: Store, tmp_path: Path) -> None:
    """Its version, hash and value belong together at any moment."""
    from octo.agent import authored

    async def write() -> None:
        for number in range(30):
            await versions.deploy(filled, "a", value(str(number) * 2000), ANN)
            await asyncio.sleep(0)

    async def read() -> None:
        with Store(tmp_path / "store") as other:
            for _ in range(30):
                found = await versions.resolve(other, "a")
                assert authored.digest(found.value) == found.hash
                await asyncio.sleep(0)

    await asyncio.gather(write(), read())


@pytest.mark.parametrize(
    "work",
    [
        lambda store: versions.deploy(store, "a", value("four"), ANN),
        lambda store: versions.put_draft(store, "a", value("other"), ANN),
        lambda store: versions.deploy_draft(store, "a", ANN),
        lambda store: versions.discard_draft(store, "a", "ann"),
        lambda store: versions.restore(store, "a", 1, ANN),
        lambda store: versions.clear_history(store, "a"),
        lambda store: versions.rename(store, "a", "b"),
        lambda store: versions.delete(store, "a"),
    ],
    ids=["deploy", "draft", "deploy a draft", "discard", "restore", "clear", "rename", "delete"],
)
async def test_a_store_that_cannot_be_written_is_told_and_keeps_what_it_has(filled: Store, work: Any) -> None:
    """SQLite itself plays the disk that is read-only."""
    await versions.put_draft(filled, "a", value("mine"), ANN)
    before = await filled.read(_everything, [])
    await filled.read(lambda db: db.execute("PRAGMA query_only = ON").fetchone(), None)

    with pytest.raises(StoreError) as caught:
        await work(filled)
    assert caught.value.message == f"`{filled}` cannot be written: attempt to write a readonly database"
    assert await filled.read(_everything, []) == before


def _everything(db: sqlite3.Connection) -> list[Any]:
    tables = ("agent", "agent_version", "agent_draft")
    return [db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables]
