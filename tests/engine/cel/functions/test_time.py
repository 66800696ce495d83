"""octo/cel/functions/time.py: timestamps and durations."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError

AT = "timestamp('2024-02-29T23:05:06.789Z')"


def evaluate(source):
    return compile_expression(source, ()).evaluate({})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"{AT}.getFullYear()", 2024),
        (f"{AT}.getMonth()", 1),
        (f"{AT}.getDate()", 29),
        (f"{AT}.getDayOfMonth()", 28),
        (f"{AT}.getDayOfWeek()", 4),
        (f"{AT}.getDayOfYear()", 59),
        (f"{AT}.getHours()", 23),
        (f"{AT}.getMinutes()", 5),
        (f"{AT}.getSeconds()", 6),
        (f"{AT}.getMilliseconds()", 789),
        (f"{AT}.getDate('Europe/Oslo')", 1),
        (f"{AT}.getHours('-02:30')", 20),
        (f"{AT}.getHours('02:00')", 1),
        ("duration('90m').getHours()", 1),
        ("duration('90m').getMinutes()", 90),
        ("duration('-90s').getMinutes()", -1),
        ("duration('1.5s').getMilliseconds()", 1500),
    ],
)
def test_a_part_of_a_time_is_read(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "timestamp('2024-01-02T03:04:05+02:00') == timestamp('2024-01-02T01:04:05Z')",
        "timestamp(86400) == timestamp('1970-01-02T00:00:00Z') && timestamp(dyn(86400.0)) == timestamp(86400)",
        "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
        "timestamp('2024-01-01T00:00:00Z') + duration('1h') > timestamp('2024-01-01T00:59:59Z')",
        "duration('1h30m') == duration('1.5h') && duration('-1h') + duration('1h') == duration('0')",
        "duration('1s') == duration('1000ms') && duration('1us') == duration('1000ns')",
    ],
)
def test_time_is_calculated(source):
    assert evaluate(source) is True


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("timestamp('2024-02-30T00:00:00Z')", "no timestamp: `2024-02-30T00:00:00Z`"),
        ("timestamp('2024-02-03')", "no timestamp: `2024-02-03`"),
        ("timestamp('2024-02-03T25:00:00Z')", "no timestamp: `2024-02-03T25:00:00Z`"),
        ("duration('1')", "no duration: `1`"),
        ("duration('')", "no duration: ``"),
        ("duration('1d')", "no duration: `1d`"),
        (f"{AT}.getHours('Mars/Base')", "unknown time zone `Mars/Base`"),
        (f"{AT}.getHours('../etc')", "unknown time zone `../etc`"),
    ],
)
def test_what_is_no_time_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
