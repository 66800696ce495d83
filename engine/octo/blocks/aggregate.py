"""Bring messages together in groups, each of which goes on as one message."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from octo.block import Finding, SubFlow, Takeover
from octo.errors import OctoError
from octo.fields import Duration, Expression, Int, Text, one_of
from octo.message import Dropped, Message
from octo.refusals import Refusals
from octo.run import Run, RunError
from octo.services.base import Conflict
from octo.services.groups import Group, Groups
from octo.values import Json, kind_of

if TYPE_CHECKING:
    from octo.config.model import Config, Flow
    from octo.runtime import Runtime

Reason = Literal["size", "timeout", "expression", "overflow"]

ATTEMPTS: Final = 500
"""How often a message tries to get into a group that others write at the same time."""


class Aggregate(Takeover, type="aggregate", group="control"):
    """Collect messages in groups; a group that is complete goes through the rest of the flow as one message.

    The message that was collected completes its flow. The one that goes on has what was collected as its body, and the
    variables `aggregateKey`, `aggregateCount` and `aggregateReason` (`size`, `timeout`, `expression` or `overflow`), no
    others. Open groups are kept in the store.
    """

    correlation: Expression[str] = Field(default_factory=lambda: Expression("vars.groupId", str))
    """The key of the group that the message belongs to; by default the one that `split` has set."""

    strategy: Annotated[Literal["append", "expression"], one_of("append", "expression")] = "append"
    """`append` collects bodies in a list, by `vars.groupIndex` if there is one; `expression` makes its own of them."""

    expression: Expression | None = None
    """What becomes of the group with this message, in strategy `expression`; `vars.group.acc` is what it was before."""

    completion_size: Expression | None = None
    """How many messages make a group complete; the first whole number above 0 counts. By default `vars.groupSize`."""

    completion_timeout: Duration | None = None
    """After this time a group goes on as it is; without it, it waits for ever."""

    completion_expression: Expression[bool] | None = None
    """Read after each message; true makes the group complete."""

    timeout_from: Annotated[Literal["first", "last"], one_of("first", "last")] = "first"
    """Which message of the group the time counts from."""

    store_key: Text | None = None
    """What the groups are stored under; by default the block's address. Keep it, and groups survive a new name."""

    max_groups: Int = 1000
    """How many groups may be open at once."""

    on_overflow: Annotated[Literal["fail", "complete", "drop"], one_of("fail", "complete", "drop")] = "fail"
    """What a message does for which there is no room: fail, send the oldest group on, or be dropped."""

    build_response: SubFlow | None = None
    """Makes the answer for the message that was collected."""

    @model_validator(mode="after")
    def _the_strategy_has_what_it_needs(self) -> Aggregate:
        refusals = Refusals()
        if self.strategy == "expression" and self.expression is None:
            refusals.add("aggregate requires `expression` in strategy `expression`", hint="add `expression:`")
        if self.strategy == "append" and self.expression is not None:
            hint = "add `strategy: expression`, or remove it"
            refusals.add("aggregate takes no `expression` in strategy `append`", "expression", hint=hint)
        if self.completion_timeout is not None and self.completion_timeout.ns <= 0:
            refusals.add(
                "`completionTimeout` must be greater than 0", "completionTimeout", hint="leave it out for none"
            )
        if self.max_groups <= 0:
            refusals.add("`maxGroups` must be greater than 0", "maxGroups")
        refusals.raise_if_any()
        return self

    def check(self, config: Config) -> Iterator[Finding]:
        yield from super().check(config)
        for flow in config.flows:
            for other in (*flow.process, *(flow.error or ())):
                if other is self:
                    return
                if isinstance(other, Aggregate) and other.key == self.key:
                    yield Finding(
                        f"another `aggregate` keeps its groups under the store key `{self.key}` already",
                        ("storeKey",) if self.store_key else (),
                        "give each a `storeKey` of its own" if self.store_key else "give each a `name` or a `storeKey`",
                    )

    @property
    def key(self) -> str:
        """What its groups are stored under."""
        return self.store_key or self.address

    # ------------------------------------------------------------ a message

    async def take(self, message: Message, run: Run, rest: Flow) -> Message:
        groups = Groups(run.services.entries, self.key)
        key = run.evaluate(self.correlation, message, "aggregate correlation")
        if not key:
            raise RunError("aggregate correlation: it is empty")
        await self._persistently(key, message, run, groups, rest)
        return await run.chain(self.build_response.process, message) if self.build_response else message

    async def _persistently(self, key: str, message: Message, run: Run, groups: Groups, rest: Flow) -> None:
        """Put a message into its group, again from the start whenever somebody else was faster."""
        import asyncio

        for attempt in range(ATTEMPTS):
            try:
                return await self._put(message, await self._group(key, message, run, groups), run, groups, rest)
            except Conflict:
                await asyncio.sleep(min(attempt, 10) / 1000)
        raise RunError(f"aggregate: the group `{key}` was written by others {ATTEMPTS} times in a row")

    async def _group(self, key: str, message: Message, run: Run, groups: Groups) -> Group:
        """The group that a message belongs to. Raises Conflict when that has to be looked up again."""
        number = await groups.find(key)
        group = await groups.read(number) if number else None
        if group is None:
            now = _time(run.runtime.clock())
            return Group(number or 0, key, now, now, message.correlation_id)
        if group.closed:
            await groups.forget(group.number)
            raise Conflict
        return replace(group, key=key)

    async def _make_room(self, run: Run, groups: Groups, rest: Flow) -> None:
        if self.on_overflow == "drop":
            raise Dropped
        if self.on_overflow == "fail":
            raise RunError(
                f"aggregate: {self.max_groups} groups are open, as many as `maxGroups` allows",
                hint="let groups end by a `completionTimeout`, or raise `maxGroups`",
            )
        oldest = next(iter(await groups.open()), None)
        if oldest is not None:
            group = await groups.read(oldest)
            if group is None:  # somebody has begun it, and must now begin another
                group = Group(oldest, "", "", "", "")
            await self._release(group, "overflow", run, groups, rest)

    async def _put(self, message: Message, group: Group, run: Run, groups: Groups, rest: Flow) -> None:
        """Put a message into a group, which goes on if that completes it."""
        before = await self._seen(message, group, run, groups, self.expression, self.completion_size)
        size = self._size(before, run) if group.size < 0 else group.size
        after = replace(group, size=size, count=group.count + 1, last_at=_time(run.runtime.clock()))
        if self.expression is not None:
            after = replace(after, value=run.evaluate(self.expression, before, "aggregate expression"))
        else:
            after = await groups.add(after, _whole(message.vars.get("groupIndex")), message.body)
        if 0 < size <= after.count:
            await self._release(after, "size", run, groups, rest)
        elif await self._is_complete(message, after, run, groups):
            await self._release(after, "expression", run, groups, rest)
        elif not await groups.save(after, self.max_groups):
            await self._make_room(run, groups, rest)
            raise Conflict

    def _size(self, message: Message, run: Run) -> int:
        """The expected size that a message gives; -1 when it gives none."""
        if self.completion_size is None:
            return _whole(message.vars.get("groupSize")) or -1
        value = run.evaluate(self.completion_size, message, "aggregate completionSize")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise RunError(f"aggregate completionSize must evaluate to a number, got {kind_of(value)}")
        return _whole(value) or -1

    async def _is_complete(self, message: Message, group: Group, run: Run, groups: Groups) -> bool:
        if self.completion_expression is None:
            return False
        seen = await self._seen(message, group, run, groups, self.completion_expression)
        return run.evaluate(self.completion_expression, seen, "aggregate completionExpression")

    async def _seen(
        self, message: Message, group: Group, run: Run, groups: Groups, *expressions: Expression[Any] | None
    ) -> Message:
        """The message as the block's expressions see it: with the group in `vars.group`."""
        if not any(expressions):
            return message
        now = run.runtime.clock()
        seen = message.scope()
        seen.vars["group"] = {
            "key": group.key,
            "count": float(group.count),
            "size": float(group.size),
            "acc": await self._content(group, groups) if group.count else None,
            "firstAt": group.first_at,
            "lastAt": group.last_at,
            "ageMs": _ms_since(group.first_at, now),
            "idleMs": _ms_since(group.last_at, now),
        }
        return seen

    async def _content(self, group: Group, groups: Groups) -> Json:
        return group.value if self.strategy == "expression" else await groups.collected(group)

    # ------------------------------------------------------------ a group that goes on

    async def _release(self, group: Group, reason: Reason, run: Run, groups: Groups, rest: Flow) -> None:
        await groups.close(group)
        content = await self._content(group, groups)
        await groups.discard(group)
        if group.count == 0:
            return
        variables: dict[str, Json] = {
            "aggregateKey": group.key,
            "aggregateCount": float(group.count),
            "aggregateReason": reason,
        }
        released = Message(content, variables, event_id=run.runtime.new_id(), correlation_id=group.correlation_id)
        await run.hand_on(released, rest)

    def background(self, runtime: Runtime) -> Coroutine[Any, Any, None] | None:
        return None if self.completion_timeout is None else self._watch(runtime, self.completion_timeout)

    async def _watch(self, runtime: Runtime, timeout: Duration) -> None:
        """Send groups on whose time is over, until the runtime closes."""
        while await runtime.pause(min(max(timeout.seconds / 2, 1.0), 30.0)):
            try:
                await self.sweep(runtime)
            except OctoError as error:
                runtime.log("error", f"aggregate `{self.label}`: {error.message}")

    async def sweep(self, runtime: Runtime) -> None:
        """Send the groups on whose time is over."""
        if self.completion_timeout is None:
            return
        groups = Groups(runtime.services.entries, self.key)
        rest = self.rest(runtime.config)
        for number in await groups.open():
            group = await groups.read(number)
            if group is None:
                continue
            since = group.first_at if self.timeout_from == "first" else group.last_at
            if not group.closed and _ms_since(since, runtime.clock()) < self.completion_timeout.ns / 10**6:
                continue
            try:
                if group.closed:
                    await groups.forget(number)
                else:
                    await self._release(group, "timeout", Run(runtime, rest.title), groups, rest)
            except Conflict:
                continue


def _whole(value: Json) -> int:
    """A whole number that is not negative; -1 for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or value != value // 1:
        return -1
    return int(value)


def _time(ns: int) -> str:
    """RFC 3339, to the millisecond. A text, for a plain number of so many digits might show a secret one."""
    return datetime.fromtimestamp(ns / 10**9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _ms_since(time: str, now: int) -> float:
    passed = now / 10**6 - datetime.fromisoformat(time).timestamp() * 1000
    return float(max(round(passed), 0))
