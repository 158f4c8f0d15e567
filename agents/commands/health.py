"""Report the health of a boundary and of the deployment."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from modestream_client.vocabulary import EmbeddingStatus

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.clock import Clock
from agents.ports.commands import Jobs
from agents.ports.indexes import LexicalIndex, VectorIndex
from agents.ports.stores import Files, Memories, Modes
from agents.rules.memory.boundary_summary import count_growth, weeks_of_modes
from schemas.failures import ModelMissing, Unavailable
from schemas.internal.job_history import MAINTENANCE_JOBS, Schedule
from schemas.messages.commands import Command
from schemas.moments import iso, week_of
from schemas.scopes import PROJECT_FIELD
from schemas.state.files import FileStatuses
from schemas.state.memories import all_item_index_names, index_names, turn_index_names
from schemas.state.modes import MAX_USAGE_WEEKS, Mode, UsageHistory

StatusSource = Callable[[], Mapping[str, Any]]

MAX_LAST_JOBS = 5
"""Jobs and consolidations that are shown after their end, the last ones."""


class UsageSource(Protocol):
    """How modes are used since this worker started."""

    def __call__(self) -> Mapping[str, Any]:
        """Return the figures of all users of this worker."""

    def of(self, boundary: str) -> Mapping[str, int]:
        """Return the counts of one user."""


COMPARING_JOBS = ("verify", "reconcile")
"""Jobs that compare the vector index with the records."""

COUNTED_STATUSES: tuple[EmbeddingStatus, ...] = ("pending", "ready", "stale", "failed")
"""The statuses of memories that are eligible for a vector; `not_applicable` is counted apart."""

StatusCounts = Mapping[str, Mapping[EmbeddingStatus, int]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileCounts:
    files: Files
    memories: Memories

    def of(self, boundary: str, projects: Collection[str] | None) -> dict[str, int]:
        """Return how many files are read, fail or wait, of these projects (None: of all); and different uploads."""
        counts = FileStatuses()
        for memory_id, statuses in self.files.turns(boundary).items():
            turn = None if projects is None else self.memories.get(memory_id)
            if projects is None or (turn is not None and turn.scope[PROJECT_FIELD] in projects):
                counts = counts.plus(statuses)
        stored = {"stored": len(self.files.hashes(boundary))} if projects is None else {}
        return {**counts.model_dump(), **stored}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Health:
    """The command `health` in, its result out.

    `deployment` reports lag and models of this worker, `usage` counts its requests; `usage_history` returns how the
    modes of a boundary were used, by week.
    """

    words: LexicalIndex
    modes: Modes
    spaces: VectorSpaces
    index: VectorIndex
    jobs: Jobs
    deployment: StatusSource
    usage: UsageSource
    files: FileCounts
    usage_history: Callable[[str], UsageHistory]
    clock: Clock
    schedule: Schedule = field(default_factory=dict)

    async def __call__(self, command: Command) -> dict[str, Any]:
        """Report the health of the command's boundary and of the deployment.

        A sender that may not read all projects gets the figures of those that it may read.
        A mode's counts cover all memories with vectors: turns, distilled memories, and items, which `items` counts.
        """
        boundary, projects = command.scope.boundary, command.permitted_projects
        turns = self._counts(turn_index_names(boundary), projects)
        items = self._counts(all_item_index_names(boundary), projects)
        counts = _add(turns, items)
        visible = self.spaces.visible(boundary, projects)
        names = sorted({*counts, *(mode.name for mode in visible)})
        last = self.jobs.last_backfill(boundary)
        modes = {
            name: self._of_modes([mode for mode in visible if mode.name == name], counts.get(name, {}))
            | {"items": sum(items.get(name, {}).values())}
            | {"last_backfill": iso(last[name]) if name in last else None}
            | {"former": self._former(boundary, name, visible)}
            for name in names
        }
        # The last jobs that ended, the newest first, without texts of memories.
        ended = [job for job in self.jobs.last(boundary) if job.answer is not None]
        shown = [job.summary() for job in ended if projects is None or job.project in projects]
        running = [
            {
                "job_id": tally.job.job_id,
                "command": tally.job.kind,
                "mode": tally.job.mode,
                "done": tally.processed + tally.skipped + tally.failed,
                "total": tally.total,
            }
            for tally in self.jobs.under_way(boundary)
            if projects is None or (not tally.job.all_projects and tally.job.scope.project_id in projects)
        ]
        deployment = dict(self.deployment())
        maintenance = {**self._maintenance(boundary, projects), **deployment.pop("maintenance", {})}
        return {
            "modes": modes,
            "jobs": running,
            "last_jobs": shown[::-1][:MAX_LAST_JOBS],
            "growth": count_growth(self.words.memory_columns(boundary), boundary, projects)._asdict(),
            "files": self.files.of(boundary, projects),
            "telemetry": self._telemetry(turns, command),
            "vector_index": await self._index_status(),
            "orphans": self._orphans(boundary, projects),
            "evaluation": self._evaluation(boundary, projects),
            "maintenance": maintenance,
            **deployment,
        }

    def _orphans(self, boundary: str, projects: Collection[str] | None) -> dict[str, Any] | None:
        """Report what the last job that compared the stores has found: rows and vectors without a record."""
        jobs = () if projects is not None else (*self.jobs.last(boundary), *self.jobs.scheduled(boundary).values())
        compared = [job for job in jobs if job.project is None and job.kind in COMPARING_JOBS]
        for job in sorted(compared, key=lambda job: -job.at_ms):
            if counts := (job.summary()["counts"] if job.answer is not None else {}):
                # What `reconcile` has found it has removed; it does not look at words.
                found = {"words": counts.get("words_orphaned"), "vectors": counts.get("vectors_orphaned", 0)}
                return {**found, "by": job.kind, "at": iso(job.at)}
        return None

    def _evaluation(self, boundary: str, projects: Collection[str] | None) -> dict[str, Any] | None:
        """Report the last evaluation, without the outcomes of single questions."""
        for job in reversed(self.jobs.last(boundary)):
            if job.kind == "evaluate" and job.answer is not None and (projects is None or job.project in projects):
                body = job.body()
                if body["result"] is not None:
                    figures = {name: value for name, value in body["result"].items() if name != "outcomes"}
                    return {**figures, "at": iso(job.at)}
        return None

    def _maintenance(self, boundary: str, projects: Collection[str] | None) -> dict[str, Any]:
        """Report the scheduled jobs of the user, each with its last run, which covers all projects."""
        last = self.jobs.scheduled(boundary) if projects is None else {}
        return {
            kind: {"every_hours": self.schedule[kind], "last": last[kind].summary() if kind in last else None}
            for kind in MAINTENANCE_JOBS
            if kind in self.schedule
        }

    def _counts(self, index_names: Iterable[str], projects: Collection[str] | None) -> StatusCounts:
        counts: StatusCounts = {}
        for index_name in index_names:
            counts = _add(counts, self.words.counts(index_name, projects))
        return counts

    def _of_modes(self, modes: Sequence[Mode], counts: Mapping[EmbeddingStatus, int]) -> dict[str, Any]:
        """Report the modes of one name: the user's own and those of projects; `error` names a missing model."""
        by_status: dict[str, int] = {status: counts.get(status, 0) for status in COUNTED_STATUSES}
        fingerprint, error = None, None
        for mode in modes:
            try:
                digest = self.spaces.resolve(mode)[1].fingerprint.digest
            except ModelMissing as missing:
                error = {"code": "unavailable", "message": str(missing)}
            else:
                fingerprint = fingerprint or digest
        eligible = sum(by_status.values())
        filtered = {"not_applicable": counts.get("not_applicable", 0)}
        return {"eligible": eligible, **by_status, **filtered, "fingerprint": fingerprint, "error": error}

    def _former(self, boundary: str, name: str, visible: Iterable[Mode]) -> dict[str, Any] | None:
        """Report the embedder that a mode had before: whether questions are still ranked by it, and its vectors."""
        mode = next((mode for mode in visible if mode.name == name and mode.former is not None), None)
        if mode is None or mode.former is None:
            return None
        indexes = list(map(self.words.memory_columns, index_names(boundary)))
        in_mode = [columns.of_kind(lambda kind: kind.mode == name).astype(np.bool_) for columns in indexes]
        vectors = sum(int((columns.held() & mask).sum()) for columns, mask in zip(indexes, in_mode, strict=True))
        serves = self.spaces.former_serves(boundary, mode)
        return {"embedder": mode.former.embedder, "serves": serves, "vectors": vectors}

    def _telemetry(self, counts: StatusCounts, command: Command) -> dict[str, Any]:
        """Return how modes are used: in this boundary, then by this worker since it started.

        Corrections, questions and weeks are those of all projects together: a sender that may not read all sees none.
        """
        classified = sum(sum(statuses.values()) for statuses in counts.values())
        is_limited = command.permitted_projects is not None
        boundary = command.scope.boundary
        declared, usage = self.modes.get(boundary), self.usage.of(boundary)
        corrections = 0 if is_limited else declared.corrections
        current = {mode.name for mode in declared.modes}
        names = {old: mode.name for mode in declared.modes for old in mode.formerly if old not in current}
        first_week = week_of(self.clock.now()) - MAX_USAGE_WEEKS + 1
        columns = self.words.memory_columns(boundary)
        weeks = [] if is_limited else weeks_of_modes(columns, self.usage_history(boundary), names, first_week)
        return {
            "modes_in_use": len(counts),
            "corrections": corrections,
            "corrections_per_hundred": round(100 * corrections / classified, 2) if classified else 0.0,
            "weeks": weeks,
            **self.usage(),
            "user": dict.fromkeys(usage, 0) if is_limited else usage,
        }

    async def _index_status(self) -> str:
        try:
            await self.index.spaces()
        except Unavailable as problem:
            return f"unavailable: {problem}"
        if (problem_now := self.index.problem()) is not None:
            return f"unavailable: {problem_now}"
        damaged = self.index.set_aside()
        return f"ready; set aside as damaged and made again: {', '.join(damaged)}" if damaged else "ready"


def _add(counts: StatusCounts, other: StatusCounts) -> StatusCounts:
    sums: dict[str, dict[EmbeddingStatus, int]] = {mode: dict(statuses) for mode, statuses in counts.items()}
    for mode, statuses in other.items():
        of_mode = sums.setdefault(mode, {})
        for status, count in statuses.items():
            of_mode[status] = of_mode.get(status, 0) + count
    return sums
