"""`modestream verify --receipts`: whether everything forgotten is erased in time, and each receipt is of its command.

Enters: the topics `receipts` and `commands`. Leaves: counts, and ids of receipts that are late or of another command.
"""

import hashlib
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from modestream_client.boundary import BoundaryFields
from pydantic_core import from_json

from schemas.messages.published import Receipt, RecordPlace
from schemas.messages.records import Record
from streams.adapters.kafka.logs import read_each
from streams.settings import Settings
from streams.topics import topics_with_prefix
from streams.wire.partitioning import boundary_in

ERASED_WITHIN = timedelta(minutes=1)
"""How long a receipt may say `hidden` where logs are not erased by a time."""

MAX_NAMED = 20


class Receipts:
    """The latest of each receipt, and whose it is by the record that asked for it."""

    def __init__(self, fields: BoundaryFields) -> None:
        self._fields = fields
        self.latest: dict[bytes, Receipt] = {}
        self.asked: dict[RecordPlace, str] = {}
        """The boundary of each command `forget`, by its place."""

    def take_receipt(self, record: Record) -> None:
        if record.key is not None and record.value is not None:
            self.latest[record.key] = Receipt.model_validate_json(record.value)

    def take_command(self, record: Record) -> None:
        try:
            is_forget = from_json(record.value or b"{}").get("command") == "forget"
        except (ValueError, AttributeError):
            return
        if is_forget:
            place = RecordPlace(topic=record.topic, partition=record.partition, offset=record.offset)
            self.asked[place] = boundary_in(record, self._fields)

    def different(self, receipt: Receipt) -> bool:
        """True if the record that it names is there, and is no such command or of another user."""
        boundary = self.asked.get(receipt.log)
        return boundary is not None and not is_of(receipt, boundary)


def is_of(receipt: Receipt, boundary: str) -> bool:
    """True if a receipt is of the user with this canonical key."""
    return hashlib.sha256(f"{receipt.salt}/{boundary}".encode()).hexdigest() == receipt.scope_digest


def is_late(receipt: Receipt, now: datetime) -> bool:
    """True if a receipt should say `erased` by now."""
    return receipt.state == "hidden" and now > (receipt.erase_by or receipt.requested_at + ERASED_WITHIN)


async def verify_receipts(boundaries: Sequence[str] | None, settings: Settings) -> int:
    """Verify the receipts of these users, None for all; return the exit code. Raises Unavailable."""
    topics, partitions = topics_with_prefix(settings.topic_prefix), range(settings.partitions)
    receipts = Receipts(settings.scope_model.boundary_fields)
    await read_each(settings, topics.receipts, partitions, receipts.take_receipt)
    await read_each(settings, topics.commands, partitions, receipts.take_command)
    now = datetime.now(UTC)
    chosen = [
        receipt
        for receipt in receipts.latest.values()
        if boundaries is None or any(is_of(receipt, boundary) for boundary in boundaries)
    ]
    late = [receipt.receipt_id for receipt in chosen if is_late(receipt, now)]
    different = [receipt.receipt_id for receipt in chosen if receipts.different(receipt)]
    erased = sum(receipt.state == "erased" for receipt in chosen)
    memories = sum(receipt.forgotten for receipt in chosen)
    sys.stdout.write(
        f"verify: {len(chosen)} receipts of {memories} memories; {erased} erased, {len(chosen) - erased} hidden,"
        f" {len(late)} late, {len(different)} of other commands\n"
    )
    for name, ids in (("late", late), ("of other commands", different)):
        if ids:
            sys.stderr.write(f"{name}: {' '.join(sorted(ids)[:MAX_NAMED])}\n")
    return 1 if late or different else 0
