"""octo/blocks/object.py: reading, writing and deleting stored values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from octo.errors import BlockError, ConfigError
from octo.runtime import Runtime
from octo.store.store import Store
from octo.testing.harness import config, runtime

FLOWS = """
env: [{name: API_KEY}]
flows:
  - name: keep
    process: [{type: object-write, key: body.key, value: body.value}]
  - name: keep-body
    process: [{type: object-write, settings: {key: '"body"', value: ''}}]
  - name: keep-volatile
    process: [{type: object-write, key: body.key, value: body.value, volatile: true}]
  - name: recall
    process: [{type: object-read, key: body.key}]
  - name: recall-volatile
    process: [{type: object-read, key: body.key, volatile: true}]
  - name: recall-into
    process: [{type: object-read, key: body.key, as: seen, existsVar: known}]
  - name: recall-or
    process: [{type: object-read, key: body.key, as: seen, default: '[body.key]', existsVar: known}]
  - name: recall-or-body
    process: [{type: object-read, key: body.key, default: '"none"'}]
  - name: bad-default
    process: [{type: object-read, key: body.key, default: body.nothing}]
  - name: forget
    process: [{type: object-delete, key: body.key}]
  - name: secret
    process: [{type: object-write, key: '"secret"', value: '"key " + env.API_KEY'}]
"""


def pair(value: Any, key: Any = "k") -> dict[str, Any]:
    return {"key": key, "value": value}


async def test_a_written_value_is_read_by_a_later_message() -> None:
    async with runtime(FLOWS) as octo:
        kept = await octo.invoke("keep", pair({"n": 1.0}), vars={"v": True})

        assert (kept.body, kept.vars) == (pair({"n": 1.0}), {"v": True})
        assert (await octo.invoke("recall", pair(None))).body == {"n": 1.0}


async def test_a_value_outlives_the_runtime_but_a_volatile_one_does_not(tmp_path: Path) -> None:
    for expected in (None, "stored"):
        with Store(tmp_path / "store") as store:
            async with Runtime(config(FLOWS), store=store) as octo:
                assert (await octo.invoke("recall", pair(None))).body == expected
                assert (await octo.invoke("recall-volatile", pair(None))).body is None
                await octo.invoke("keep", pair("stored"))
                await octo.invoke("keep-volatile", pair("volatile"))
                assert (await octo.invoke("recall", pair(None))).body == "stored"
                assert (await octo.invoke("recall-volatile", pair(None))).body == "volatile"


async def test_without_a_value_the_body_is_stored() -> None:
    async with runtime(FLOWS) as octo:
        await octo.invoke("keep-body", [1.0, None])

        assert (await octo.invoke("recall", pair(None, key="body"))).body == [1.0, None]


async def test_a_key_that_is_no_text_is_its_compact_json() -> None:
    async with runtime(FLOWS) as octo:
        await octo.invoke("keep", pair("found", key={"b": 1.0, "a": [True]}))

        assert (await octo.invoke("recall", pair(None, key='{"a":[true],"b":1}'))).body == "found"


@pytest.mark.parametrize(
    ("flow", "body", "vars"),
    [
        ("recall", None, {"seen": "before"}),
        ("recall-into", pair(None), {"seen": "before", "known": False}),
        ("recall-or", pair(None), {"seen": ["k"], "known": False}),
        ("recall-or-body", "none", {"seen": "before"}),
    ],
)
async def test_what_a_miss_leaves(flow: str, body: Any, vars: dict[str, Any]) -> None:
    async with runtime(FLOWS) as octo:
        message = await octo.invoke(flow, pair(None), vars={"seen": "before"})

    assert (message.body, message.vars) == (body, vars)


@pytest.mark.parametrize("value", ["stored", None], ids=["text", "null"])
@pytest.mark.parametrize("flow", ["recall-into", "recall-or"])
async def test_a_hit_goes_into_the_variable_even_when_it_is_null(flow: str, value: Any) -> None:
    async with runtime(FLOWS) as octo:
        await octo.invoke("keep", pair(value))
        message = await octo.invoke(flow, pair(None))

    assert (message.body, message.vars) == (pair(None), {"seen": value, "known": True})


async def test_deleting_is_fine_whether_or_not_there_is_something() -> None:
    async with runtime(FLOWS) as octo:
        await octo.invoke("keep", pair(1.0))
        for _ in range(2):
            assert (await octo.invoke("forget", pair(None))).body == pair(None)

        assert (await octo.invoke("recall", pair(1.0))).body is None


@pytest.mark.parametrize(
    ("flow", "body", "text"),
    [
        ("recall", pair(None, key=""), 'block "object-read": object-read key: it is empty'),
        ("keep", pair(None, key=""), 'block "object-write": object-write key: it is empty'),
        ("forget", pair(None, key=""), 'block "object-delete": object-delete key: it is empty'),
        ("recall", {}, 'block "object-read": object-read key: evaluate expression: no such key: key'),
        (
            "keep",
            {"key": "k"},
            'block "object-write": object-write value: evaluate expression: no such key: value',
        ),
        (
            "bad-default",
            pair(None),
            'block "object-read": object-read "k": default: evaluate expression: no such key: nothing',
        ),
    ],
)
async def test_failures_are_told_in_the_words_of_the_block(flow: str, body: Any, text: str) -> None:
    async with runtime(FLOWS) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.invoke(flow, body)

    assert str(caught.value) == text


@pytest.mark.parametrize("flow", ["keep", "recall", "forget"])
async def test_a_store_that_cannot_be_used_is_named(tmp_path: Path, flow: str) -> None:
    file = tmp_path / "octo.db"
    file.write_text("precious", encoding="utf-8")

    with Store(tmp_path) as store:
        async with Runtime(config(FLOWS), store=store) as octo:
            with pytest.raises(BlockError) as caught:
                await octo.invoke(flow, pair(1.0))

    assert str(caught.value).endswith(f'"k": `{file}` is not an SQLite file')
    assert caught.value.hint == "move it away, or name another directory with `--store DIR`"
    assert file.read_text(encoding="utf-8") == "precious"


async def test_a_secret_is_not_stored() -> None:
    async with runtime(FLOWS, environ={"API_KEY": "s3cret-value"}) as octo:
        await octo.invoke("secret")

        assert (await octo.invoke("recall", pair(None, key="secret"))).body == "key ***"


def test_a_key_is_required() -> None:
    with pytest.raises(ConfigError) as caught:
        config("flows: [{name: main, process: [{type: object-read, as: x}]}]")

    assert "key" in str(caught.value)
