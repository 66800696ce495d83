"""octo/blocks/cache_scope.py, octo/blocks/invalidate_cache.py: using a body again, and forgetting it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octo.errors import BlockError, ConfigError, OctoError
from octo.message import Dropped
from octo.observe import Event, LogLine
from octo.run import Run
from octo.runtime import Runtime
from octo.store.store import Store
from octo.testing.harness import config, runtime

FLOWS = """
env: [{name: API_KEY}]
flows:
  - name: main
    process: &main
      - type: cache-scope
        key: body.key
        ttl: 10s
        body:
          process:
            - { type: set-variable, settings: { name: ran, value: 'true' } }
            - { type: set-payload, value: '[body.key, body.value]' }
  - name: other
    process: *main
  - name: for-ever
    process:
      - { type: cache-scope, key: body.key, ttl: "0", body: { process: [ { type: set-payload, value: body.value } ] } }
  - name: default
    process:
      - { type: cache-scope, key: body.key, body: { process: [ { type: set-payload, value: body.value } ] } }
  - name: raw
    process:
      - type: cache-scope
        key: '"raw"'
        body:
          process: [ { type: set-payload, value: '"<p>"', rawBody: true, contentType: text/html } ]
  - name: fails
    process:
      - type: cache-scope
        key: body.key
        body:
          process:
            - type: if
              condition: body.fail
              then: { process: [ { type: set-payload, value: body.missing } ] }
              else: { process: [ { type: set-payload, value: '"fine"' } ] }
  - name: secret
    process:
      - type: cache-scope
        key: body.key
        body: { process: [ { type: set-payload, value: '[env.API_KEY, body.n]' } ] }
  - name: forget
    process:
      - { type: invalidate-cache, settings: { key: body.key } }
