"""Items that make the same claim: the value of the `claims` table."""

from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict


class ClaimEntry(NamedTuple):
    """An item that makes the claim; `occurred_at` and `source` are time and offset of its latest turn."""

    occurred_at: datetime
    source: int
    memory_id: str


class Claim(BaseModel):
    """All items of one claim, oldest first; the last one is current."""

    model_config = ConfigDict(frozen=True)

    held: tuple[ClaimEntry, ...] = ()
