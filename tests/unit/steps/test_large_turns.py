"""A large turn holds up nothing: its text is read beside the event loop, and few memories are written at a stretch."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from streams.flow.steps.remember import PLACES_PER_SLICE
from tests.builders.turns import record, turn_fields
from tests.harnesses.worker import WorkerHarness, run_step


def page(number: int) -> str:
    """Return a text of 28,000 characters, unlike those of other numbers."""
    return " ".join(f"Shelf {shelf} of room {number} has the letters of the {shelf}th year." for shelf in range(450))


RESOURCES = [{"uri": f"file:///{number}", "text": page(number)} for number in range(5)]


class LargeTurns(WorkerHarness):
    """The step of turns, and what it has written by each pass of the event loop."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.turns = self.turns_step()

    def written(self) -> int:
        return sum(1 for _ in self.memories.all())

    async def passes(self, content: dict[str, object]) -> list[int]:
        """Store a turn; return the number of records at each pass of the event loop meanwhile."""
        storing = asyncio.create_task(run_step(self.turns, record(content, offset=0)))
        counts = [self.written()]
        while not storing.done():
            await asyncio.sleep(0)
            counts.append(self.written())
        await storing
        return counts


@pytest.fixture
def large(tmp_path: Path) -> LargeTurns:
    return LargeTurns(tmp_path)


async def test_items_are_written_in_slices(large: LargeTurns) -> None:
    counts = await large.passes(turn_fields("Look at this archive.", turn_id="t", resources=RESOURCES))
    assert counts[-1] > 100
    steps = [after - before for before, after in pairwise(counts)]
    assert max(steps) <= PLACES_PER_SLICE + 1


async def test_text_is_read_beside_the_event_loop(large: LargeTurns) -> None:
    counts = await large.passes(turn_fields("Look at this archive.", turn_id="t", resources=RESOURCES))
    # Some passes begin the turn. To read its 140 kB takes longer than a hundred empty ones.
    assert counts.count(0) > 100


async def test_short_turn_is_stored_in_one_pass(large: LargeTurns) -> None:
    counts = await large.passes(turn_fields("My locker code is 4471. I prefer Vim over Emacs.", turn_id="t"))
    assert set(counts) == {0, 3}
