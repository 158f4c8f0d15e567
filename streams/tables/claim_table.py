"""The table `claims`: which items say something of the same thing, as JSON under the digest of what that is."""

from collections.abc import Awaitable

import faust

from schemas.claims import Claim
from streams.runtime.awaited_table import AwaitableTable, drain_pending_writes, read_stored


class ClaimTable:
    """Implements `streams.flow.worker_context.AwaitableClaims`. Writes belong to the handling of an event of the partition."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitableTable(app, name="claims", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)

    def get(self, partition: int, key: str) -> Claim:
        """What is said of a claim."""
        value = read_stored(self.table, partition, key)
        return Claim() if not value else Claim.model_validate_json(value)

    def put(self, partition: int, key: str, claim: Claim) -> None:
        """Write it over what was; an empty one is written as nothing."""
        if claim.held:
            self.table[key.encode()] = claim.model_dump_json().encode()
        elif read_stored(self.table, partition, key):
            self.table[key.encode()] = b""

    def pending_writes(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return drain_pending_writes(self.table)
