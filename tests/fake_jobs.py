"""When modes were last gone through, in a dict: what the table `jobs` is in a worker."""

from collections.abc import Awaitable

from schemas.jobs import Backfilled


class FakeJobs:
    """Implements `streams.flow.job_log.KeptJobs` in memory."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], str] = {}

    def get(self, partition: int, boundary: str) -> Backfilled:
        """What is known of a boundary."""
        value = self._kept.get((partition, boundary))
        return Backfilled() if value is None else Backfilled.model_validate_json(value)

    def put(self, partition: int, boundary: str, backfilled: Backfilled) -> None:
        """Write it over what was."""
        self._kept[partition, boundary] = backfilled.model_dump_json()

    def unwritten(self) -> list[Awaitable[None]]:
        """Nothing: a dict is written at once."""
        return []
