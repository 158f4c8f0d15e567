"""How a boundary and the deployment stand: what `health` answers, and what the seed's kill criteria are judged by."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.jobs import Jobs
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Modes
from agents.ports.vector_index import VectorIndex
from schemas.commands import Command
from schemas.failures import ModelMissing, Unavailable
from schemas.jobs import JobProgress
from schemas.memories import EmbeddingStatus, index_names
from schemas.modes import Mode
from schemas.moments import iso

StatusSource = Callable[[], Mapping[str, Any]]
"""What a part of the deployment says of itself."""

COUNTED_STATUSES: tuple[EmbeddingStatus, ...] = ("pending", "ready", "stale", "failed")
"""The statuses that are told; their sum is what is eligible for a vector."""

StatusCounts = Mapping[str, Mapping[EmbeddingStatus, int]]


class Health:
    """Answers `health`."""

    def __init__(
        self,
        words: LexicalIndex,
        modes: Modes,
        spaces: VectorSpaces,
        index: VectorIndex,
        jobs: Jobs,
        deployment: StatusSource,
        usage: StatusSource,
    ) -> None:
        """Take the ports; `deployment` has lag and models of this worker, `usage` what was asked of it."""
        self._words = words
        self._modes = modes
        self._spaces = spaces
        self._index = index
        self._jobs = jobs
        self._deployment = deployment
        self._usage = usage

    async def __call__(self, command: Command) -> dict[str, Any]:
        """Of the command's boundary and of the deployment.

        A mode's counts are of all that has a vector there: turns, what was distilled from them, and `items`.
        """
        boundary = command.scope.boundary
        turns, items = (self._words.counts(shelf) for shelf in index_names(boundary))
        counts = {name: _added(turns.get(name, {}), items.get(name, {})) for name in {**turns, **items}}
        visible = self._spaces.visible(boundary, None)
        names = sorted({*counts, *(mode.name for mode in visible)})
        last = self._jobs.last_backfill(boundary)
        modes = {
            name: self._of_modes([mode for mode in visible if mode.name == name], counts.get(name, {}))
            | {"items": sum(items.get(name, {}).values())}
            | {"last_backfill": iso(last[name]) if name in last else None}
            for name in names
        }
        return {
            "modes": modes,
            "jobs": [_progress(tally) for tally in self._jobs.under_way(boundary)],
            "telemetry": self._telemetry(turns, boundary),
            "vector_index": await self._reachable(),
            **self._deployment(),
        }

    def _of_modes(self, modes: Sequence[Mode], counts: Mapping[EmbeddingStatus, int]) -> dict[str, Any]:
        """Of the modes of one name: the user's own, and those of projects. One that misses its model says so."""
        named: dict[str, int] = {status: counts.get(status, 0) for status in COUNTED_STATUSES}
        fingerprint, error = None, None
        for mode in modes:
            try:
                opened = self._spaces.resolve(mode)[1].fingerprint.digest
            except ModelMissing as missing:
                error = {"code": "unavailable", "message": str(missing)}
            else:
                fingerprint = fingerprint or opened
        eligible = sum(named.values())
        return {"eligible": eligible, **named, "fingerprint": fingerprint, "error": error}

    def _telemetry(self, counts: StatusCounts, boundary: str) -> dict[str, Any]:
        """The numbers of the seed's kill criteria: of this boundary, then of this worker since it started."""
        classified = sum(sum(statuses.values()) for statuses in counts.values())
        corrections = self._modes.get(boundary).corrections
        return {
            "modes_in_use": len(counts),
            "corrections": corrections,
            "corrections_per_hundred": round(100 * corrections / classified, 2) if classified else 0.0,
            **self._usage(),
        }

    async def _reachable(self) -> str:
        try:
            await self._index.spaces()
        except Unavailable as problem:
            return f"unavailable: {problem}"
        return "ready"


def _added(one: Mapping[EmbeddingStatus, int], other: Mapping[EmbeddingStatus, int]) -> dict[EmbeddingStatus, int]:
    return {status: one.get(status, 0) + other.get(status, 0) for status in {**one, **other}}


def _progress(tally: JobProgress) -> dict[str, Any]:
    """How far a job is."""
    done = tally.processed + tally.skipped + tally.failed
    job = tally.job
    return {"job_id": job.job_id, "command": job.kind, "mode": job.mode, "done": done, "total": tally.total}
