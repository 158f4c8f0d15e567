"""One running job `refresh`: turns are understood again, within a budget, and the job answers what has changed.

A job stores no progress: what it has done is noted on the turns. If a kill interrupts it, it is delivered again, finds
these notes, and goes on; nothing is counted twice. Users take turns at the model, whose limits of calls hold as for new
turns. What the budget leaves, or a model that is away, is due for the next job.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import structlog
from pydantic import BaseModel

from agents.ports.pipelines import ActivePipelines, State
from agents.rules.items.item_merging import ItemDiff, sum_diffs
from agents.understanding.refresh import Refresh, RefreshLimits
from agents.understanding.understand import UNDERSTAND
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.internal.changes import Job, JobProgress
from schemas.internal.events import Understood
from schemas.messages.replies import ReplyWarning, SuccessReply
from schemas.state.memories import Memory
from streams.backoff import until_available
from streams.batching import batches
from streams.fair_queue import FairTurns
from streams.flow.publisher import await_all
from streams.flow.requests.channel import HandlerResult, event_out
from streams.flow.runs.recorder import timed_part
from streams.flow.steps.remember import PrepareTurns
from streams.flow.worker_context import WorkerContext


async def understood_turn(
    active: ActivePipelines,
    ask: Callable[[], Awaitable[Understood]],
    turn: Memory,
    partition: int,
    ctx: WorkerContext,
    job_id: str | None = None,
) -> Understood | None:
    """Return the answer about a turn, None where the step is off; `job_id` is the job that asks again.

    Without what was understood where a custom step fails: asked again, it would fail again. Raises what `ask` raises,
    recorded.
    """

    async def asked(_state: State) -> State:
        event = await ask()
        return {"event": event, "understanding": event.found}

    state: State = {"memory": turn}
    with timed_part(ctx.runs, "understand", turn, partition, job_id) as part:
        try:
            await active.run({UNDERSTAND: asked}, state)
        except Rejected:
            if "event" not in state:
                raise
            state["understanding"] = None
        if "event" not in state:
            return None
        event: Understood = state["event"].model_copy(update={"found": state["understanding"]})
        # What a model has answered in short: no texts.
        found = event.found
        part.outcome = {
            "profile": event.profile,
            "prompt": event.prompt,
            "interaction_mode": None if event.interaction is None else event.interaction.mode,
            "items": 0 if found is None else len(found.items),
            "categories": 0 if found is None else len(found.categories),
            **({} if job_id is None else {"job_id": job_id}),
        }
    return event


log = structlog.get_logger()

MAX_ASKED_BY_JOB = 4
"""Turns of one job about which models are asked at a time."""

MAX_OUTAGE_S = 30.0
"""Seconds that a job waits for a model that is away; then it ends, and the rest is due for the next one."""

MAX_APPLYING_S = 60.0
"""Seconds that a job waits for answers to be on their records: a few milliseconds, unless many events wait. An answer
that is refused, because its items are too large, never is."""

APPLIED_POLL_INTERVAL_S = 0.02
"""Between two looks at the records."""

PAGE_SIZE = 20
"""Records that are read at a stretch, some 2 ms."""

OUT_OF_TIME = "the time limit is reached"
"""Why turns are left by a run that has one."""

MAX_IDS = 500
"""Ids of each kind in an answer; the counts are complete."""


class RefreshRun:
    """A job, or the part of a consolidation that is done like one."""

    def __init__(
        self,
        job: Job,
        tally: JobProgress,
        refresh: Refresh,
        partition: int,
        ctx: WorkerContext,
        turns: FairTurns,
        limits: RefreshLimits,
        is_over: Callable[[], bool],
    ) -> None:
        self._job, self._tally, self._refresh = job, tally, refresh
        self._partition = partition
        self._ctx = ctx
        self._turns = turns
        self._limits = limits
        self._is_over = is_over
        self._prepare = PrepareTurns(ctx.pipelines, ctx.stores, ctx.read_text, ctx.meters)
        self._done: dict[str, None] = {}
        """Turns with a note of this job, whose costs count."""
        self._calls = self._remaining = 0
        self.tokens = 0
        """Tokens of the turns with a note of this job."""
        self._ends_because: str | None = None

    async def run_to_end(self) -> bool:
        """Have all due turns understood that the budget allows; False if the partition has left."""
        due: list[str] = []
        for page in batches(self._refresh.turn_ids(self._job), PAGE_SIZE):
            async with self._ctx.foreground.slice():
                for turn in filter(None, map(self._refresh.turn, page)):
                    if self._refresh.is_done(turn, self._job):
                        self._count(turn)
                    elif self._refresh.may_be_due(turn, self._job):
                        due.append(turn.memory_id)
        self._tally.total = len(self._done) + len(due)
        understand = self._read_by_rules if self._refresh.profile is None else self._ask
        still_due: list[str] = []
        for some in batches(due, MAX_ASKED_BY_JOB):
            if self._ends_because is None and self._is_over():
                self._ends_because = OUT_OF_TIME
            if self._ends_because is None:
                await understand(some)
            else:
                still_due += some
            if not self._is_assigned():
                return False
        # Whether a turn that the rules have read is due still, its record does not tell.
        left = still_due if self._refresh.profile is None else due
        self._remaining = len([memory_id for memory_id in left if self._is_left(memory_id)])
        return True

    def answer(self) -> SuccessReply:
        """Return what has been done, what has changed, and what is left."""
        diff = self.diff()
        result: dict[str, Any] = {
            "job_id": self._job.job_id,
            "by": self._refresh.profile or "rules",
            "total": self._tally.total,
            "skipped": self._tally.skipped,
            **self.counts(),
            **{f"items_{name}": len(ids) for name, ids in diff._asdict().items()},
            **{name: list(ids[:MAX_IDS]) for name, ids in diff._asdict().items()},
        }
        return SuccessReply(result, (ReplyWarning("unfinished", self.unfinished),) if self._remaining else ())

    @property
    def unfinished(self) -> str:
        """Why the next one must continue; empty if no turn is left."""
        why = self._ends_because or "they have changed"
        return f"{self._remaining} turns are left for the next refresh: {why}" if self._remaining else ""

    def diff(self) -> ItemDiff:
        """Return the items that have changed, also before the job was interrupted."""
        notes = [
            turn.reading.refreshed for memory_id in self._done if (turn := self._refresh.turn(memory_id)) is not None
        ]
        return sum_diffs(ItemDiff(note.added, note.removed, note.changed) for note in notes if note is not None)

    def counts(self) -> dict[str, int]:
        """Return turns that were understood, failed and are left, and the cost."""
        tally = self._tally
        cost = {"calls": self._calls, "tokens": self.tokens}
        return {"processed": tally.processed, "failed": tally.failed, "remaining": self._remaining, **cost}

    async def _ask(self, memory_ids: Sequence[str]) -> None:
        """Ask the model about turns, as far as the budget allows; return when the answers are on the records."""
        turns: list[Memory] = []
        limits, reserved = self._limits, 0
        for turn in self._still_due(memory_ids):
            reserved += self._refresh.expected_tokens(turn)
            if self._calls + len(turns) >= limits.calls:
                self._ends_because = f"{limits.calls} calls are the limit"
            elif self.tokens + reserved > limits.tokens:
                self._ends_because = f"{limits.tokens} tokens are the limit"
            if self._ends_because is not None:
                break
            turns.append(turn)
        answers = await asyncio.gather(*(self._answer_about(turn) for turn in turns))
        await self._publish(turns, answers)

    async def _answer_about(self, turn: Memory) -> Understood | None:
        def ask() -> Awaitable[Understood]:
            return self._refresh.ask(turn, self._job)

        def patiently() -> Awaitable[Understood]:
            return until_available(ask, "language model", self._ctx.meters, at_most_s=MAX_OUTAGE_S)

        try:
            async with self._turns.turn(self._job.scope.boundary):
                return await understood_turn(
                    self._refresh.pipelines, patiently, turn, self._partition, self._ctx, self._job.job_id
                )
        except (Unavailable, ModelMissing) as problem:
            self._ends_because = str(problem)
        except Exception:
            log.exception("understanding a turn again failed", partition=self._partition)
            self._tally.failed += 1
        return None

    async def _read_by_rules(self, memory_ids: Sequence[str]) -> None:
        """Have the rules read the turns in which they find other items now; the others are as they would be."""
        turns = []
        for turn in self._still_due(memory_ids):
            async with self._ctx.foreground.slice():
                if await self._is_due_by_rules(turn):
                    turns.append(turn)
        await self._publish(turns, [self._refresh.reread(turn, self._job) for turn in turns])

    async def _is_due_by_rules(self, turn: Memory) -> bool:
        try:
            items = (await self._prepare.analyse(self._partition, turn, await self._prepare.in_force())).items
        except Rejected as problem:
            log.warning("custom step refuses a turn", problem=problem.code, partition=self._partition)
            self._tally.failed += 1
            return False
        is_due = self._refresh.is_due_by_rules(turn, self._job, items)
        self._tally.skipped += not is_due
        return is_due

    async def _publish(self, turns: Sequence[Memory], events: Sequence[BaseModel | None]) -> None:
        """Publish events, and wait until their turns have a note of this job, are gone, or have another text."""
        pairs = [(turn, event) for turn, event in zip(turns, events, strict=True) if event is not None]
        outs = [event_out(self._ctx.topics.understood, self._job.scope.boundary, event) for _, event in pairs]
        await await_all([await self._ctx.publisher.send(out) for out in outs])
        waiting = [turn for turn, _ in pairs]
        until = asyncio.get_running_loop().time() + MAX_APPLYING_S
        while (waiting := [turn for turn in waiting if not self._is_settled(turn)]) and self._is_assigned():
            if asyncio.get_running_loop().time() > until:
                self._tally.failed += len(waiting)
                return
            await asyncio.sleep(APPLIED_POLL_INTERVAL_S)

    def _is_settled(self, before: Memory) -> bool:
        turn = self._refresh.turn(before.memory_id)
        if turn is not None and self._refresh.is_done(turn, self._job):
            self._count(turn)
        elif turn is None or turn.latest != before.latest:
            self._tally.skipped += 1
        else:
            return False
        return True

    def _count(self, turn: Memory) -> None:
        """Count a turn with a note of this job, once."""
        note = turn.reading.refreshed
        if note is None or turn.memory_id in self._done:
            return
        self._done[turn.memory_id] = None
        self._calls += self._refresh.profile is not None
        self.tokens += note.tokens
        self._tally.processed += note.is_answered
        self._tally.failed += not note.is_answered

    def _still_due(self, memory_ids: Sequence[str]) -> list[Memory]:
        """Return the turns that are still due: others may have been changed or forgotten since."""
        turns = [turn for memory_id in memory_ids if (turn := self._refresh.turn(memory_id)) is not None]
        due = [turn for turn in turns if self._refresh.may_be_due(turn, self._job)]
        self._tally.skipped += len(memory_ids) - len(due)
        return due

    def _is_left(self, memory_id: str) -> bool:
        turn = self._refresh.turn(memory_id)
        return turn is not None and self._refresh.may_be_due(turn, self._job)

    def _is_assigned(self) -> bool:
        return self._ctx.is_assigned(self._partition)


MAX_ASKED_AT_ONCE = 8
"""Turns about which models are asked for jobs at a time, in one worker; new turns have calls of their own."""

MAX_MODEL_TURN_S = 60.0
"""Seconds of a user's turn at the model: what takes longer holds up no other."""


