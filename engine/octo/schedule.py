"""Schedules of times: six fields from the second to the day of the week, or a word such as `@daily`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from octo.fields import Duration

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class _Field(NamedTuple):
    """What a field of a schedule may say."""

    title: str
    first: int
    last: int
    names: tuple[str, ...] = ()


_FIELDS: Final = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 6, _DAYS),
)
_WORDS: Final = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
_ZONE: Final = re.compile(r"(?:CRON_)?TZ=(\S+)\s+")
_RANGE: Final = re.compile(r"(\*|\?|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_YEARS: Final = 8
"""How far the next time may be away: the 29th of February of 2096 is followed by that of 2104."""


class Schedule:
    """Points in time, to the second."""

    def __init__(self, text: str) -> None:
        """Raises ValueError with what is wrong with the text."""
        self.every: int | None = None
        """Seconds between two times, when that is all there is to it."""
        self._zone: tzinfo | None = None
        zone = _ZONE.match(text.strip())
        if zone is not None:
            self._zone = _zone(zone[1])
        rest = text.strip()[zone.end() if zone else 0 :]
        if rest.startswith("@every"):
            self.every = _interval(rest.removeprefix("@every").strip())
            return
        if rest.startswith("@") and rest not in _WORDS:
            raise ValueError(f"`{rest}` is none of {', '.join(f'`{word}`' for word in _WORDS)} and `@every 1m`")
        fields = _WORDS.get(rest, rest).split()
        if len(fields) != len(_FIELDS):
            raise ValueError(
                f"expected six fields from the second to the day of the week, found {len(fields)}"
                + (f"; for the first second of the minute write `0 {rest}`" if len(fields) == 5 else "")
            )
        allowed = [_allowed(field, given) for field, given in zip(_FIELDS, fields, strict=True)]
        self._second, self._minute, self._hour, self._day, self._month, self._weekday = allowed
        free = [field in ("*", "?") for field in fields]
        self._any_hour = free[2]
        self._either_day = not free[3] and not free[5]
        if self.following(datetime(2000, 1, 1).timestamp()) is None:
            raise ValueError("there is no such day in any year")

    def following(self, after: float) -> float | None:
        """The first time after another one, both in seconds since 1970; None when there is none for years."""
        if self.every is not None:
            return after + self.every
        at = float(int(after) + 1)
        last = self._wall(at).year + _YEARS
        while (wall := self._wall(at)).year <= last:
            midnight = wall.replace(hour=0, minute=0, second=0, fold=0)
            if wall.month not in self._month:
                next_month = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
                at = max(next_month.timestamp(), at + 1)
            elif not self._is_day(wall):
                at = max((midnight + timedelta(days=1)).timestamp(), at + 1)
            elif wall.hour not in self._hour or (wall.fold and not self._any_hour):
                # An hour that comes twice when clocks are put back counts once, unless every hour does.
                at += 3600 - 60 * wall.minute - wall.second
            elif wall.minute not in self._minute:
                at += 60 - wall.second
            elif wall.second not in self._second:
                at += 1
            else:
                return at
        return None

    def _wall(self, at: float) -> datetime:
        """What clocks show."""
        return datetime.fromtimestamp(at, self._zone)

    def _is_day(self, wall: datetime) -> bool:
        matches = wall.day in self._day, (wall.weekday() + 1) % 7 in self._weekday
        return any(matches) if self._either_day else all(matches)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise ValueError(f"there is no time zone `{name}`; they are called as in `Europe/Oslo`") from None


def _interval(text: str) -> int:
    try:
        seconds = Duration(text).seconds
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise ValueError(f"`@every` needs a duration such as `30s` or `1h30m`, found `{text}`")
    return max(1, int(seconds))


def _allowed(field: _Field, text: str) -> frozenset[int]:
    """The numbers that a field admits."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None or (match[4] and match[2] and not match[3]):
            raise ValueError(f"{field.title}: expected `*`, a number, `a-b`, `*/n`, `a-b/n` or a list, found `{part}`")
        first, last = field.first, field.last
        if match[2]:
            first = _number(field, match[2])
            last = _number(field, match[3]) if match[3] else first
        step = int(match[4] or 1)
        if first > last or step < 1:
            raise ValueError(f"{field.title}: `{part}` is empty")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(field: _Field, word: str) -> int:
    if word.upper() in field.names:
        return field.names.index(word.upper()) + field.first
    if not word.isdecimal() or not field.first <= int(word) <= field.last:
        names = f" or `{field.names[0]}` to `{field.names[-1]}`" if field.names else ""
        raise ValueError(f"{field.title}: expected {field.first} to {field.last}{names}, found `{word}`")
    return int(word)
