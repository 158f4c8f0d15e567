"""Times on the wire: ISO-8601 with a zone, nothing else (CONTRACT §1)."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

MIN_MOMENT = datetime.min.replace(tzinfo=UTC)
MAX_MOMENT = datetime.max.replace(tzinfo=UTC)
"""The years 1 to 9999 in UTC: what can be written on the wire."""


def _iso(value: object) -> object:
    """Refuse what Pydantic would read as seconds since the epoch."""
    if isinstance(value, datetime) or (isinstance(value, str) and value[4:5] == "-"):
        return value
    raise ValueError("a time is ISO-8601 with a zone, such as 2026-03-01T09:30:00Z")


def _within_reach(moment: datetime) -> datetime:
    """Refuse the hours that a zone adds to the calendar at its ends: they can't be told in UTC."""
    if MIN_MOMENT <= moment <= MAX_MOMENT:
        return moment
    raise ValueError("a time lies in the years 1 to 9999 of UTC")


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_iso), AfterValidator(_within_reach)]


def moment_of(milliseconds: int) -> datetime:
    """The moment so many milliseconds after the epoch; the nearest that there is, as Kafka keeps any number."""
    earliest, latest = MIN_MOMENT.timestamp(), MAX_MOMENT.replace(microsecond=0).timestamp()
    return datetime.fromtimestamp(min(max(milliseconds / 1000, earliest), latest), UTC)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def milliseconds_of(moment: datetime) -> int:
    """The whole milliseconds since the epoch.

    Never rounded up: the last moment of the year 9999 has no next day, and what was said before a full second was not
    said since then.
    """
    return (moment - EPOCH) // MILLISECOND


def iso(moment: datetime) -> str:
    """A moment as it is written on the wire, in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