class RunRefreshes:
    """Handles jobs of the kind `refresh`, one of a boundary at a time."""

    def __init__(self, refresh_at: Callable[[int], Refresh], ctx: WorkerContext) -> None:
        self._refresh_at = refresh_at
        self._ctx = ctx
        self._turns = FairTurns(MAX_ASKED_AT_ONCE, MAX_MODEL_TURN_S)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, job: Job, partition: int) -> HandlerResult:
        """Run the job to its end. Without an answer, the worker that has the partition now gets the job again."""
        async with self.lock(job):
            with self._ctx.jobs.running(job) as tally:
                refresh = self.at(partition)
                running = self.prepare(refresh, job, tally, partition, refresh.limits.of(job))
                if not await running.run_to_end():
                    return HandlerResult(None)
        return HandlerResult(running.answer())

    def at(self, partition: int) -> Refresh:
        return self._refresh_at(partition)

    def lock(self, job: Job) -> asyncio.Lock:
        """Return the lock to hold while a job runs: two of a boundary would note the same turns."""
        return self._locks.setdefault(job.scope.boundary, asyncio.Lock())

    def prepare(
        self,
        refresh: Refresh,
        job: Job,
        tally: JobProgress,
        partition: int,
        limits: RefreshLimits,
        is_over: Callable[[], bool] = lambda: False,
    ) -> RefreshRun:
        """Return a job that is to run within these limits, and until `is_over`, under its `lock`."""
        return RefreshRun(job, tally, refresh, partition, self._ctx, self._turns, limits, is_over)
