"""octo/blocks/fork.py: chains at once."""

import asyncio

import pytest

from acting import drop, runtime, stop
from octo.block import Block
from octo.config.address import find
from octo.errors import BlockError, ConfigError
from octo.observe import BlockEntered, BlockLeft
from octo.testing.harness import config

FLOW = """
  flows:
    - name: main
      pool: 2
      process:
        - type: fork
          branches:
            - { name: a, process: [ { type: set-variable, name: one, settings: { name: x, value: '1' } } ] }
            - { process: [ { type: set-payload, name: two, settings: { value: 'body.n + vars.seen' } } ] }
            - { name: c, process: [ { type: set-payload, name: three, settings: { value: '3' } } ] }
        - { type: set-variable, settings: { name: after, value: 'true' } }
"""


def forks(count, pool, inner=0):
    """A flow that forks, and forks again in every branch when `inner` is given."""
    work = "{type: set-payload, name: work, settings: {value: '1'}}"
    if inner:
        branches = ", ".join([f"{{process: [{work}]}}"] * inner)
        work = f"{{type: fork, branches: [{branches}]}}"
    branches = ", ".join([f"{{process: [{work}]}}"] * count)
    return f"flows: [{{name: main, pool: {pool}, process: [{{type: fork, branches: [{branches}]}}]}}]"


class Together:
    """Counts how many messages are in it at once."""

    def __init__(self):
        self.now = 0
        self.most = 0
        self.all = 0

    async def __call__(self, message, run):
        self.now += 1
        self.all += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1


async def test_the_message_goes_on_unchanged_and_what_branches_did_is_gone(run_flow):
    message = await run_flow(FLOW, {"n": 1.0}, vars={"seen": 2.0})

    assert (message.body, message.vars) == ({"n": 1.0}, {"seen": 2.0, "after": True})


async def test_every_branch_has_a_copy_of_the_message():
    seen = {}

    async def change(message, run):
        seen[id(message)] = (message.body["n"], dict(message.vars), message.event_id, message.correlation_id)
        message.body["n"] = 9.0
        message.vars["x"] = 1.0
        await asyncio.sleep(0)

    async with runtime(FLOW, {"one": change, "two": change, "three": change}) as octo:
        message = await octo.invoke("main", {"n": 1.0}, vars={"seen": 2.0})

    assert len(seen) == 3
    assert set(map(str, seen.values())) == {str((1.0, {"seen": 2.0}, message.event_id, ""))}
    assert message.body == {"n": 1.0}


async def test_branches_run_at_the_same_time():
    both = asyncio.Barrier(2)

    async def meet(message, run):
        await both.wait()

    async with asyncio.timeout(5), runtime(FLOW, {"one": meet, "two": meet}) as octo:
        message = await octo.invoke("main", {})

    assert message.vars == {"after": True}


async def test_the_first_failing_branch_fails_the_block_and_ends_the_others():
    ended = []

    async def work(message, run):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(message.event_id)
            raise

    async with runtime(FLOW, {"one": work}) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.invoke("main", {"n": 1.0})

    assert str(caught.value) == (
        'block "fork": fork branch "": block "two": set-payload value: evaluate expression: no such key: seen'
    )
    assert caught.value.address == "main.fork[1].two"
    assert len(ended) == 1


