"""Requests that are answered from what is there: retrieval, which may wait for the asker's own writes, and commands."""

from agents.assemble import Assemble
from agents.govern import Govern
from agents.retrieve import Retrieve
from agents.rules.placement import forwarded
from schemas.assemble import AssembleRequest
from schemas.commands import Command
from schemas.records import Record
from schemas.replies import Answer, Warned
from schemas.retrieval import RetrieveRequest
from streams.flow.requests import Asked, Handled
from streams.flow.surroundings import Surroundings

LONGEST_WAIT_SECONDS = 5.0
"""How long `read_after` is waited for without a deadline (CONTRACT §5)."""

TIME_TO_ANSWER_SECONDS = 0.25
"""What is kept of the time until a deadline, so that the answer still arrives before it."""


class AnswerRetrieve:
    """Answers `retrieve.v1` over the memories of this worker."""

    def __init__(self, retrieve: Retrieve, around: Surroundings) -> None:
        self._retrieve = retrieve
        self._around = around

    async def __call__(self, request: RetrieveRequest, record: Record, asked: Asked) -> Handled:
        """Wait for what the asker has written, then look."""
        with self._around.meters.retrieve_seconds.time():
            late = await not_caught_up(self._around, request.read_after, record.partition, asked)
            result, warnings = await self._retrieve.answer(request, record.partition)
        self._around.meters.usage.retrieved(result.strategy)
        return Handled(Answer(result, (*late, *(Warned(code, message) for code, message in warnings))))


class AnswerAssemble:
    """Answers `assemble.v1`: the same waiting, then a context that fits."""

    def __init__(self, assemble: Assemble, around: Surroundings) -> None:
        self._assemble = assemble
        self._around = around

    async def __call__(self, request: AssembleRequest, record: Record, asked: Asked) -> Handled:
        """Wait for what the asker has written, then put the context together."""
        late = await not_caught_up(self._around, request.read_after, record.partition, asked)
        result, warnings = await self._assemble.answer(request, record.partition)
        return Handled(Answer(result, (*late, *(Warned(code, message) for code, message in warnings))))


class AnswerAsked:
    """Answers either kind of request on the retrieve topic."""

    def __init__(self, retrieve: AnswerRetrieve, assemble: AnswerAssemble) -> None:
        self._retrieve = retrieve
        self._assemble = assemble

    async def __call__(self, request: RetrieveRequest | AssembleRequest, record: Record, asked: Asked) -> Handled:
        """Let the one whose kind it is answer."""
        if isinstance(request, AssembleRequest):
            return await self._assemble(request, record, asked)
        return await self._retrieve(request, record, asked)


class AnswerCommand:
    """Answers `command.v1`; what changes memories, and jobs, are answered where they are done."""

    def __init__(self, govern: Govern, around: Surroundings) -> None:
        self._govern = govern
        self._around = around

    async def __call__(self, command: Command, record: Record, _asked: Asked) -> Handled:
        """Carry the command out, or have it carried out."""
        turns_before = await self._turns_before(command, record.partition)
        governed = await self._govern.command(command, record.partition, record.offset)
        around = self._around
        safe = [*around.modes.unwritten(), *around.intentions.unwritten(), *around.categories.unwritten()]
        if governed.corrects:
            self._around.meters.usage.corrected()
        key = command.scope.boundary.encode()
        if governed.job is not None:
            value = governed.job.model_dump_json(by_alias=True).encode()
            return Handled(None, [forwarded(record, self._around.topics.jobs, key, value)], safe)
        if governed.change is None:
            return Handled(Answer(governed.result), safe=safe)
        change = governed.change.model_copy(update={"turns_before": turns_before})
        value = change.model_dump_json(by_alias=True).encode()
        return Handled(None, [forwarded(record, self._around.topics.changes, key, value)], safe)

    async def _turns_before(self, command: Command, partition: int) -> int | None:
        """Where the turns end as the command comes, for one that is about all that was said before it."""
        log = self._around.turns_log
        return None if log is None or command.command != "forget" else await log.end(partition)


async def not_caught_up(
    around: Surroundings, read_after: int | None, partition: int, asked: Asked
) -> tuple[Warned, ...]:
    """Wait until what the asker has written is applied; a warning where it is not in time."""
    if read_after is None:
        return ()
    within = LONGEST_WAIT_SECONDS
    if asked.deadline_ms is not None:
        left = asked.deadline_ms / 1000 - around.clock.now().timestamp()
        within = max(0.0, min(within, left - TIME_TO_ANSWER_SECONDS))
    if await around.progress.reached(partition, read_after, within):
        return ()
    return (Warned("not_caught_up", f"offset {read_after} of partition {partition} is not applied yet"),)
