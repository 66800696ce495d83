"""Timestamps and durations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from octo.cel.functions import Whole, function
from octo.cel.values import Duration, Failure, Timestamp

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

_SECOND = 1_000_000_000
_UNITS = {
    "h": 3600 * _SECOND,
    "m": 60 * _SECOND,
    "s": _SECOND,
    "ms": 10**6,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ns": 1,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(h|ms|m|s|us|µs|μs|ns)")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.A
)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.A)


@function("duration")
def duration(value: str | Duration) -> Duration:
    """A duration from its text: `1h30m`, `1.5h`, `-250ms`."""
    if isinstance(value, Duration):
        return value
    text = value.lstrip("+-") if value[:1] in ("+", "-") and value[1:2] not in ("+", "-") else value
    if text == "0":
        return Duration(0)
    position = total = 0
    while position < len(text) or not text:
        part = _PART.match(text, position)
        if part is None or not (part[1] or part[2]) or len(part[1]) > 20:
            raise Failure(f"no duration: `{value}`")
        unit = _UNITS[part[3]]
        fraction = (part[2] or "")[:18]
        total += int(part[1] or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        position = part.end()
    return Duration(-total if value.startswith("-") else total)


@function("timestamp")
def timestamp(value: str | Whole | Timestamp) -> Timestamp:
    """A point in time from RFC 3339 text, or from Unix seconds."""
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int):
        return Timestamp(value * _SECOND)
    from datetime import date

    match = _TIMESTAMP.fullmatch(value)
    if match is None:
        raise Failure(f"no timestamp: `{value}`")
    hours, minutes, seconds = (int(match[part]) for part in (4, 5, 6))
    offset = int(match[9] or 0) * 60 + int(match[10] or 0)
    try:
        days = date(int(match[1]), int(match[2]), int(match[3])).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        raise Failure(f"no timestamp: `{value}`") from None
    if hours > 23 or minutes > 59 or seconds > 59 or offset >= 1440:
        raise Failure(f"no timestamp: `{value}`")
    if match[8] == "-":
        offset = -offset
    elapsed = days * 86400 + hours * 3600 + (minutes - offset) * 60 + seconds
    return Timestamp(elapsed * _SECOND + int((match[7] or "").ljust(9, "0")), offset)


@function(".getFullYear")
def get_full_year(time: Timestamp, zone: str = "UTC") -> int:
    """The year; in UTC, or in a zone such as `Europe/Oslo` or `+02:00`, as with all parts of a time."""
    return _local(time, zone).year


@function(".getMonth")
def get_month(time: Timestamp, zone: str = "UTC") -> int:
    """The month, 0 for January."""
    return _local(time, zone).month - 1


@function(".getDate")
def get_date(time: Timestamp, zone: str = "UTC") -> int:
    """The day of the month, from 1."""
    return _local(time, zone).day


@function(".getDayOfMonth")
def get_day_of_month(time: Timestamp, zone: str = "UTC") -> int:
    """The day of the month, from 0."""
    return _local(time, zone).day - 1


@function(".getDayOfWeek")
def get_day_of_week(time: Timestamp, zone: str = "UTC") -> int:
    """The day of the week, 0 for Sunday."""
    return _local(time, zone).isoweekday() % 7


@function(".getDayOfYear")
def get_day_of_year(time: Timestamp, zone: str = "UTC") -> int:
    """The day of the year, from 0."""
    return _local(time, zone).timetuple().tm_yday - 1


@function(".getHours")
def get_hours(time: Timestamp | Duration, zone: str = "UTC") -> int:
    """The hour of a timestamp; a whole duration in hours."""
    if isinstance(time, Duration):
        return _whole(time, 3600 * _SECOND)
    return _local(time, zone).hour


@function(".getMinutes")
def get_minutes(time: Timestamp | Duration, zone: str = "UTC") -> int:
    """The minute of a timestamp; a whole duration in minutes."""
    if isinstance(time, Duration):
        return _whole(time, 60 * _SECOND)
    return _local(time, zone).minute


@function(".getSeconds")
def get_seconds(time: Timestamp | Duration, zone: str = "UTC") -> int:
    """The second of a timestamp; a whole duration in seconds."""
    if isinstance(time, Duration):
        return _whole(time, _SECOND)
    return _local(time, zone).second


@function(".getMilliseconds")
def get_milliseconds(time: Timestamp | Duration, zone: str = "UTC") -> int:
    """The milliseconds of a timestamp's second; a whole duration in milliseconds."""
    if isinstance(time, Duration):
        return _whole(time, 1_000_000)
    return _local(time, zone).microsecond // 1000


def _whole(duration: Duration, unit: int) -> int:
    whole = abs(duration.ns) // unit
    return -whole if duration.ns < 0 else whole


def _local(time: Timestamp, zone: str) -> datetime:
    from datetime import UTC, datetime, timedelta

    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time.ns // 1000)
    if zone == "UTC":
        return moment
    try:
        return moment.astimezone(_zone(zone))
    except OverflowError:
        raise Failure("timestamp out of range") from None


def _zone(name: str) -> tzinfo:
    from datetime import timedelta, timezone

    match = _OFFSET.fullmatch(name)
    if match is not None and int(match[2]) < 24 and int(match[3]) < 60:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Failure(f"unknown time zone `{name}`") from None
