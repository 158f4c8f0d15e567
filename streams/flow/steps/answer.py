"""Requests that are answered from what is there, and may wait for the asker's own writes: hits, and contexts."""

from agents.context.assemble import Assemble
from agents.retrieval.retrieve import Retrieve
from schemas.assemble import AssembleRequest
from schemas.records import Record
from schemas.replies import SuccessReply, Warned
from schemas.retrieval import RetrieveRequest
from streams.flow.requests.pipeline import Asked, Handled
from streams.flow.worker_context import Surroundings

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
        return Handled(SuccessReply(result, (*late, *(Warned(code, message) for code, message in warnings))))


class AnswerAssemble:
    """Answers `assemble.v1`: the same waiting, then a context that fits."""

    def __init__(self, assemble: Assemble, around: Surroundings) -> None:
        self._assemble = assemble
        self._around = around

    async def __call__(self, request: AssembleRequest, record: Record, asked: Asked) -> Handled:
        """Wait for what the asker has written, then put the context together."""
        late = await not_caught_up(self._around, request.read_after, record.partition, asked)
        result, warnings = await self._assemble.answer(request, record.partition)
        return Handled(SuccessReply(result, (*late, *(Warned(code, message) for code, message in warnings))))


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
