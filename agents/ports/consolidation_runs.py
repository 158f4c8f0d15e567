"""The door to what is known of consolidations: the table `consolidations`."""

from collections.abc import Mapping
from typing import Protocol

from schemas.consolidation import RunHistory


class ConsolidationRuns(Protocol):
    """The last runs by partition and scope. Whoever carries a run out is the only writer."""

    def get(self, partition: int, scope: Mapping[str, str]) -> RunHistory:
        """The runs of a scope; none for one that was never consolidated."""
        ...

    def put(self, partition: int, scope: Mapping[str, str], runs: RunHistory) -> None:
        """Write them over those before. Only while a record of that partition is being handled."""
        ...
