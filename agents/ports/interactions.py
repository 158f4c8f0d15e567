"""The table `interactions`, of one partition."""

from typing import Protocol

from schemas.state.interaction import InteractionCounts


class InteractionWriter(Protocol):
    """Reads and writes the counts of interaction modes. For `agents.memory` alone."""

    def get(self) -> InteractionCounts:
        """Return the counts; empty ones if there are none."""

    def put(self, counts: InteractionCounts) -> None:
        """Write the counts."""