"""


class Clock:
    now = 10**18

    def __call__(self) -> int:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += int(seconds * 10**9)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as store:
        yield store


def body(value: Any, key: Any = "k") -> dict[str, Any]:
    return {"key": key, "value": value}


async def test_a_hit_replaces_the_body_and_nothing_runs() -> None:
    async with runtime(FLOWS) as octo:
        first = await octo.invoke("main", body(1.0))
        second = await octo.invoke("main", body(2.0))
        another = await octo.invoke("main", body(2.0, key="another"))

    assert (first.body, first.vars) == (["k", 1.0], {"ran": True})
    assert (second.body, second.vars) == (["k", 1.0], {})
    assert another.body == ["another", 2.0]


async def test_all_scopes_share_what_has_the_same_key() -> None:
    async with runtime(FLOWS) as octo:
        await octo.invoke("main", body(1.0, key={"b": 1, "a": 2}))

        assert (await octo.invoke("other", body(2.0, key={"a": 2, "b": 1}))).body == [{"a": 2.0, "b": 1.0}, 1.0]


@pytest.mark.parametrize(
    ("flow", "seconds"), [("main", 10), ("default", 60)], ids=["the time that is given", "a minute by default"]
)
async def test_a_body_is_used_until_its_time_is_over(flow: str, seconds: int, clock: Clock) -> None:
    async with Runtime(config(FLOWS), clock=clock) as octo:
        old = (await octo.invoke(flow, body("old"))).body
        clock.pass_(seconds - 0.001)
        assert (await octo.invoke(flow, body("new"))).body == old
        clock.pass_(0.001)

        assert (await octo.invoke(flow, body("new"))).body != old


async def test_zero_is_for_ever(clock: Clock) -> None:
    async with Runtime(config(FLOWS), clock=clock) as octo:
        await octo.invoke("for-ever", body("old"))
        clock.pass_(10**9)

        assert (await octo.invoke("for-ever", body("new"))).body == "old"


async def test_a_cached_body_serves_the_next_process(store: Store) -> None:
    for value in ("old", "new"):
        async with Runtime(config(FLOWS), store=store) as octo:
            message = await octo.invoke("main", body(value))
        store.close()
        assert message.body == ["k", "old"]


async def test_a_hit_makes_the_body_plain() -> None:
    async with runtime(FLOWS) as octo:
        first, second = [await octo.invoke("raw") for _ in range(2)]

    assert (first.raw, second.raw) == (True, False)
    assert first.body == second.body == {"contentType": "text/html", "rawData": "<p>"}


async def test_a_failure_is_not_cached() -> None:
    async with runtime(FLOWS) as octo:
        with pytest.raises(BlockError):
            await octo.invoke("fails", {"key": "k", "fail": True})
        assert (await octo.invoke("fails", {"key": "k", "fail": False})).body == "fine"

        assert (await octo.invoke("fails", {"key": "k", "fail": True})).body == "fine"


async def test_a_drop_and_a_stop_are_not_cached(run_ending: Any) -> None:
    async with runtime(FLOWS) as octo:
        with pytest.raises(Dropped):
            await run_ending(octo, drop=True)
        assert (await run_ending(octo, stop=True)).body == "stopped"
        assert (await run_ending(octo)).body == "whole"

        assert (await run_ending(octo, drop=True)).body == "whole"


@pytest.fixture
def run_ending() -> Any:
    """Runs the scope of the flow `main` with a body that drops or stops its message."""
    from octo.block import Block, Place, SubFlow
    from octo.blocks.cache_scope import CacheScope
    from octo.fields import Expression

    class Ending(Block, type="test-ending"):
        drop: bool = False
        stop: bool = False

        async def execute(self, message: Any, run: Any) -> Any:
            if self.drop:
                raise Dropped
            message.body = "whole"
            if self.stop:
                message.body = "stopped"
                message.stop()
            return message

    async def call(octo: Runtime, **how: bool) -> Any:
        ending = Ending(**how)
        ending.put_at(Place("", "ending", "ending"))
        scope = CacheScope(key=Expression('"ending"', str), body=SubFlow(process=(ending,)))
        return await scope.execute(octo.message(), Run(octo, "main"))

    return call


async def test_a_body_that_shows_a_secret_is_cached_in_memory_only(tmp_path: Path) -> None:
    environ = {"API_KEY": "s3cret-value"}
    with Store(tmp_path / "store") as store:
        async with Runtime(config(FLOWS, environ=environ), store=store) as octo:
            await octo.invoke("secret", {"key": "k", "n": 1.0})
            assert (await octo.invoke("secret", {"key": "k", "n": 2.0})).body == ["s3cret-value", 1.0]
            await octo.invoke("forget", {"key": "k"})
            assert (await octo.invoke("secret", {"key": "k", "n": 3.0})).body == ["s3cret-value", 3.0]

    assert list(tmp_path.iterdir()) == []


async def test_invalidating_forgets_the_body_of_that_key_only() -> None:
    async with runtime(FLOWS) as octo:
        for key in ("k", "another"):
            await octo.invoke("main", body("old", key=key))
        for _ in range(2):
            assert (await octo.invoke("forget", body("x"))).body == body("x")

        assert (await octo.invoke("main", body("new"))).body == ["k", "new"]
        assert (await octo.invoke("main", body("new", key="another"))).body == ["another", "old"]


class Warnings:
    kinds = (LogLine,)

    def __init__(self) -> None:
        self.texts: list[str] = []

    def notify(self, event: Event) -> None:
        assert isinstance(event, LogLine)
        self.texts.append(f"{event.level}: {event.text}")


async def test_a_store_that_cannot_be_used_is_no_failure(tmp_path: Path) -> None:
    file = tmp_path / "octo.db"
    file.write_text("precious", encoding="utf-8")
    warnings = Warnings()

    with Store(tmp_path) as store:
        async with Runtime(config(FLOWS), store=store, observers=[warnings]) as octo:
            message = await octo.invoke("main", body(1.0))
            with pytest.raises(OctoError) as caught:
                await octo.invoke("forget", body(1.0))

    assert message.body == ["k", 1.0]
    assert warnings.texts == [
        f"warn: cache-scope: `{file}` is not an SQLite file",
        f"warn: cache-scope: not cached: `{file}` is not an SQLite file",
    ]
    assert str(caught.value) == (f'block "invalidate-cache": invalidate-cache "k": `{file}` is not an SQLite file')


@pytest.mark.parametrize(
    ("flow", "input_", "text"),
    [
        ("main", {}, 'block "cache-scope": cache-scope key: evaluate expression: no such key: key'),
        ("forget", {}, 'block "invalidate-cache": invalidate-cache key: evaluate expression: no such key: key'),
        ("forget", {"key": ""}, 'block "invalidate-cache": invalidate-cache key: it is empty'),
    ],
)
async def test_failures_are_told_in_the_words_of_the_block(flow: str, input_: Any, text: str) -> None:
    async with runtime(FLOWS) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.invoke(flow, input_)

    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("ttl", "found"),
    [("-1s", "`-1s`, which is negative"), ("soon", "`soon`"), ("5", "`5`"), ("-5", "`-5`"), ("", "blank text")],
)
def test_a_time_to_live_is_a_duration(ttl: str, found: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(
            f'flows: [{{name: main, process: [{{type: cache-scope, key: body, ttl: "{ttl}", body: {{process: []}}}}]}}]'
        )

    assert [problem.message for problem in caught.value.problems] == [f"expected a duration, found {found}"]
