"""Convert times on the wire."""

from datetime import UTC, datetime, timedelta

from modestream_client.vocabulary import MAX_MOMENT, MIN_MOMENT


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


DAYS_PER_WEEK = 7


def week_of(moment: datetime) -> int:
    """Return the number of a moment's week, which begins on Monday at 0:00 UTC."""
    return (moment.astimezone(UTC).toordinal() - 1) // DAYS_PER_WEEK


def start_of_week(week: int) -> datetime:
    """Return the time at which the week with this number begins."""
    return datetime.fromordinal(week * DAYS_PER_WEEK + 1).replace(tzinfo=UTC)
