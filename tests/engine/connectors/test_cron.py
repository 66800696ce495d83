"""octo/connectors/cron.py: messages at certain times."""

import asyncio

import pytest

from octo.errors import ConfigError
from octo.observe import SourceEmitted
from octo.testing.harness import config
from serving import Clock, Watcher, served, until

EVERY = """
  flows:
    - name: tick
      source:
        type: cron
        settings: {{ schedule: '@every 10s', {more} }}
"""


def clock(naps, start="2026-01-01T00:00:00+00:00"):
    made = Clock(start, naps)
    return {"clock": made, "sleep": made.sleep}


async def ticks(text, count, **times):
    watcher = Watcher(SourceEmitted)
    async with served(text, observers=[watcher], **times):
        await until(lambda: len(watcher.ended) >= count)
    return watcher


async def test_the_first_message_comes_after_one_interval_and_its_body_is_the_payload():
    text = EVERY.format(more="""payload: '{"at": string(now), "is": settings.schedule}'""")

    watcher = await ticks(text, 2, **clock(2))

    assert watcher.ended == [
        ("tick", "completed", {"at": "2026-01-01T00:00:10Z", "is": "@every 10s"}),
        ("tick", "completed", {"at": "2026-01-01T00:00:20Z", "is": "@every 10s"}),
    ]


async def test_a_message_has_an_id_of_its_own_a_correlation_id_and_nothing_else():
    ids = iter(["a" * 32, "b" * 32])

    watcher = await ticks(EVERY.format(more="correlationID: sweep"), 2, new_id=lambda: next(ids), **clock(2))

    assert [message.shown() for message in watcher.messages] == [
        {"event_id": "a" * 32, "correlation_id": "sweep"},
        {"event_id": "b" * 32, "correlation_id": "sweep"},
    ]
    assert [(event.address, event.event_id, event.type) for event in watcher.others] == [
        ("tick", "a" * 32, "cron"),
        ("tick", "b" * 32, "cron"),
    ]


async def test_a_payload_can_render_a_template():
    text = """
      resources: { templates: [ { resource: note.txt, as: note } ] }
      flows:
        - name: tick
          source: { type: cron, settings: { schedule: '@every 1s', payload: 'templateResource("note")' } }
    """

    watcher = await ticks(text, 1, files={"note.txt": "at {{ now }}, {{ settings.schedule }}"}, **clock(1))

    assert watcher.ended == [("tick", "completed", "at 2026-01-01T00:00:01Z, @every 1s")]


async def test_a_payload_that_fails_is_logged_and_the_schedule_goes_on():
    watcher = await ticks(EVERY.format(more="""payload: '1 / (int(now) % 60 - 10)'"""), 1, **clock(2))

    assert [line for line in watcher.lines if line[0] == "error"] == [
        ("error", "cron payload: evaluate expression: division by zero")
    ]
    assert watcher.ended == [("tick", "completed", 0.0)]


async def test_ticks_do_not_wait_for_each_other():
    running, most = 0, 0

    async def work(message, run):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1

    text = EVERY.format(more="") + "      process: [{type: log, name: work}]\n      workers: 3\n"
    watcher = Watcher()
    async with served(text, actions={"work": work}, observers=[watcher], **clock(5)):
        await until(lambda: len(watcher.ended) == 5)

    assert most == 3


async def test_with_one_worker_they_do():
    running, most = 0, 0

    async def work(message, run):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    text = EVERY.format(more="") + "      process: [{type: log, name: work}]\n      workers: 1\n"
    watcher = Watcher()
    async with served(text, actions={"work": work}, observers=[watcher], **clock(5)):
        await until(lambda: len(watcher.ended) == 5)

    assert most == 1


async def test_a_long_wait_looks_at_the_clock_again_and_again():
    times = clock(200)
    text = EVERY.format(more="").replace("@every 10s", "CRON_TZ=UTC 0 0 1 * * *")

    await ticks(text, 1, **times)

    assert 200 - times["clock"].naps >= 120


async def test_times_that_pass_while_the_machine_sleeps_are_not_made_up_for():
    made = Clock("2026-01-01T00:00:00+00:00", 3)

    async def sleep(seconds):
        if made.naps == 3:
            made.now += 3600 * 10**9
        await made.sleep(seconds)

    watcher = await ticks(EVERY.format(more="payload: string(now)"), 2, clock=made, sleep=sleep)

    assert [body for _, _, body in watcher.ended] == ["2026-01-01T01:00:20Z", "2026-01-01T01:00:30Z"]


def problem(more, schedule="@every 10s"):
    with pytest.raises(ConfigError) as caught:
        config(EVERY.format(more=more).replace("@every 10s", schedule))
    (found,) = caught.value.problems
    return found.message, found.hint, found.location.line, found.location.column


def test_a_schedule_that_is_none_is_a_problem_at_its_place():
    assert problem("", "@evry 10s") == (
        "cron schedule: `@evry 10s` is none of `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, "
        "`@hourly` and `@every 1m`",
        "for example `0 30 7 * * MON-FRI` or `@every 5m`",
        6,
        29,
    )


@pytest.mark.parametrize("name", ["body", "vars", "env", "eventID"])
def test_a_payload_sees_no_message(name):
    message, hint, *_ = problem(f"payload: {name}")

    assert message == f"compile expression \"{name}\": undeclared reference to '{name}'"
    assert hint == f'known names: `now`, `settings`; text stands in quotes: `"{name}"`'
