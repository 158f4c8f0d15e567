"""The claims in a dict: what the table `claims` is in a worker."""

from collections.abc import Awaitable
from typing import Any

from schemas.state.memories import Claim


class FakeClaims:
    """Implements `streams.flow.worker_context.AwaitableClaims` in memory; what is kept is JSON."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, str], str] = {}

    def get(self, partition: int, key: str) -> Claim:
        """What is said of a claim."""
        value = self.kept.get((partition, key))
        return Claim() if value is None else Claim.model_validate_json(value)

    def put(self, partition: int, key: str, claim: Claim) -> None:
        """Write it over what was; an empty one leaves nothing."""
        self.kept.pop((partition, key), None)
        if claim.held:
            self.kept[partition, key] = claim.model_dump_json()

    def pending_writes(self) -> list[Awaitable[Any]]:
        """Nothing: a dict is written at once."""
        return []
