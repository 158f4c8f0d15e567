"""A map that comes back with a part of its disk gone: no memory is ready whose vector is not there."""

from copy import deepcopy
from pathlib import Path

import pytest

from tests.worlds.in_memory_pipeline import InMemoryMap, Lost

TURNS = 5
NEVER_LOST: list[Lost] = []
LOST: list[list[Lost]] = [NEVER_LOST, ["vectors"], ["words"], ["vectors", "words"]]


async def finished(the_map: InMemoryMap, embedded: int) -> None:
    """Run until so many texts are embedded and all is done, and see that all is there: records, vectors, words."""
    async with the_map.running():
        await the_map.until(lambda: len(the_map.embedder.passages) >= embedded)
        await the_map.topics.settled()
        assert {one.embedding.status for one in the_map.memories.all()} == {"ready"}
        ids = [one.memory_id for one in the_map.memories.all()]
        assert len(ids) == TURNS
        assert await the_map.vectors_in("general", the_map.space("general", "general").fingerprint, ids) == set(ids)
        found = await the_map.retrieve("crate hall")
        assert (found["result"]["strategy"], len(found["result"]["hits"])) == ("hybrid", TURNS)
        assert found.get("warnings", []) == []
    assert len(the_map.embedder.passages) == embedded


async def told(directory: Path) -> InMemoryMap:
    """A map that has stored turns, and stopped before their vectors could be written."""
    the_map = InMemoryMap(directory)
    the_map.index.down()
    async with the_map.running():
        for number in range(TURNS):
            await the_map.remember(f"Crate {number} is in the hall.")
        await the_map.topics.until(lambda: not the_map.topics.unacknowledged(the_map.names.turns))
    the_map.index.up()
    return the_map


async def embedded(directory: Path) -> InMemoryMap:
    """A map that has done all there is to do."""
    the_map = await told(directory)
    await finished(the_map, TURNS)
    return the_map


async def with_news_unread(directory: Path) -> InMemoryMap:
    """A map whose indexer has written vectors and told of them, and whose keeper has not read that."""
    before = await told(directory / "told")
    the_map = before.copied(directory / "unread")
    await finished(the_map, TURNS)
    the_map.topics.forget_acknowledged(TURNS, [the_map.names.embedded])
    the_map.memories = deepcopy(before.memories)
    the_map.lose("words")
    assert {one.embedding.status for one in the_map.memories.all()} == {"pending"}
    return the_map


@pytest.mark.parametrize("lost", LOST, ids="-".join)
async def test_a_part_of_the_disk_that_is_lost_is_made_again(tmp_path: Path, lost: list[Lost]) -> None:
    the_map = (await embedded(tmp_path / "before")).copied(tmp_path / "lost")
    the_map.lose(*lost)
    await finished(the_map, TURNS if "vectors" in lost else 0)


@pytest.mark.parametrize("lost", LOST, ids="-".join)
async def test_news_of_a_vector_that_was_lost_before_it_was_read_makes_no_memory_ready(
    tmp_path: Path, lost: list[Lost]
) -> None:
    the_map = (await with_news_unread(tmp_path)).copied(tmp_path / "lost")
    the_map.lose(*lost)
    await finished(the_map, TURNS if "vectors" in lost else 0)


async def test_news_that_is_unread_waits_for_the_vector_index(tmp_path: Path) -> None:
    the_map = await with_news_unread(tmp_path)
    the_map.index.down()
    async with the_map.running():
        await the_map.waiting_for("vector index")
        assert {one.embedding.status for one in the_map.memories.all()} == {"pending"}
        the_map.index.up()
        await the_map.topics.settled()
        assert {one.embedding.status for one in the_map.memories.all()} == {"ready"}
