"""Times on the wire: ISO-8601 with a zone, nothing else (docs/contract.md)."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

MIN_MOMENT = datetime.min.replace(tzinfo=UTC)
MAX_MOMENT = datetime.max.replace(tzinfo=UTC)
"""The years 1 to 9999 in UTC: the range of times on the wire."""


def _iso(value: object) -> object:
    """Refuse numbers, which Pydantic would read as seconds since the epoch."""
    if isinstance(value, datetime) or (isinstance(value, str) and value[4:5] == "-"):
        return value
    raise ValueError("a time is ISO-8601 with a zone, such as 2026-03-01T09:30:00Z")


def _within_range(moment: datetime) -> datetime:
    """Refuse times that a zone moves out of the calendar: they have no form in UTC."""
    if MIN_MOMENT <= moment <= MAX_MOMENT:
        return moment
    raise ValueError("a time lies in the years 1 to 9999 in UTC")


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_iso), AfterValidator(_within_range)]


def moment_of(milliseconds: int) -> datetime:
    """Convert milliseconds since the epoch, clamped to the calendar: Kafka timestamps may be any number."""
    earliest, latest = MIN_MOMENT.timestamp(), MAX_MOMENT.replace(microsecond=0).timestamp()
    return datetime.fromtimestamp(min(max(milliseconds / 1000, earliest), latest), UTC)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def milliseconds_of(moment: datetime) -> int:
    """Convert to whole milliseconds since the epoch.

    Rounded down: the last moment of the year 9999 has no next day, and a time before a full second must not count as
    being after it.
    """
    return (moment - EPOCH) // MILLISECOND


def microseconds_of(moment: datetime) -> int:
    """Convert to microseconds since the epoch, which is exact."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def iso(moment: datetime) -> str:
    """Format a time as on the wire, in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
