"""octo/schedule.py: what schedules say, and the times that follow."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from octo.schedule import Schedule


def times(schedule, start, count, zone="UTC"):
    """The times that follow a start, as clocks in a zone show them."""
    zone_info = ZoneInfo(zone)
    at = datetime.fromisoformat(start).replace(tzinfo=zone_info).timestamp()
    given = Schedule(f"CRON_TZ={zone} {schedule}")
    found = []
    for _ in range(count):
        at = given.following(at)
        found.append(datetime.fromtimestamp(at, zone_info).isoformat(sep=" ")[:19])
    return found


@pytest.mark.parametrize(
    ("schedule", "start", "expected"),
    [
        ("* * * * * *", "2026-01-01 00:00:00", ["2026-01-01 00:00:01", "2026-01-01 00:00:02"]),
        ("? * * * * ?", "2026-01-01 00:00:00", ["2026-01-01 00:00:01", "2026-01-01 00:00:02"]),
        ("0 15 2 * * *", "2026-01-01 02:15:00", ["2026-01-02 02:15:00", "2026-01-03 02:15:00"]),
        ("*/20 * * * * *", "2026-01-01 00:00:30", ["2026-01-01 00:00:40", "2026-01-01 00:01:00"]),
        ("0 10-30/10 8 * * *", "2026-01-01 08:15:00", ["2026-01-01 08:20:00", "2026-01-01 08:30:00"]),
        ("0 0 8,20 * * *", "2026-01-01 09:00:00", ["2026-01-01 20:00:00", "2026-01-02 08:00:00"]),
        ("0 0 0 1 JAN,jul *", "2026-01-01 00:00:00", ["2026-07-01 00:00:00", "2027-01-01 00:00:00"]),
        ("0 0 7 * * MON-FRI", "2026-01-02 12:00:00", ["2026-01-05 07:00:00", "2026-01-06 07:00:00"]),
        ("0 0 0 * * 0", "2026-01-02 12:00:00", ["2026-01-04 00:00:00", "2026-01-11 00:00:00"]),
        (
            "0 0 0 13 * FRI",
            "2026-01-01 12:00:00",
            ["2026-01-02 00:00:00", "2026-01-09 00:00:00", "2026-01-13 00:00:00"],
        ),
        ("0 0 0 31 * *", "2026-01-31 12:00:00", ["2026-03-31 00:00:00", "2026-05-31 00:00:00"]),
        ("0 0 0 29 2 *", "2026-01-01 00:00:00", ["2028-02-29 00:00:00", "2032-02-29 00:00:00"]),
        ("0 0 0 29 2 *", "2096-03-01 00:00:00", ["2104-02-29 00:00:00"]),
        ("@yearly", "2026-01-01 00:00:00", ["2027-01-01 00:00:00"]),
        ("@annually", "2026-01-01 00:00:00", ["2027-01-01 00:00:00"]),
        ("@monthly", "2026-01-01 00:00:00", ["2026-02-01 00:00:00"]),
        ("@weekly", "2026-01-01 00:00:00", ["2026-01-04 00:00:00"]),
        ("@daily", "2026-01-01 00:00:00", ["2026-01-02 00:00:00"]),
        ("@midnight", "2026-01-01 00:00:00", ["2026-01-02 00:00:00"]),
        ("@hourly", "2026-01-01 00:00:00", ["2026-01-01 01:00:00"]),
        ("@every 90s", "2026-01-01 00:00:07", ["2026-01-01 00:01:37", "2026-01-01 00:03:07"]),
        ("@every 1500ms", "2026-01-01 00:00:00", ["2026-01-01 00:00:01", "2026-01-01 00:00:02"]),
        ("@every 10ms", "2026-01-01 00:00:00", ["2026-01-01 00:00:01"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_times_that_follow(schedule, start, expected):
    assert times(schedule, start, len(expected)) == expected


def test_a_zone_may_be_called_tz_and_is_local_when_it_is_not_called_at_all():
    at = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

    assert Schedule("TZ=Asia/Kolkata 0 0 12 * * *").following(at) == datetime(2026, 1, 1, 6, 30, tzinfo=UTC).timestamp()
    assert datetime.fromtimestamp(Schedule("0 0 12 * * *").following(at) or 0).hour == 12


def test_a_time_that_clocks_skip_in_spring_is_left_out():
    assert times("0 30 2 * * *", "2026-03-28 12:00:00", 2, "Europe/Oslo") == [
        "2026-03-30 02:30:00",
        "2026-03-31 02:30:00",
    ]


def test_a_time_that_comes_twice_in_autumn_counts_once_unless_every_hour_does():
    assert times("0 30 2 * * *", "2026-10-24 12:00:00", 2, "Europe/Oslo") == [
        "2026-10-25 02:30:00",
        "2026-10-26 02:30:00",
    ]
    assert times("0 30 * * * *", "2026-10-25 01:00:00", 4, "Europe/Oslo") == [
        "2026-10-25 01:30:00",
        "2026-10-25 02:30:00",
        "2026-10-25 02:30:00",
        "2026-10-25 03:30:00",
    ]


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        (
            "15 2 * * *",
            "expected six fields from the second to the day of the week, found 5; "
            "for the first second of the minute write `0 15 2 * * *`",
        ),
        ("* * *", "expected six fields from the second to the day of the week, found 3"),
        ("60 * * * * *", "second: expected 0 to 59, found `60`"),
        ("0 0 0 0 * *", "day of the month: expected 1 to 31, found `0`"),
        ("0 0 0 * * 7", "day of the week: expected 0 to 6 or `SUN` to `SAT`, found `7`"),
        ("0 0 0 * MAI *", "month: expected 1 to 12 or `JAN` to `DEC`, found `MAI`"),
        ("0 0 20-8 * * *", "hour: `20-8` is empty"),
        ("*/0 * * * * *", "second: `*/0` is empty"),
        ("5/10 * * * * *", "second: expected `*`, a number, `a-b`, `*/n`, `a-b/n` or a list, found `5/10`"),
        ("1,,2 * * * * *", "second: expected `*`, a number, `a-b`, `*/n`, `a-b/n` or a list, found ``"),
        ("0 0 0 30 2 *", "there is no such day in any year"),
        (
            "@dayly",
            "`@dayly` is none of `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly` "
            "and `@every 1m`",
        ),
        ("@every", "`@every` needs a duration such as `30s` or `1h30m`, found ``"),
        ("@every 0s", "`@every` needs a duration such as `30s` or `1h30m`, found `0s`"),
        ("@every -5m", "`@every` needs a duration such as `30s` or `1h30m`, found `-5m`"),
        ("@every day", "`@every` needs a duration such as `30s` or `1h30m`, found `day`"),
        ("CRON_TZ=Mars/Olympus @daily", "there is no time zone `Mars/Olympus`; they are called as in `Europe/Oslo`"),
        ("CRON_TZ=../etc @daily", "there is no time zone `../etc`; they are called as in `Europe/Oslo`"),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_no_schedule_is_refused(schedule, fault):
    with pytest.raises(ValueError) as caught:
        Schedule(schedule)

    assert str(caught.value) == fault
