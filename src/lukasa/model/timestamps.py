"""Times as whole microseconds since 1970, as rows store them and as ranking compares them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lukasa.model.errors import InvalidInput

HOUR = 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    if at.tzinfo is None:
        raise InvalidInput(f"{at} has no time zone", fix="use an aware datetime")
    return (at - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    return _EPOCH + value * _MICROSECOND


def micros_or_none(at: datetime | None) -> int | None:
    return None if at is None else micros(at)


def moment_or_none(value: int | None) -> datetime | None:
    return None if value is None else moment(value)
