"""`receipt.v1`: the proof that something was forgotten, without names and texts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

ReceiptState = Literal["hidden", "erased"]
"""`hidden`: no read finds it any more; `erased`: nothing of it is left where that is looked at."""

LOOKED_AT = ("tables", "lexical", "vectors", "archive", "log_segments")
"""Where is looked before a receipt says `erased`."""


class RecordPlace(BaseModel, frozen=True):
    """The record of the command that asked."""

    topic: str
    partition: int
    offset: int


class Receipt(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """`receipt.v1`, one record of the topic `receipts`, and without `schema` and `state` the field of a result.

    `scope_digest` is the SHA-256 of `salt`, `/` and the canonical key, as hex: it can be checked by the user's key.
    `looked_at` says of each place how many memories were looked for and not found; null: nothing of it is erased by a
    time there.
    """

    schema_: Literal["receipt.v1"] = Field(default="receipt.v1", alias="schema")
    receipt_id: str
    state: ReceiptState = "hidden"
    salt: str
    scope_digest: str
    requested_at: datetime
    forgotten: int
    log: RecordPlace
    erase_by: datetime | None = None
    erased_at: datetime | None = None
    looked_at: Mapping[str, int | None] | None = None


class Asked(BaseModel, frozen=True):
    """Which record asked to forget, and when."""

    place: RecordPlace
    timestamp_ms: int


class ReceiptRow(BaseModel, frozen=True):
    """A row of the table `receipts`: a receipt, or a page of the memories that it is about.

    `turn_ids` and `derived_ids` are those of a page. Turns before `turns_before` were there when it was asked for.
    `log_ends` are the ends of the logs that had texts of it, once they are known. `at` is the time of the row.
    """

    receipt: Receipt | None = None
    turns_before: int | None = None
    log_ends: Mapping[str, int] | None = None
    at: datetime | None = None
    turn_ids: tuple[str, ...] = ()
    derived_ids: tuple[str, ...] = ()
