"""Values on their way between messages and databases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from octo.sql.connection import Scalar
from octo.values import Json, clean_text, number_text

_INTEGERS = 2.0**63


def bound(value: Scalar) -> Scalar:
    """An argument as a driver binds it: a whole number as an integer, so that strict integer columns take it."""
    if isinstance(value, float) and value.is_integer() and -_INTEGERS <= value < _INTEGERS:
        return int(value)
    return clean_text(value) if isinstance(value, str) else value


def records(names: Sequence[str], rows: Iterable[Sequence[object]]) -> list[dict[str, Json]]:
    """Rows as mappings from column name to value; of columns with one name the last wins."""
    return [dict(zip(names, map(json_value, row), strict=True)) for row in rows]


def json_value(value: object) -> Json:
    """The JSON value of what a driver delivers."""
    match value:
        case None | str() | bool():
            return value
        case int() | float() | Decimal():
            number = float(value)
            return number if math.isfinite(number) else number_text(number)
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode("utf-8", errors="replace")
        case datetime():
            return rfc3339(value)
        case date():
            return f"{value.isoformat()}T00:00:00Z"
        case list() | tuple():
            return [json_value(item) for item in value]
    return str(value)


def rfc3339(moment: datetime) -> str:
    """The text of a moment in UTC; one that names no zone is taken to be in it."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    text = moment.isoformat()
    return f"{text.rstrip('0') if moment.microsecond else text}Z"
