"""The table `claims`, of one partition: which items state a value for the same subject and attribute."""

from typing import Protocol

from schemas.state.memories import Claim


class ClaimWriter(Protocol):
    """Reads and writes claims by key. For `agents.memory` alone."""

    def get(self, key: str) -> Claim:
        """Return the claim; an empty one for an unknown key."""

    def put(self, key: str, claim: Claim) -> None:
        """Write a claim; an empty one deletes the row. Belongs to the handling of an event of the partition."""
