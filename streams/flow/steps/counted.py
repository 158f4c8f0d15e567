"""A step whose records are noted while their code runs, so that one that kills the process is refused in the end."""

from collections.abc import Awaitable, Sequence
from typing import Any

from schemas.messages.records import Record
from streams.flow.steps.step import Step
from streams.flow.support.death_counts import DeathCounts, noted, record_name


class CountedStep:
    """Runs another step. What records share, in `settle`, counts for none of them."""

    def __init__(self, step: Step, consumer: str, deaths: DeathCounts, *, counts_kills: bool = True) -> None:
        """`consumer` names the step: a record that two of them read may kill in one alone.

        Without `counts_kills` only what its code raises counts: for steps that take long and go on where they were,
        where kills from outside could count for one record.
        """
        self._step = step
        self._consumer = consumer
        self._deaths = deaths
        self._counts_kills = counts_kills
        self.window = step.window
        self.pause_s = step.pause_s
        self.fair_share = step.fair_share

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Begin with a record, and note it."""
        name = record_name(self._consumer, record)
        begun = await noted(self._step.begin(record), name, self._deaths, counts_kills=self._counts_kills)
        return self._finish(begun, name)

    async def settle(self, finished: Sequence[Any]) -> None:
        """Settle the step."""
        await self._step.settle(finished)

    async def _finish(self, finishing: Awaitable[Any], name: bytes) -> Any:
        result = await noted(finishing, name, self._deaths, counts_kills=self._counts_kills)
        self._deaths.finish(name)
        return result
