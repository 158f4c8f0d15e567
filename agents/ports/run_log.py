"""The log of run records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from modestream_client.runs import Run


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, newest first. `is_complete` is False if the log goes back further than was read."""

    runs: Sequence[Run]
    is_complete: bool = True


class RunLog(Protocol):
    """The log of a worker's partitions; reading is limited in records and in time, users in turn."""

    async def newest(
        self, partition: int, boundary: str, admits: Callable[[Run], bool], limit: int, since_ms: int = 0
    ) -> RunPage:
        """Return the newest admitted runs of a boundary that were written since a time, each once.

        Runs before a user was forgotten are left out. Raises Unavailable.
        """


class EmptyRunLog:
    """A log without runs."""

    async def newest(
        self,
        partition: int,  # noqa: ARG002
        boundary: str,  # noqa: ARG002
        admits: Callable[[Run], bool],  # noqa: ARG002
        limit: int,  # noqa: ARG002
        since_ms: int = 0,  # noqa: ARG002
    ) -> RunPage:
        """Return nothing."""
        return RunPage(())
