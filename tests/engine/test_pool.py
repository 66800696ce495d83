"""octo/pool.py: a bounded number of pieces of work at once, and nothing that waits for itself."""

import asyncio

import pytest

from octo.pool import Pool


class Tracker:
    """Work that counts how much of it runs at once, and goes on when it is let go."""

    def __init__(self):
        self.running = 0
        self.most = 0
        self.done = []

    def piece(self, name, seconds=0.01):
        async def work():
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(seconds)
                self.done.append(name)
            finally:
                self.running -= 1

        return work

    def pieces(self, count):
        return [self.piece(number) for number in range(count)]


def fails(error):
    async def work():
        raise error

    return work


@pytest.mark.parametrize(("size", "count", "most"), [(1, 4, 1), (2, 5, 2), (8, 3, 3)], ids=["one", "two", "idle slots"])
async def test_no_more_than_its_size_runs_at_once_and_all_is_done(size, count, most):
    tracker = Tracker()

    await Pool(size).together(tracker.pieces(count), inside=False)

    assert tracker.most == most
    assert sorted(tracker.done) == list(range(count))


async def test_what_waits_is_taken_up_oldest_first():
    tracker = Tracker()

    await Pool(1).together(tracker.pieces(4), inside=False)

    assert tracker.done == [0, 1, 2, 3]


async def test_a_full_queue_leaves_the_work_to_the_caller():
    tracker = Tracker()

    await Pool(1, queue=1).together(tracker.pieces(7), inside=False)

    assert sorted(tracker.done) == list(range(7))
    assert tracker.most == 2


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_work_that_hands_out_work_and_waits_for_it_never_waits_for_itself(size):
    pool = Pool(size, queue=3)
    tracker = Tracker()

    def nest(depth):
        async def work():
            if depth == 0:
                await tracker.piece("leaf", 0.001)()
            else:
                await pool.together([nest(depth - 1)] * 3, inside=True)

        return work

    async with asyncio.timeout(10):
        await pool.together([nest(3)] * 4, inside=False)

    assert tracker.done == ["leaf"] * 4 * 27


async def test_the_first_failure_is_raised_and_ends_the_rest():
    tracker = Tracker()
    pool = Pool(2)

    with pytest.raises(ValueError, match="first"):
        await pool.together([tracker.piece(1, 60), fails(ValueError("first")), *tracker.pieces(5)], inside=False)

    assert tracker.done == []
    assert tracker.running == 0


async def test_a_pool_has_all_its_slots_again_after_a_failure():
    pool = Pool(2)
    for _ in range(3):
        with pytest.raises(ValueError, match="again"):
            await pool.together([fails(ValueError("again")), *Tracker().pieces(5)], inside=True)
    tracker = Tracker()

    await pool.together(tracker.pieces(4), inside=False)

    assert tracker.most == 2


async def test_cancelling_the_caller_cancels_everything_and_frees_the_slots():
    pool, tracker = Pool(1, queue=2), Tracker()
    caller = asyncio.ensure_future(pool.together([tracker.piece(number, 60) for number in range(5)], inside=False))
    await asyncio.sleep(0.01)

    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller

    assert tracker.running == 0
    await pool.together([tracker.piece("after")], inside=False)
    assert tracker.done == ["after"]
    assert pool.offer(tracker.piece("later"), asyncio.create_task) is not None


async def test_work_that_still_waits_can_be_taken_back_and_nothing_else():
    pool, tracker = Pool(1), Tracker()
    tasks = []

    def start(work):
        tasks.append(asyncio.create_task(work))
        return tasks[-1]

    running, waiting = pool.offer(tracker.piece("running"), start), pool.offer(tracker.piece("waiting"), start)

    assert (pool.take_back(running), pool.take_back(waiting), pool.take_back(waiting)) == (False, True, False)
    await asyncio.gather(*tasks)
    assert tracker.done == ["running"]
