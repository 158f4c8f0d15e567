"""The keeper of categories on the topic of what was found in turns; all is written before it is acknowledged."""

from collections.abc import Awaitable, Sequence

from agents.categories.categorize import Categorize
from schemas.events import Learned
from schemas.records import Record
from streams.flow.steps.step import Internal
from streams.flow.support.awaiting import await_all
from streams.flow.worker_context import WorkerContext


class CategorizeLearned(Internal):
    """What was found in turns, one after another: summaries lose what rests on nothing any more."""

    window = 256
    pause_s = 0.0

    def __init__(self, categorize: Categorize, ctx: WorkerContext) -> None:
        super().__init__({"learned.v1": Learned}, ctx)
        self._categorize = categorize

    async def begin(self, record: Record) -> Awaitable[None]:
        """Apply one event."""
        event: Learned | None = await self.read(record)
        if event is not None:
            self._categorize.learned(event, record.partition)
        # Taken before anybody else may write: what is awaited here are the writes of this event.
        return await_all(self._ctx.categories.pending_writes())

    async def settle(self, finished: Sequence[None]) -> None:
        """Nothing is left to do: the table is written."""
