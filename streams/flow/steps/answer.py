"""Requests that are answered from what is there, and may wait for the asker's own writes: hits, and contexts."""

from agents.context.assemble import Assemble
from agents.retrieval.retrieve import Retrieve
from schemas.assemble import AssembleRequest
from schemas.records import Record
from schemas.replies import SuccessReply, Warned
from schemas.retrieval import RetrieveRequest
from streams.flow.requests.pipeline import HandlerResult, ReplyOptions
from streams.flow.worker_context import WorkerContext

MAX_READ_AFTER_WAIT_S = 5.0
"""How long `read_after` is waited for without a deadline (CONTRACT §5)."""

REPLY_MARGIN_S = 0.25
"""What is kept of the time until a deadline, so that the answer still arrives before it."""


class AnswerRetrieve:
    """Answers `retrieve.v1` over the memories of this worker."""

    def __init__(self, retrieve: Retrieve, ctx: WorkerContext) -> None:
        self._retrieve = retrieve
        self._ctx = ctx

    async def __call__(self, request: RetrieveRequest, record: Record, asked: ReplyOptions) -> HandlerResult:
        """Wait for what the asker has written, then look."""
        with self._ctx.meters.retrieve_seconds.time():
            late = await wait_for_own_writes(self._ctx, request.read_after, record.partition, asked)
            result, warnings = await self._retrieve.answer(request, record.partition)
        self._ctx.meters.usage.retrieved(result.strategy)
        return HandlerResult(SuccessReply(result, (*late, *(Warned(code, message) for code, message in warnings))))


class AnswerAssemble:
    """Answers `assemble.v1`: the same waiting, then a context that fits."""

    def __init__(self, assemble: Assemble, ctx: WorkerContext) -> None:
        self._assemble = assemble
        self._ctx = ctx

    async def __call__(self, request: AssembleRequest, record: Record, asked: ReplyOptions) -> HandlerResult:
        """Wait for what the asker has written, then put the context together."""
        late = await wait_for_own_writes(self._ctx, request.read_after, record.partition, asked)
        result, warnings = await self._assemble.answer(request, record.partition)
        return HandlerResult(SuccessReply(result, (*late, *(Warned(code, message) for code, message in warnings))))


class AnswerQuery:
    """Answers either kind of request on the retrieve topic."""

    def __init__(self, retrieve: AnswerRetrieve, assemble: AnswerAssemble) -> None:
        self._retrieve = retrieve
        self._assemble = assemble

    async def __call__(
        self, request: RetrieveRequest | AssembleRequest, record: Record, asked: ReplyOptions
    ) -> HandlerResult:
        """Let the one whose kind it is answer."""
        if isinstance(request, AssembleRequest):
            return await self._assemble(request, record, asked)
        return await self._retrieve(request, record, asked)


async def wait_for_own_writes(
    ctx: WorkerContext, read_after: int | None, partition: int, asked: ReplyOptions
) -> tuple[Warned, ...]:
    """Wait until what the asker has written is applied; a warning where it is not in time."""
    if read_after is None:
        return ()
    within = MAX_READ_AFTER_WAIT_S
    if asked.deadline_ms is not None:
        left = asked.deadline_ms / 1000 - ctx.clock.now().timestamp()
        within = max(0.0, min(within, left - REPLY_MARGIN_S))
    if await ctx.progress.reached(partition, read_after, within):
        return ()
    return (Warned("not_caught_up", f"offset {read_after} of partition {partition} is not applied yet"),)
