"""The keeper's topics: news of a vector counts if this run has written it, or it is looked for and found."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.internal.events import Embedded, Remembered
from schemas.state.memories import Memory
from streams.flow.steps.step import CommittingStep
from tests.harnesses.remember import RememberSteps
from tests.harnesses.worker import HERE, TOPICS, arriving, change, run


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RememberSteps]:
    home = RememberSteps(tmp_path)
    yield home
    home.words.close()


class Looked:
    """Answers whether a vector is in the index, and counts the questions."""

    def __init__(self, *, is_there: bool) -> None:
        self.is_there = is_there
        self.asked: list[str] = []

    async def __call__(self, event: Embedded) -> bool:
        """Note the memory, and answer."""
        self.asked.append(event.memory_id)
        return self.is_there


async def news(home: RememberSteps, memory: Memory, **fields: Any) -> Embedded:
    """What the indexer says when it has written a memory's vector."""
    [said] = await home.embed.write([await home.embed.encode(Remembered(memory=memory), HERE)])
    return said.model_copy(update=fields)


async def hear(home: RememberSteps, looked: Looked, *events: Embedded) -> None:
    """Have the keeper read news of vectors."""
    step = CommittingStep(home.events_step(looked), home.ctx.commit)
    await run(step, *(arriving(event, TOPICS.embedded, offset) for offset, event in enumerate(events)))


async def test_a_vector_of_this_run_is_not_looked_for(home: RememberSteps) -> None:
    memory, looked = home.tell("violin", 0, mode="code"), Looked(is_there=False)
    await hear(home, looked, await news(home, memory, run=home.ctx.worker_run_id))
    assert (home.kept(memory).embedding.status, looked.asked, home.remembered()) == ("ready", [], [])


@pytest.mark.parametrize("another", ["another run", None])
async def test_a_vector_of_another_run_that_is_there_makes_its_memory_ready(
    home: RememberSteps, another: str | None
) -> None:
    memory, looked = home.tell("violin", 0, mode="code"), Looked(is_there=True)
    await hear(home, looked, await news(home, memory, run=another))
    assert (home.kept(memory).embedding.status, looked.asked) == ("ready", [memory.memory_id])
    assert home.remembered() == []


@pytest.mark.parametrize("another", ["another run", None])
async def test_a_vector_of_another_run_that_is_not_there_is_made_again(
    home: RememberSteps, another: str | None
) -> None:
    memory = home.tell("violin", 0, mode="code")
    await hear(home, Looked(is_there=False), await news(home, memory, run=another))
    assert home.kept(memory).embedding.status == "pending"
    assert home.remembered() == [home.kept(memory)]


async def test_report_of_another_run_that_changes_nothing_is_believed(home: RememberSteps) -> None:
    gone, moved, edited, failed = [home.tell(text, offset, mode="code") for offset, text in enumerate("abcd")]
    events = [await news(home, one) for one in (gone, moved, edited, failed)]
    events[3] = events[3].model_copy(update={"status": "failed", "error": "a reason"})
    for made in (change("forget", memory_id=gone.memory_id), change("move", memory_id=moved.memory_id, to="journal")):
        await home.make(made)
    home.tell("e", 4, mode="code", turn_id="c")
    home.publisher.sent.clear()
    looked = Looked(is_there=False)
    await hear(home, looked, *events)
    assert looked.asked == []
    assert [one.memory_id for one in home.forgotten()] == [gone.memory_id]
    assert [one.text for one in home.remembered()] == ["b", "e"]
    assert home.kept(failed).embedding.status == "failed"
