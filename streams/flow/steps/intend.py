"""The keeper of intentions on the topic of what was found in turns; all is written before it is acknowledged."""

from collections.abc import Awaitable, Sequence

from agents.intentions.intend import Intend
from schemas.events import Learned
from schemas.records import Record
from streams.flow.steps.step import Internal
from streams.flow.support.awaiting import await_all
from streams.flow.worker_context import WorkerContext


class IntendLearned(Internal):
    """What was found in turns into what their user is after, one after another."""

    window = 256
    pause_s = 0.0

    def __init__(self, intend: Intend, ctx: WorkerContext) -> None:
        super().__init__({"learned.v1": Learned}, ctx)
        self._intend = intend

    async def begin(self, record: Record) -> Awaitable[None]:
        """Apply one event."""
        event: Learned | None = await self.read(record)
        if event is not None:
            self._intend.learned(event, record.partition)
        # Taken before anybody else may write: what is awaited here are the writes of this event.
        return await_all(self._ctx.intentions.pending_writes())

    async def settle(self, finished: Sequence[None]) -> None:
        """Nothing is left to do: the table is written."""
