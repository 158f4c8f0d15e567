"""Who says what of one thing: the value of the `claims` table."""

from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict


class ClaimEntry(NamedTuple):
    """An item that says something of a claim: when the latest turn said so, and where that stands on its topic."""

    occurred_at: datetime
    source: int
    memory_id: str


class Claim(BaseModel):
    """All that is said of one claim, oldest first: what is said last stands."""

    model_config = ConfigDict(frozen=True)

    held: tuple[ClaimEntry, ...] = ()
