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
from streams.flow.requests.pipeline import Asked, Handled
from streams.flow.support.awaiting import all_of
from streams.flow.support.backoff import until_available
from streams.flow.worker_context import Surroundings
from streams.wire.relocation import forward

FORGETS = "forget"
"""The command that is about what was said when it comes, and about nothing that is said later."""

TAKE_BACK = frozenset({"delete_mode", "rename_mode"})
"""Commands about all that is in a mode when they take it back. Nothing comes into it afterwards, unless it is declared
anew, and that is none of their business."""

LOG_S = 30.0
"""How long the log of turns is waited for once a mode is taken back. Given up, the same command may be given again."""

DECLARES = frozenset({"declare_mode", "set_default_mode"})
"""Commands that later ones may take back: carried out twice, they would undo these."""


class AnswerCommand:
    """Answers `command.v1`; what changes memories, and jobs, are answered where they are done."""

    def __init__(self, govern: HandleCommands, around: Surroundings) -> None:
        self._govern = govern
        self._around = around

    async def __call__(self, command: Command, record: Record, _asked: Asked) -> Handled:
        """Carry the command out, or have it carried out."""
        around, key = self._around, command.scope.boundary.encode()
        issued = around.issued.get(record.partition, command.scope.boundary)
        if (before := issued.changes.get(_place(record))) is not None:
            return Handled(None, [_passed_on(record, around.topics.changes, key, before)])
        if (told := issued.answered.get(_place(record))) is not None:
            return Handled(SuccessReply(told))
        turns_before = await self._turns_end(record.partition) if command.command == FORGETS else None
        governed = await self._govern.command(command, record.partition, record.offset)
        safe = [*around.modes.unwritten(), *around.intentions.unwritten(), *around.categories.unwritten()]
        if governed.corrects:
            around.meters.usage.corrected()
        if governed.job is not None:
            return Handled(None, [_passed_on(record, around.topics.jobs, key, governed.job)], safe)
        if governed.change is None:
            if command.command in DECLARES:
                # Carried out first: killed in between, it is done again, and nothing has followed it.
                await all_of(safe)
                await self._note(issued.having_answered(_place(record), governed.result), command, record)
                safe = []
            return Handled(SuccessReply(governed.result), safe=safe)
        if command.command in TAKE_BACK:
            # Not before: while the log is asked where it ends, turns may come into the mode.
            end = partial(self._turns_end, record.partition)
            turns_before = await until_available(end, "kafka", around.meters, at_most_s=LOG_S)
        change = governed.change.model_copy(update={"turns_before": turns_before})
        # Before anybody can do it: a turn that is said next must not count as before.
        await self._note(issued.having(_place(record), change), command, record)
        return Handled(None, [_passed_on(record, around.topics.changes, key, change)], safe)

    async def _note(self, issued: IssuedCommands, command: Command, record: Record) -> None:
        kept = self._around.issued
        kept.put(record.partition, command.scope.boundary, issued)
        await all_of(kept.unwritten())

    async def _turns_end(self, partition: int) -> int | None:
        """Where the turns end that are written now. Raises Unavailable."""
        log = self._around.turns_log
        return None if log is None else await log.end(partition)


def _place(record: Record) -> str:
    """Which record this is, also where a topic was begun anew."""
    return f"{record.offset}@{record.timestamp_ms}"


def _passed_on(record: Record, topic: str, key: bytes, what: BaseModel) -> Outgoing:
    return forward(record, topic, key, what.model_dump_json(by_alias=True).encode())
