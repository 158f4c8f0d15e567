"""The table `claims`: which items say something of the same thing, as JSON under the digest of what that is."""

from collections.abc import Awaitable

import faust

from schemas.claims import Claim
from streams.runtime.awaited_table import AwaitedTable, stored, unwritten


class ClaimTable:
    """Implements `streams.flow.worker_context.KeptClaims`. Writes belong to the handling of an event of the partition."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(app, name="claims", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)

    def get(self, partition: int, key: str) -> Claim:
        """What is said of a claim."""
        value = stored(self.table, partition, key)
        return Claim() if not value else Claim.model_validate_json(value)

    def put(self, partition: int, key: str, claim: Claim) -> None:
        """Write it over what was; an empty one is written as nothing."""
        if claim.held:
            self.table[key.encode()] = claim.model_dump_json().encode()
        elif stored(self.table, partition, key):
            self.table[key.encode()] = b""

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return unwritten(self.table)
