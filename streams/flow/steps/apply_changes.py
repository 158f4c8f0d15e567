"""`Remember` on the topic of changes: effects of commands on memories, each answered when it is applied.

A change is applied in batches of memories, and other records are handled in between. It is committed before the
answer, so that every later request sees the change, also one to another worker after a crash. A change that a crash
interrupted is redelivered and resumes.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Self
from uuid import UUID, uuid5

from agents.maps.draw_map import DrawMap
from agents.memory.items import WriteStep
from agents.memory.remember import Remember
from agents.ports.clock import Clock
from agents.rules.memory.visibility import build_example, build_memory_view
from schemas.failures import Unavailable
from schemas.internal.changes import Change
from schemas.internal.consolidation import RunHistory
from schemas.internal.events import Forgotten
from schemas.messages.published import Asked, Receipt, ReceiptRow
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import SuccessReply, warn_of_unknown
from schemas.moments import moment_of
from schemas.state.memories import Memory
from streams.backoff import until_available
from streams.flow.boundary_changes import BoundaryChanges
from streams.flow.job_log import JobLog
from streams.flow.publisher import Publisher
from streams.flow.requests.channel import HandlerResult, ReplyOptions, derived_events
from streams.flow.stores import ReceiptStore, ScopeStore, Stores
from streams.flow.turns_log import LOG_TIMEOUT_S, TurnsLog, archive_forgotten, wait_until_applied
from streams.flow.worker_context import WorkerContext
from streams.observability.metrics import Meters
from streams.partition.commit import STORAGE_TIMEOUT_S, AppliedOffsets, PartitionCommits
from streams.topics import Topics

# What follows a change that forgets, besides the memories: answers and runs, tombstones, and the receipt.
#
# A receipt is noted with the rows that forget. Guaranteed: a command that is delivered again has the same receipt, with
# the same count, whatever a kill has interrupted. `streams.flow.background.receipts` tells when nothing of it is left.


@dataclass(frozen=True, slots=True)
class AfterForgetting:
    """Clears what is stored about forgotten memories outside of the memories themselves."""

    jobs: JobLog
    consolidations: ScopeStore[RunHistory]
    boundaries: BoundaryChanges
    topic: str
    """The topic `boundaries`."""
    runs_topic: str = ""
    """The topic `runs`; none: no runs are recorded."""
    contexts_topic: str = ""
    """The topic `contexts`; none: they are not logged."""
    runs_have_texts: bool = False
    """True if run records may have texts of any memory."""

    @classmethod
    def of(cls, ctx: WorkerContext) -> Self:
        runs = "" if ctx.runs is None else ctx.topics.runs
        has_texts = ctx.runs is not None and ctx.runs.options.texts
        contexts = ctx.topics.contexts if ctx.logs_contexts else ""
        return cls(
            ctx.jobs,
            ctx.consolidations,
            ctx.boundaries,
            ctx.topics.boundaries,
            runs,
            contexts,
            runs_have_texts=has_texts,
        )

    def clear_answers(self, change: Change, partition: int) -> list[Awaitable[None]]:
        """Remove the jobs and consolidations of a forgotten user, or the texts in jobs; return the writes to await."""
        if change.action != "forget":
            return []
        boundary, is_user = change.scope.boundary, change.whole == "user"
        runs: list[Awaitable[None]] = []
        if is_user:
            # Of a run that is under way, too: at its end it finds no entry of its own, and stores nothing.
            for scope in self.consolidations.scopes(partition, boundary):
                self.consolidations.put(partition, scope, RunHistory())
            runs = self.consolidations.pending_writes()
        return [*self.jobs.forget(partition, boundary, everything=is_user), *runs]

    def tombstones(self, change: Change, partition: int) -> Sequence[Outgoing]:
        """Return the tombstones of a forgotten boundary, which the lexical index has committed.

        From then on no earlier count of it is published.
        From that of its runs on no earlier run is listed; where runs have texts, whatever was forgotten.
        """
        boundary = change.scope.boundary
        hides_runs = change.whole == "user" or (change.action == "forget" and self.runs_have_texts)
        runs = [Outgoing(self.runs_topic, boundary.encode(), None)] if hides_runs and self.runs_topic else []
        if change.whole != "user":
            return runs
        self.boundaries.forgotten(partition, boundary)
        contexts = [Outgoing(self.contexts_topic, boundary.encode(), None)] if self.contexts_topic else []
        return [Outgoing(self.topic, boundary.encode(), None), *runs, *contexts]


RECEIPT_NAMESPACE = UUID("025c9823-7c07-54a0-a8fd-fdce37b407b2")
"""The UUIDv5 namespace of the ids of receipts."""

ONLY_ERASED = {"erased_at", "looked_at"}
"""Fields of a receipt that says `erased`."""

NOT_IN_RESULTS = {"schema_", "state", *ONLY_ERASED}
"""Fields that the result of `forget` leaves out."""

HIDDEN, ERASED, PAGES = "hidden/", "erased/", "ids/"
"""What keys of receipts begin with, by their state, and those of the pages of memories."""


class ForgetReceipts:
    """Writes the receipts of the changes of a worker, which forget."""

    def __init__(self, table: ReceiptStore, topic: str, clock: Clock, erased_within: timedelta | None) -> None:
        """`erased_within`: the time in which logs are erased; None: by no time."""
        self._table = table
        self._topic = topic
        self._clock = clock
        self._erased_within = erased_within

    def add(self, change: Change, partition: int, steps: Sequence[WriteStep]) -> None:
        """Note the memories that these steps have forgotten."""
        forgotten = [
            memory for memory, events in steps if memory and any(isinstance(each, Forgotten) for each in events)
        ]
        if change.asked is None or not forgotten:
            return
        pages = PAGES + self._new(change).receipt_id + "/"
        row = ReceiptRow(
            turn_ids=tuple(memory.memory_id for memory in forgotten if memory.origin == "said"),
            derived_ids=tuple(memory.memory_id for memory in forgotten if memory.origin != "said"),
        )
        self._table.put(partition, f"{pages}{len(self._table.keys(partition, pages)):08}", row)

    def close(self, change: Change, partition: int) -> Receipt | None:
        """Return the receipt of a change that is applied, in its present state; None for one without."""
        if change.asked is None:
            return None
        receipt = self._new(change)
        for state in (ERASED, HIDDEN):
            if (known := self._table.get(partition, state + receipt.receipt_id).receipt) is not None:
                return known
        rows = (self._table.get(partition, key) for key in self._table.keys(partition, f"{PAGES}{receipt.receipt_id}/"))
        # After a kill, pages may be recovered without the removals that were written after them: these are noted again.
        forgotten = {memory_id for row in rows for memory_id in (*row.turn_ids, *row.derived_ids)}
        receipt = receipt.model_copy(update={"forgotten": len(forgotten)})
        row = ReceiptRow(receipt=receipt, turns_before=change.turns_before, at=self._clock.now())
        self._table.put(partition, HIDDEN + receipt.receipt_id, row)
        return receipt

    def out(self, receipt: Receipt) -> Outgoing:
        return receipt_out(self._topic, receipt)

    def _new(self, change: Change) -> Receipt:
        assert change.asked is not None
        return receipt_of(change.asked, change.scope.boundary, self._erased_within)


def receipt_of(asked: Asked, key: str, erased_within: timedelta | None) -> Receipt:
    """Return the receipt of a command, the same whenever its record is delivered; nothing is counted yet."""
    place, requested_at = asked.place, moment_of(asked.timestamp_ms)
    name = f"{place.topic}/{place.partition}/{place.offset}@{asked.timestamp_ms}/{key}"
    receipt_id = str(uuid5(RECEIPT_NAMESPACE, name))
    salt = hashlib.sha256(f"salt/{receipt_id}".encode()).hexdigest()[:32]
    return Receipt(
        receipt_id=receipt_id,
        salt=salt,
        scope_digest=hashlib.sha256(f"{salt}/{key}".encode()).hexdigest(),
        requested_at=requested_at,
        forgotten=0,
        log=place,
        erase_by=None if erased_within is None else requested_at + erased_within,
    )


def receipt_out(topic: str, receipt: Receipt) -> Outgoing:
    left_out = ONLY_ERASED if receipt.state == "hidden" else None
    value = receipt.model_dump_json(by_alias=True, exclude=left_out)
    return Outgoing(topic, receipt.receipt_id.encode(), value.encode())


CHANGE_BATCH_SIZE = 50
"""Memories that a command changes before other records are handled: some 20 ms."""

MAX_EXAMPLES = 10
"""Memories that a dry run shows."""

OnChanged = Callable[[Change, int], None]
"""Called after every applied change with its partition."""


class ChangeSteps:
    """The steps of one change, each retried while the local disk is full."""

    def __init__(self, remember: Remember, dated: Callable[[], Change], meters: Meters) -> None:
        """`dated` returns the change with the turns until now. It is called when the first step is taken."""
        self._remember, self._dated, self._meters = remember, dated, meters
        self._steps: Iterator[WriteStep] | None = None

    async def next(self) -> WriteStep | None:
        return await until_available(self._step, "storage", self._meters, at_most_s=STORAGE_TIMEOUT_S)

    async def _step(self) -> WriteStep | None:
        if self._steps is None:
            # Without an await until the first step, which selects the memories: no turn is applied in between.
            self._steps = self._remember.changed(self._dated())
        try:
            return next(self._steps, None)
        except Unavailable:
            # A generator that has raised is finished. A new one skips what is applied.
            self._steps = None
            raise


@dataclass(slots=True)
class ChangeTally:
    """The number of memories that a change has affected so far, and the last of them."""

    action: str
    count: int = 0
    last: Memory | None = None

    def add(self, step: WriteStep) -> None:
        """Count a step with an effect; a restored source was not forgotten."""
        memory, events = step
        forgotten = any(isinstance(event, Forgotten) for event in events)
        if forgotten if self.action == "forget" else memory is not None:
            self.count += 1
            self.last = memory


class ApplyChanges:
    """Handles `change.v1`. A redelivered change that is applied already is only answered."""

    def __init__(
        self,
        remember_at: Callable[[int], Remember],
        stores: Stores,
        commit: PartitionCommits,
        publisher: Publisher,
        topics: Topics,
        meters: Meters,
        *,
        progress: AppliedOffsets,
        turns_log: TurnsLog | None,
        on_changed: OnChanged,
        after_forgetting: AfterForgetting,
        receipts: ForgetReceipts,
        draw_map_at: Callable[[int], DrawMap],
    ) -> None:
        """Without `turns_log` all turns are applied before any change arrives."""
        self._remember_at = remember_at
        self._stores = stores
        self._commit = commit
        self._publisher = publisher
        self._topics = topics
        self._meters = meters
        self._progress = progress
        self._turns_log = turns_log
        self._on_changed = on_changed
        self._after_forgetting = after_forgetting
        self._receipts = receipts
        self._draw_map_at = draw_map_at
        self._redelivered_until: dict[int, int] = {}
        """By partition, the offset after the last change that was applied before its delivery."""

    async def __call__(self, change: Change, record: Record, _options: ReplyOptions) -> HandlerResult:
        if change.action == "preview":
            # How many memories would be forgotten, and some of them.
            dated = self._dated(change, record.partition, await self._caught_up(change, record.partition))
            count, examples = 0, list[Memory]()
            for place, memory in enumerate(self._remember_at(record.partition).preview(dated)):
                if memory is not None:
                    count += 1
                    examples += [memory] if len(examples) < MAX_EXAMPLES else []
                if place % CHANGE_BATCH_SIZE == 0:
                    await asyncio.sleep(0)
            return HandlerResult(
                SuccessReply(
                    {"would_forget": count, "examples": [build_example(memory) for memory in examples]},
                    warn_of_unknown(change.unknown_arguments),
                )
            )
        # A record is redelivered; earlier redelivered records may have set back the applied offset.
        applied = self._commit.applied(record.partition, record.topic)
        until = self._redelivered_until
        until[record.partition] = max(until.get(record.partition, 0), applied)
        is_only_answered = record.offset < until[record.partition] and not change.ids
        tally = ChangeTally(change.action) if is_only_answered else await self._apply(change, record.partition)
        receipt = await self._receipt(change, record.partition)
        await self._commit.commit([record.partition], is_hurried=True)
        self._on_changed(change, record.partition)
        await self._draw_map_at(record.partition).prune(change.scope.boundary)
        after = self._after_forgetting
        writes = after.clear_answers(change, record.partition)
        # The command's answer: its own result, the memory, or the number of memories.
        if change.result is None:
            result = {} if tally.last is None else build_memory_view(tally.last)
        else:
            counted = {"forget": "forgotten", "move": "moved", "filter": "changed"}.get(change.action, "")
            result = change.result | ({counted: tally.count} if counted in change.result else {})
        told = [*after.tombstones(change, record.partition)]
        if receipt is not None:
            shown = receipt.model_dump(mode="json", exclude=NOT_IN_RESULTS)
            result |= {"forgotten": receipt.forgotten, "receipt": shown}
            told.append(self._receipts.out(receipt))
        return HandlerResult(SuccessReply(result, warn_of_unknown(change.unknown_arguments)), told, writes)

    async def _receipt(self, change: Change, partition: int) -> Receipt | None:
        """Return the receipt of a change that a command `forget` asked for; it is stored with the next commit."""
        if change.asked is None:
            return None
        writing = await self._commit.begin(partition)
        try:
            return self._receipts.close(change, partition)
        finally:
            # Awaited by the commit.
            writing.finish([])

    async def _apply(self, change: Change, partition: int) -> ChangeTally:
        """Apply the change in batches; other records are handled in between."""
        log_end = await self._caught_up(change, partition)
        dated = partial(self._dated, change, partition, log_end)
        steps = ChangeSteps(self._remember_at(partition), dated, self._meters)
        tally = ChangeTally(change.action)
        while await self._batch(steps, tally, change, partition):  # noqa: ASYNC110 - no polling
            await asyncio.sleep(0)
        return tally

    async def _caught_up(self, change: Change, partition: int) -> int | None:
        """Wait until all turns before the change are applied; return the end of the log. Raises Unavailable."""
        log = self._turns_log
        if log is None or change.turns_before is None:
            return None
        await wait_until_applied(log, self._progress, partition, change.turns_before, change.scope.boundary)
        # A turn may be stored and not applied yet: a killed worker had applied it, and it is delivered again.
        return await until_available(partial(log.end, partition), "kafka", self._meters, at_most_s=LOG_TIMEOUT_S)

    def _dated(self, change: Change, partition: int, log_end: int | None) -> Change:
        """Return the change with the offset after the last turn that may be stored; `log_end` is from before."""
        if log_end is None:
            return change
        applied = self._progress.next_offset(partition, change.scope.boundary) or 0
        return change.model_copy(update={"turns_until": max(log_end, applied)})

    async def _batch(self, steps: ChangeSteps, tally: ChangeTally, change: Change, partition: int) -> bool:
        """Apply some steps, and make them durable; False if none is left."""
        taken, sent, applied = 0, list[Awaitable[object]](), list[WriteStep]()
        writing = await self._commit.begin(partition)
        try:
            while taken < CHANGE_BATCH_SIZE and (step := await steps.next()):
                outgoing = [*derived_events(self._topics, change.scope.boundary, step[1])]
                outgoing += archive_forgotten(self._topics.archive, partition, step)
                sent += [await self._publisher.send(out) for out in outgoing]
                tally.add(step)
                applied.append(step)
                taken += 1
        finally:
            self._receipts.add(change, partition, applied)
            finishing = writing.finish(sent)
        await self._commit.commit([partition], is_hurried=True)
        await finishing
        return taken > 0