async def test_a_failing_branch_is_called_by_its_name(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - type: fork
              branches: [ { name: a, process: [ { type: set-payload, settings: { value: body.x } } ] } ]
          error: [ { type: set-payload, settings: { value: '[body, vars.error]' } } ]
    """

    message = await run_flow(flow, {"y": 1.0})

    text = 'block "fork": fork branch "a": block "set-payload": set-payload value: evaluate expression: no such key: x'
    assert message.body == [{"y": 1.0}, {"message": text, "flow": "main", "block": "fork"}]


async def test_a_drop_inside_a_branch_has_no_effect():
    async with runtime(FLOW, {"one": drop, "two": drop, "three": drop}) as octo:
        message = await octo.invoke("main", {"n": 1.0})

    assert (message.body, message.vars) == ({"n": 1.0}, {"after": True})


async def test_a_stop_inside_a_branch_stops_the_flow_after_all_branches_finished():
    finished = []

    async def slow(message, run):
        await asyncio.sleep(0.01)
        finished.append(True)

    async with runtime(FLOW, {"one": stop, "two": slow, "three": slow}) as octo:
        message = await octo.invoke("main", {"n": 1.0})

    assert (message.body, message.vars, message.stopped) == ({"n": 1.0}, {}, True)
    assert finished == [True, True]


async def test_a_failure_wins_over_a_stop():
    async with runtime(FLOW, {"one": stop}) as octo:
        with pytest.raises(BlockError):
            await octo.invoke("main", {"n": 1.0})


@pytest.mark.parametrize(("count", "pool", "most"), [(5, 2, 2), (5, 1, 1), (3, 8, 3), (20, 0, 8)])
async def test_the_pool_of_the_flow_bounds_the_branches(count, pool, most):
    work = Together()

    async with runtime(forks(count, pool), {"work": work}) as octo:
        await octo.invoke("main")

    assert (work.all, work.most) == (count, most)


async def test_all_messages_of_a_flow_share_its_pool():
    work = Together()

    async with runtime(forks(3, 2), {"work": work}) as octo:
        await asyncio.gather(*(octo.invoke("main") for _ in range(5)))

    assert (work.all, work.most) == (15, 2)


async def test_with_a_full_queue_branches_run_on_the_caller_and_none_is_lost():
    work = Together()

    async with runtime(forks(90, 2), {"work": work}) as octo:
        await octo.invoke("main")

    assert (work.all, work.most) == (90, 3)


@pytest.mark.parametrize("pool", [1, 2, 8])
async def test_forks_within_forks_never_wait_for_each_other(pool):
    work = Together()

    async with asyncio.timeout(10), runtime(forks(12, pool, inner=12), {"work": work}) as octo:
        await asyncio.gather(*(octo.invoke("main") for _ in range(3)))

    assert work.all == 3 * 12 * 12


async def test_forks_of_flows_that_call_each_other_never_wait_for_each_other():
    flow = """
      flows:
        - name: a
          pool: 1
          process: [ { type: fork, branches: [ { process: [ { type: flow-ref, settings: { flow: b } } ] },
                                               { process: [ { type: flow-ref, settings: { flow: b } } ] } ] } ]
        - name: b
          pool: 1
          process:
            - type: fork
              branches:
                - process:
                    - type: if
                      condition: 'body < 3'
                      then:
                        process:
                          - { type: set-payload, settings: { value: body + 1 } }
                          - { type: flow-ref, settings: { flow: a } }
                - { process: [ { type: set-payload, name: work, settings: { value: '1' } } ] }
    """
    work = Together()

    async with asyncio.timeout(10), runtime(flow, {"work": work}) as octo:
        await octo.invoke("a", 1.0)

    assert work.all == 2 + 4 + 8


async def test_observers_see_every_block_of_every_branch_by_its_address():
    class Recorder:
        kinds = (BlockEntered, BlockLeft)

        def __init__(self):
            self.seen = []

        def notify(self, event):
            self.seen.append((type(event).__name__, event.address))

    recorder = Recorder()

    async with runtime(FLOW, {}, observers=[recorder]) as octo:
        await octo.invoke("main", {"n": 1.0}, vars={"seen": 1.0})

    inside = ["main.fork[a].one", "main.fork[1].two", "main.fork[c].three"]
    assert recorder.seen[0] == ("BlockEntered", "main.fork")
    assert recorder.seen[-3] == ("BlockLeft", "main.fork")
    assert sorted(recorder.seen[1:-3]) == sorted(
        (kind, address) for kind in ("BlockEntered", "BlockLeft") for address in inside
    )


def test_branches_are_addressed_by_name_or_index():
    loaded = config(FLOW)

    found: list[Block] = [find(loaded, address) for address in ("main.fork[a].one", "main.fork[1].two")]

    assert [block.label for block in found] == ["one", "two"]


def test_a_fork_has_at_least_one_branch():
    with pytest.raises(ConfigError, match="`branches` needs at least one entry"):
        config("flows: [{name: main, process: [{type: fork, branches: []}]}]")
