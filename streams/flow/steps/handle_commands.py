"""Commands on their topic: answered at once, or forwarded as a change or a job to the step that answers it.

A change is stored before it is forwarded. A command that is redelivered after a crash forwards the same change: later
turns are not part of it. The items that it assigns to categories are matched again, as no row of a table could hold
them, and are forwarded page by page; the last page leads to the answer. A redelivered declaration has the same answer
as before, so that it does not undo later commands. A `forget` of the user drops all of these, since they have what the
user has declared; an earlier command that is redelivered afterwards is not carried out again.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from modestream_client.operations import OPERATING_COMMANDS, READING_COMMANDS, REPORT_IMPORT

from agents.commands.admit import DispatchCommands
from agents.ports.commands import ResultBody, unknown_arguments
from schemas.failures import Rejected
from schemas.internal.changes import JOB_KINDS, Change, IssuedCommands, Job
from schemas.messages.commands import BESIDE_COMMANDS, Command
from schemas.messages.published import Asked, Rating, RecordPlace
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import SuccessReply, warn_of_unknown
from schemas.moments import moment_of
from schemas.scopes import ScopeFields
from schemas.state.memories import CategoryAssignment
from schemas.state.modes import ForgottenBefore
from streams.backoff import until_available
from streams.flow.publisher import await_all
from streams.flow.requests.channel import HandlerResult, ReplyOptions, event_out
from streams.flow.turns_log import LOG_TIMEOUT_S, TakenTurns
from streams.flow.worker_context import WorkerContext
from streams.wire.partitioning import forward

FORGET_COMMAND = "forget"
"""Affects the turns that were written before it, and no later ones."""

REVOKING_COMMANDS = frozenset({"delete_mode", "rename_mode"})
"""Commands on all memories of a mode when it is revoked. No turn enters the mode afterwards, unless it is declared
again; such turns are not affected."""

COMMANDS_AFTER_TURNS = REVOKING_COMMANDS | {FORGET_COMMAND}
"""Commands whose changes are applied when all turns before them are."""

REPEATABLE_COMMANDS = frozenset({*READING_COMMANDS, *OPERATING_COMMANDS, *JOB_KINDS, REPORT_IMPORT.name})
"""Commands that declare nothing and change no memory: they may be repeated after the user was forgotten."""

DECLARING_COMMANDS = frozenset({"declare_mode", "set_default_mode", "declare_category"})
"""Commands that later ones may revoke: if repeated, they would undo the later ones."""


MAX_CATCH_UP_S = 5.0
"""Maximum wait of a command for the turns of a partition that was just taken; one that can't be applied stops none."""

Assignments = Mapping[str, tuple[CategoryAssignment, ...]]

Reassigned = Callable[[int, ScopeFields], Awaitable[Assignments]]
"""Returns what the items of a scope of a partition are to be assigned to now, by memory id."""


