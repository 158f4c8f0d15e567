"""Times on the wire: ISO-8601 with a zone, nothing else (CONTRACT §1)."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field


def _iso(value: object) -> object:
    """Refuse what Pydantic would read as seconds since the epoch."""
    if isinstance(value, datetime) or (isinstance(value, str) and value[4:5] == "-"):
        return value
    raise ValueError("a time is ISO-8601 with a zone, such as 2026-03-01T09:30:00Z")


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_iso)]


def moment_of(milliseconds: int) -> datetime:
    """The moment that lies so many milliseconds after the epoch."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def iso(moment: datetime) -> str:
    """A moment as it is written on the wire, in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
