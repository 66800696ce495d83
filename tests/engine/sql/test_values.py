"""octo/sql/values.py: values on their way between messages and databases."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from octo.sql.values import bound, json_value, records


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.0, 3),
        (-0.0, 0),
        (2.5, 2.5),
        (2.0**53, 2**53),
        (1e300, 1e300),
        (True, True),
        (None, None),
        ("0123", "0123"),
        ("half \ud83d", "half \ufffd"),
    ],
    ids=[
        "whole",
        "negative zero",
        "fraction",
        "large",
        "beyond 64 bits",
        "boolean",
        "null",
        "text",
        "half a character",
    ],
)
def test_an_argument_is_bound_in_the_kind_that_a_strict_column_takes(value, expected):
    assert (bound(value), type(bound(value))) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7.0),
        (Decimal("1.25"), 1.25),
        (float("inf"), "Infinity"),
        (False, False),
        (b"\xffa", "\ufffda"),
        (memoryview(b"abc"), "abc"),
        (datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05Z"),
        (datetime(2024, 1, 2, 3, 4, 5, 120_000, tzinfo=UTC), "2024-01-02T03:04:05.12Z"),
        (datetime(2024, 1, 2, 1, tzinfo=timezone(timedelta(hours=2))), "2024-01-01T23:00:00Z"),
        (date(2024, 1, 2), "2024-01-02T00:00:00Z"),
        ([1, (None, b"x")], [1.0, [None, "x"]]),
    ],
    ids=[
        "integer",
        "decimal",
        "infinity",
        "boolean",
        "bytes",
        "memory",
        "moment without a zone",
        "moment in UTC",
        "moment in another zone",
        "date",
        "list",
    ],
)
def test_what_a_driver_delivers_becomes_json(value, expected):
    assert (json_value(value), type(json_value(value))) == (expected, type(expected))


def test_of_columns_with_one_name_the_last_wins():
    assert records(["a", "b", "a"], [(1, 2, 3)]) == [{"a": 3.0, "b": 2.0}]