class AnswerCommand:
    def __init__(
        self,
        dispatch_at: Callable[[int], DispatchCommands],
        ctx: WorkerContext,
        taken: TakenTurns | None,
        reassigned_at: Reassigned,
    ) -> None:
        self._dispatch_at = dispatch_at
        self._reassigned_at = reassigned_at
        self._clock = ctx.clock
        self._stores = ctx.stores
        self._issued = ctx.issued
        self._topics = ctx.topics
        self._meters = ctx.meters
        self._turns_log = ctx.turns_log
        self._pipelines = ctx.pipelines
        self._usage = ctx.usage
        self._taken = taken

    async def __call__(self, command: Command, record: Record, options: ReplyOptions) -> HandlerResult:
        """Run the command, or forward its change or job."""
        if command.command in BESIDE_COMMANDS:
            # It runs beside other commands, whose writes are not its own.
            shown = await self._dispatch_at(record.partition).handle(command, record.offset)
            return HandlerResult(_answer(command, shown.result), self._rating_out(command, shown.rating, record))
        if self._taken is not None and not self._pipelines.turns_wait():
            caught_up = partial(self._taken.applied, record.partition, command.scope.boundary, MAX_CATCH_UP_S)
            await until_available(caught_up, "kafka", self._meters, at_most_s=LOG_TIMEOUT_S)
        issued = self._issued.get(record.partition, command.scope.boundary)
        again = await self._redelivered(issued, command, record, options)
        return again or await self._carry_out(issued, command, record)

    async def _redelivered(
        self, issued: IssuedCommands, command: Command, record: Record, options: ReplyOptions
    ) -> HandlerResult | None:
        """Return what follows from a command that was carried out before; None for one that was not.

        Raises Rejected, `conflict`, if the user was forgotten after it and its answer is awaited.
        """
        if (change := issued.changes.get(_record_id(record))) is not None:
            if change.action == "assign":
                assigned = await self._reassigned_at(record.partition, change.scope.model_dump())
                change = change.model_copy(update={"assigned": dict(assigned)})
            return HandlerResult(None, self._forward_change(record, change))
        if (answer := issued.answered.get(_record_id(record))) is not None:
            return HandlerResult(_answer(command, answer))
        gone = issued.forgotten
        if not gone or not gone.covers(record.offset, record.timestamp_ms) or command.command in REPEATABLE_COMMANDS:
            return None
        if options.address is None:
            # A rejection would make it a dead letter, with all that it declares.
            return HandlerResult(None)
        raise Rejected("conflict", "the user was forgotten after this command; what it asked for is forgotten, too")

    async def _carry_out(self, issued: IssuedCommands, command: Command, record: Record) -> HandlerResult:
        if command.command in COMMANDS_AFTER_TURNS and (reason := self._pipelines.turns_wait()):
            # Its change would wait for them, and all later changes of the partition, of other users too, for it.
            raise Rejected("unavailable", reason)
        command = command.sent(moment_of(record.timestamp_ms))
        turns_before: int | None = None
        if command.command == FORGET_COMMAND and self._turns_log is not None:
            # Hidden turns included; unavailable while some are hidden.
            turns_before = await self._turns_log.end_with_transactions(record.partition)
            # The clocks of producers differ: a turn of before may have a later time than the command.
            at_ms = max(record.timestamp_ms, round(self._clock.now().timestamp() * 1000))
            command = command.after(ForgottenBefore(offset=turns_before, at_ms=at_ms))
        result = await self._dispatch_at(record.partition).handle(command, record.offset)
        writes = self._stores.command_writes()
        self._meters.usage.corrected(sum(result.corrections.values()))
        self._usage.corrected(record, command.scope.boundary, result.corrections)
        if result.job is not None:
            job = result.job.model_copy(update={"unknown_arguments": unknown_arguments(command)})
            return HandlerResult(None, [_forward(record, self._topics.jobs, job)], writes)
        if result.change is None:
            if command.command in DECLARING_COMMANDS:
                # Executed before it is stored: after a crash in between it is repeated, before any later command.
                await await_all(writes)
                await self._store(issued.with_answer(_record_id(record), result.result), command, record)
                writes = []
            return HandlerResult(_answer(command, result.result), pending_writes=writes)
        is_user_forgotten = (result.change.action, result.change.whole) == ("forget", "user")
        if command.command in REVOKING_COMMANDS or is_user_forgotten:
            # Not earlier: turns may enter the mode until it is revoked.
            turns_before = None
            if self._turns_log is not None:
                end = partial(self._turns_log.end, record.partition)
                turns_before = await until_available(end, "kafka", self._meters, at_most_s=LOG_TIMEOUT_S)
        noted = {"turns_before": turns_before, "unknown_arguments": unknown_arguments(command)}
        change = result.change.model_copy(update=noted)
        if (change.action, command.command) == ("forget", FORGET_COMMAND):
            place = RecordPlace(topic=record.topic, partition=record.partition, offset=record.offset)
            asked = Asked(place=place, timestamp_ms=record.timestamp_ms)
            change = change.model_copy(update={"asked": asked})
        # A redelivered command is not executed again once its change is stored, so what it wrote is durable before.
        await await_all(writes)
        if is_user_forgotten:
            self._usage.forget(record.partition, command.scope.boundary)
            issued = issued.without_forgotten(record.offset, record.timestamp_ms)
        # Before it is forwarded: later turns must not count as earlier ones.
        await self._store(issued.with_change(_record_id(record), change), command, record)
        return HandlerResult(None, self._forward_change(record, change))

    def _rating_out(self, command: Command, rating: Rating | None, record: Record) -> list[Outgoing]:
        if rating is None:
            return []
        self._meters.usage.rated(rating)
        self._usage.rated(record, command.scope.boundary, rating)
        value = rating.model_dump_json(by_alias=True).encode()
        return [Outgoing(self._topics.contexts, command.scope.boundary.encode(), value)]

    def _forward_change(self, record: Record, change: Change) -> list[Outgoing]:
        """Return the pages of a change; the last has the headers of the command, and is answered."""
        *pages, last = change.pages()
        silent = [event_out(self._topics.changes, change.scope.boundary, page) for page in pages]
        return [*silent, _forward(record, self._topics.changes, last)]

    async def _store(self, issued: IssuedCommands, command: Command, record: Record) -> None:
        self._issued.put(record.partition, command.scope.boundary, issued)
        await await_all(self._issued.pending_writes())


def _answer(command: Command, result: ResultBody) -> SuccessReply:
    return SuccessReply(result, warn_of_unknown(unknown_arguments(command)))


def _record_id(record: Record) -> str:
    """Return a record's identity, unique also across a recreated topic."""
    return f"{record.offset}@{record.timestamp_ms}"


def _forward(record: Record, topic: str, message: Change | Job) -> Outgoing:
    key = message.scope.boundary.encode()
    return forward(record, topic, key, message.model_dump_json(by_alias=True).encode())
