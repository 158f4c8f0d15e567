"""Understand turns again that an older prompt, profile, revision or release has understood, or rules alone.

Enters: a job and the records of its scope or boundary. Leaves: `Understood` and `Reread` events for `agents.memory`.
Writes nothing. What is done is on the records, with what it has changed: a job that is interrupted goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.ports.clock import Clock
from agents.ports.indexes import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.items.extracting import ExtractedItem
from agents.rules.items.item_merging import is_due_by_rules, supports_of
from agents.rules.memory.understanding import (
    ModelAndPrompt,
    current_text_hash,
    is_covered,
    is_due_by_model,
    is_of_earlier_revision,
)
from agents.rules.memory.visibility import list_ids_of_job
from agents.understanding.understand import Understand
from schemas.internal.changes import Job
from schemas.internal.events import Refresh as RefreshOf
from schemas.internal.events import Reread, Understood
from schemas.state.memories import Memory


@dataclass(frozen=True, slots=True)
class RefreshLimits:
    """Cost limits of one job or consolidation: a deployment's, which a job may lower."""

    calls: int
    tokens: int

    def of(self, job: Job) -> "RefreshLimits":
        calls = self.calls if job.max_calls is None else min(job.max_calls, self.calls)
        tokens = self.tokens if job.max_tokens is None else min(job.max_tokens, self.tokens)
        return RefreshLimits(calls, tokens)


class Refresh:
    """Jobs in; due turns and events out."""

    def __init__(
        self,
        understand: Understand,
        memories: Memories,
        words: LexicalIndex,
        clock: Clock,
        profile: str | None,
        limits: RefreshLimits,
        run_limits: RefreshLimits,
    ) -> None:
        """`profile` is the language model that understands turns; None, or while no model is asked: rules do.

        `limits` are those of a job, `run_limits` those of a consolidation.
        """
        self.limits, self.run_limits = limits, run_limits
        self.profile = profile if understand.is_on else None
        self.pipelines = understand.pipelines
        self._understand = understand
        self._memories = memories
        self._words = words
        self._clock = clock

    def turn_ids(self, job: Job) -> list[str]:
        """Return the ids of all memories that may be turns of the job, of every mode: an answer may have moved one."""
        columns = self._words.memory_columns(job.scope.boundary)
        return list_ids_of_job(columns, job.model_copy(update={"mode": None}))

    def turn(self, memory_id: str) -> Memory | None:
        """Return the record as it is now."""
        return self._memories.get(memory_id)

    def is_done(self, memory: Memory, job: Job) -> bool:
        """True if this job has had the turn understood, maybe before it was interrupted."""
        done = memory.reading.refreshed
        return done is not None and done.job_id == job.job_id

    def may_be_due(self, memory: Memory, job: Job) -> bool:
        """True if the turn is due, as far as its record alone tells: by rules its text does."""
        if not is_covered(memory, job) or self.is_done(memory, job):
            return False
        if self.profile is not None and not self._understand.may_ask(memory):
            return False
        if self.profile is None or is_of_earlier_revision(memory, job, self._understand.revision):
            return True
        return is_due_by_model(memory, ModelAndPrompt(self.profile, self._understand.prompt_version))

    def is_due_by_rules(self, memory: Memory, job: Job, extracted: Sequence[ExtractedItem]) -> bool:
        """True if the rules find other items in a turn than it has."""
        items = [item for item_id in memory.items if (item := self._memories.get(item_id)) is not None]
        supports = supports_of(memory, extracted)
        return is_of_earlier_revision(memory, job, self._understand.revision) or is_due_by_rules(
            memory, supports, items, self._memories.get, self._memories.is_forgotten
        )

    def expected_tokens(self, memory: Memory) -> int:
        """Return the number of tokens that asking about a turn takes before it is answered."""
        return self._understand.expected_tokens(memory)

    async def ask(self, memory: Memory, job: Job) -> Understood:
        """Ask the language model about a turn. Raises Unavailable."""
        return await self._understand.by_model(memory, _refresh_of(job))

    def reread(self, memory: Memory, job: Job) -> Reread:
        return Reread(
            memory_id=memory.memory_id,
            text_hash=current_text_hash(memory),
            refresh=_refresh_of(job),
            at=self._clock.now(),
            revision=self._understand.revision,
        )


def _refresh_of(job: Job) -> RefreshOf:
    return RefreshOf(job_id=job.job_id)
