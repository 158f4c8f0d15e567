"""The last runs of each scope in a dict: what the table `consolidations` is in a worker."""

from collections.abc import Awaitable, Mapping

from schemas.consolidation import Runs


class FakeConsolidations:
    """Implements `streams.flow.surroundings.KeptRuns` in memory."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, tuple[tuple[str, str], ...]], str] = {}

    def get(self, partition: int, scope: Mapping[str, str]) -> Runs:
        """The runs of a scope; none for one that was never consolidated."""
        value = self._kept.get((partition, tuple(sorted(scope.items()))))
        return Runs() if value is None else Runs.model_validate_json(value)

    def put(self, partition: int, scope: Mapping[str, str], runs: Runs) -> None:
        """Write them over those before."""
        self._kept[partition, tuple(sorted(scope.items()))] = runs.model_dump_json()

    def unwritten(self) -> list[Awaitable[None]]:
        """Nothing: a dict is written at once."""
        return []
