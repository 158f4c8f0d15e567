"""The table `claims` over a dict."""

from collections.abc import Awaitable
from typing import Any

from schemas.state.memories import Claim


class FakeClaims:
    """Implements `streams.flow.stores.Table` for claims in memory, stored as JSON."""

    def __init__(self) -> None:
        self.stored: dict[tuple[int, str], str] = {}

    def get(self, partition: int, key: str) -> Claim:
        value = self.stored.get((partition, key))
        return Claim() if value is None else Claim.model_validate_json(value)

    def put(self, partition: int, key: str, claim: Claim) -> None:
        """Replace a claim; an empty one is deleted."""
        self.stored.pop((partition, key), None)
        if claim.held:
            self.stored[partition, key] = claim.model_dump_json()

    def pending_writes(self) -> list[Awaitable[Any]]:
        """Return nothing: a dict is written at once."""
        return []
