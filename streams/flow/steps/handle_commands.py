"""Commands: answered from what is there, or passed on as a change or a job to where they are done and answered.

What a command asks to be changed is noted before it is passed on. One that is delivered again, as the worker was killed
before it was acknowledged, asks for the very same: the turns that were said since are none of its business. Nor is what
commands after it have made of what it declared: it is answered as before.
"""

from functools import partial

from pydantic import BaseModel

from agents.commands.handle_commands import HandleCommands
from schemas.changes import IssuedCommands
from schemas.commands import Command
from schemas.records import Outgoing, Record
from schemas.replies import SuccessReply
from streams.flow.requests.pipeline import HandlerResult, ReplyOptions
from streams.flow.support.awaiting import await_all
from streams.flow.support.backoff import until_available
from streams.flow.worker_context import WorkerContext
from streams.wire.relocation import forward

FORGET_COMMAND = "forget"
"""The command that is about what was said when it comes, and about nothing that is said later."""

REVOKING_COMMANDS = frozenset({"delete_mode", "rename_mode"})
"""Commands about all that is in a mode when they take it back. Nothing comes into it afterwards, unless it is declared
anew, and that is none of their business."""

LOG_TIMEOUT_S = 30.0
"""How long the log of turns is waited for once a mode is taken back. Given up, the same command may be given again."""

DECLARING_COMMANDS = frozenset({"declare_mode", "set_default_mode"})
"""Commands that later ones may take back: carried out twice, they would undo these."""


class AnswerCommand:
    """Answers `command.v1`; what changes memories, and jobs, are answered where they are done."""

    def __init__(self, govern: HandleCommands, ctx: WorkerContext) -> None:
        self._govern = govern
        self._ctx = ctx

    async def __call__(self, command: Command, record: Record, _asked: ReplyOptions) -> HandlerResult:
        """Carry the command out, or have it carried out."""
        ctx, key = self._ctx, command.scope.boundary.encode()
        issued = ctx.issued.get(record.partition, command.scope.boundary)
        if (before := issued.changes.get(_place(record))) is not None:
            return HandlerResult(None, [_passed_on(record, ctx.topics.changes, key, before)])
        if (told := issued.answered.get(_place(record))) is not None:
            return HandlerResult(SuccessReply(told))
        turns_before = await self._turns_end(record.partition) if command.command == FORGET_COMMAND else None
        governed = await self._govern.handle(command, record.partition, record.offset)
        safe = [*ctx.modes.pending_writes(), *ctx.intentions.pending_writes(), *ctx.categories.pending_writes()]
        if governed.is_correction:
            ctx.meters.usage.corrected()
        if governed.job is not None:
            return HandlerResult(None, [_passed_on(record, ctx.topics.jobs, key, governed.job)], safe)
        if governed.change is None:
            if command.command in DECLARING_COMMANDS:
                # Carried out first: killed in between, it is done again, and nothing has followed it.
                await await_all(safe)
                await self._note(issued.with_answer(_place(record), governed.result), command, record)
                safe = []
            return HandlerResult(SuccessReply(governed.result), pending_writes=safe)
        if command.command in REVOKING_COMMANDS:
            # Not before: while the log is asked where it ends, turns may come into the mode.
            end = partial(self._turns_end, record.partition)
            turns_before = await until_available(end, "kafka", ctx.meters, at_most_s=LOG_TIMEOUT_S)
        change = governed.change.model_copy(update={"turns_before": turns_before})
        # Before anybody can do it: a turn that is said next must not count as before.
        await self._note(issued.with_change(_place(record), change), command, record)
        return HandlerResult(None, [_passed_on(record, ctx.topics.changes, key, change)], safe)

    async def _note(self, issued: IssuedCommands, command: Command, record: Record) -> None:
        kept = self._ctx.issued
        kept.put(record.partition, command.scope.boundary, issued)
        await await_all(kept.pending_writes())

    async def _turns_end(self, partition: int) -> int | None:
        """Where the turns end that are written now. Raises Unavailable."""
        log = self._ctx.turns_log
        return None if log is None else await log.end(partition)


def _place(record: Record) -> str:
    """Which record this is, also where a topic was begun anew."""
    return f"{record.offset}@{record.timestamp_ms}"


def _passed_on(record: Record, topic: str, key: bytes, what: BaseModel) -> Outgoing:
    return forward(record, topic, key, what.model_dump_json(by_alias=True).encode())
