"""What follows a change that forgets, besides the memories: answers and runs, tombstones, and the receipt.

A receipt is noted with the rows that forget. Guaranteed: a command that is delivered again has the same receipt, with
the same count, whatever a kill has interrupted. `streams.flow.background.receipts` tells when nothing of it is left.
"""

import hashlib
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Self
from uuid import UUID, uuid5

from agents.memory.items import WriteStep
from agents.ports.clock import Clock
from schemas.internal.changes import Change
from schemas.internal.consolidation import RunHistory
from schemas.internal.events import Forgotten
from schemas.messages.receipts import Asked, Receipt, ReceiptRow
from schemas.messages.records import Outgoing
from schemas.moments import moment_of
from streams.flow.boundary_changes import BoundaryChanges
from streams.flow.job_log import JobLog
from streams.flow.stores.tables import ReceiptStore, ScopeStore
from streams.flow.worker_context import WorkerContext


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
        """Return it for a worker."""
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
        count = sum(len(row.turn_ids) + len(row.derived_ids) for row in rows)
        receipt = receipt.model_copy(update={"forgotten": count})
        row = ReceiptRow(receipt=receipt, turns_before=change.turns_before, at=self._clock.now())
        self._table.put(partition, HIDDEN + receipt.receipt_id, row)
        return receipt

    def out(self, receipt: Receipt) -> Outgoing:
        """Return the record of a receipt."""
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
    """Return the record of a receipt on its topic."""
    left_out = ONLY_ERASED if receipt.state == "hidden" else None
    value = receipt.model_dump_json(by_alias=True, exclude=left_out)
    return Outgoing(topic, receipt.receipt_id.encode(), value.encode())
