"""What happens when partitions arrive."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agents.embed import Embed
from agents.ports import Embedder
from agents.remember import Remember
from schemas.events import Embedded
from schemas.memories import Memory
from schemas.modes import VectorSpace
from streams.adapters.words.sqlite_words import SqliteWords
from streams.flow.arrival import Arrival
from streams.flow.progress import Progress
from streams.flow.surroundings import Surroundings
from streams.topics import named
from streams.watching.metrics import Meters
from tests.fake_clock import FakeClock
from tests.fake_embedder import FakeEmbedder
from tests.fake_index import FakeIndex
from tests.fake_memories import FakeMemories
from tests.fake_publisher import FakePublisher
from tests.made_turns import PARTITIONS, record, turn

HERE = record().partition
TOPICS = named("memory.")


class Home:
    """A worker's parts, with what the group has committed."""

    def __init__(self, directory: Path) -> None:
        self.memories = FakeMemories()
        self.words = SqliteWords(directory)
        self.index = FakeIndex()
        self.embedder = FakeEmbedder()
        self.publisher = FakePublisher()
        self.progress = Progress()
        self.committed: dict[tuple[str, int], int] = {}
        self.around = Surroundings(
            topics=TOPICS,
            partitions=PARTITIONS,
            memories=self.memories,
            words=self.words,
            progress=self.progress,
            publisher=self.publisher,
            clock=FakeClock(),
            meters=Meters(),
        )
        self.arrival = Arrival(self.memories, self.index, self.space, self._committed, self.around)
        self.remember = Remember(self.memories, self.words)
        self.embed = Embed(self.model, self.index, FakeClock())

    async def _committed(self) -> Mapping[tuple[str, int], int]:
        return self.committed

    def space(self, mode: str) -> VectorSpace:
        """The space of a mode's vectors."""
        return VectorSpace(mode, self.embedder.fingerprint)

    def model(self, mode: str) -> tuple[Embedder, VectorSpace]:
        """The embedder of a mode."""
        return self.embedder, self.space(mode)

    def tell(self, text: str, offset: int) -> Memory:
        """Remember a turn, applied up to its offset."""
        accepted = self.remember.turn(turn(text, turn_id=text), record(offset=offset))
        self.words.set_applied(HERE, TOPICS.turns, offset + 1)
        assert accepted.event is not None
        return accepted.event.memory

    async def vector(self, memory: Memory) -> None:
        """Embed a memory, and tell the keeper."""
        [said] = await self.embed.write([await self.embed.encode(memory, HERE)])
        self.remember.embedded(said, HERE)

    def finds(self, term: str) -> int:
        """How many memories have this word."""
        return len(self.words.postings(HERE, "u1", [term])[0].numbers)

    def asked(self) -> list[Embedded]:
        """The memories whose vectors were asked for again."""
        return [Embedded.model_validate_json(out.value or b"") for out in self.publisher.to(TOPICS.embedded)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.words.close()


async def test_a_new_worker_without_memories_begins_at_zero(home: Home) -> None:
    await home.arrival.prepare({0, 1})
    assert (home.progress.next_offset(0), home.progress.next_offset(2)) == (0, None)
    assert home.words.roster(1, "u1").documents == 0


async def test_a_word_index_that_is_up_to_date_stays_as_it_is(home: Home) -> None:
    home.words.open(HERE)
    home.tell("violin", 4)
    home.words.commit(HERE)
    home.memories = FakeMemories()
    home.committed = {(TOPICS.turns, HERE): 5}
    await home.arrival.prepare({HERE})
    assert home.finds("violin") == 1, "made again it would be empty"
    assert home.progress.next_offset(HERE) == 5


async def test_a_word_index_that_is_ahead_of_what_is_committed_stays_as_it_is(home: Home) -> None:
    home.words.open(HERE)
    home.tell("violin", 4)
    home.words.commit(HERE)
    home.committed = {(TOPICS.turns, HERE): 2}
    await home.arrival.prepare({HERE})
    assert (home.finds("violin"), home.progress.next_offset(HERE)) == (1, 5)


@pytest.mark.parametrize("topic", [TOPICS.turns, TOPICS.embedded])
async def test_a_word_index_that_is_behind_is_made_again_from_the_table(home: Home, topic: str) -> None:
    home.words.open(HERE)
    home.tell("violin", 4)
    gone = home.tell("cello", 5)
    home.words.commit(HERE)
    home.words.remove(HERE, gone.memory_id)
    home.words.commit(HERE)
    home.words.put(HERE, gone.model_copy(update={"text": "trumpet"}))
    home.words.commit(HERE)
    home.committed = {(TOPICS.turns, HERE): 6, (TOPICS.embedded, HERE): 0, (topic, HERE): 9}
    await home.arrival.prepare({HERE})
    assert (home.finds("violin"), home.finds("cello"), home.finds("trumpet")) == (1, 1, 0)
    assert home.words.applied(HERE)[topic] == 9


async def test_a_new_disk_gets_the_word_index_of_its_partitions_alone(home: Home) -> None:
    elsewhere = (HERE + 1) % PARTITIONS
    for partition in (HERE, elsewhere):
        home.words.open(partition)
    home.tell("violin", 4)
    for partition in (HERE, elsewhere):
        home.words.drop(partition)
    home.committed = {(TOPICS.turns, HERE): 5, (TOPICS.turns, elsewhere): 7}
    await home.arrival.prepare({HERE, elsewhere})
    assert home.finds("violin") == 1
    assert home.words.roster(elsewhere, "u1").documents == 0
    assert (home.progress.next_offset(HERE), home.progress.next_offset(elsewhere)) == (5, 7)


async def test_a_word_index_that_is_made_again_holds_nothing_that_the_table_does_not(home: Home) -> None:
    home.words.open(HERE)
    home.tell("violin", 4)
    home.words.put(HERE, home.tell("ghost", 5).model_copy(update={"memory_id": "not in the table", "text": "phantom"}))
    home.words.commit(HERE)
    home.committed = {(TOPICS.turns, HERE): 9}
    await home.arrival.prepare({HERE})
    assert (home.finds("violin"), home.finds("phantom")) == (1, 0)


async def test_a_table_may_hold_partitions_that_were_here_before(home: Home) -> None:
    home.words.open(HERE)
    home.tell("violin", 4)
    home.words.drop(HERE)
    elsewhere = (HERE + 1) % PARTITIONS
    home.committed = {(TOPICS.turns, elsewhere): 3}
    await home.arrival.prepare({elsewhere})
    assert home.words.roster(elsewhere, "u1").documents == 0


async def test_a_word_index_that_was_made_again_is_kept(home: Home, tmp_path: Path) -> None:
    home.words.open(HERE)
    home.tell("violin", 4)
    home.words.drop(HERE)
    home.committed = {(TOPICS.turns, HERE): 5}
    await home.arrival.prepare({HERE})
    home.words.open(HERE)
    assert (home.finds("violin"), home.words.applied(HERE)[TOPICS.turns]) == (1, 5)


async def test_where_every_vector_is_there_nothing_is_asked_for(home: Home) -> None:
    home.words.open(HERE)
    for offset, text in enumerate(["violin", "cello"]):
        await home.vector(home.tell(text, offset))
    home.tell("pending", 2)
    assert await home.arrival.reconcile({HERE}) == 0
    assert home.asked() == []


async def test_a_vector_that_is_missing_is_told_as_stale(home: Home) -> None:
    home.words.open(HERE)
    memories = [home.tell(text, offset) for offset, text in enumerate(["violin", "cello", "drum"])]
    for memory in memories:
        await home.vector(memory)
    await home.index.delete(home.space("general"), [memories[1].memory_id])
    assert await home.arrival.reconcile({HERE}) == 1
    [said] = home.asked()
    assert (said.memory_id, said.content_hash, said.status) == (
        memories[1].memory_id,
        memories[1].content_hash,
        "stale",
    )
    assert home.publisher.sent[0].key == b"u1"
    again = home.remember.embedded(said, HERE)
    assert again is not None, "the keeper asks for it"
    assert again.memory.memory_id == memories[1].memory_id


async def test_vectors_of_another_space_are_asked_for_anew(home: Home) -> None:
    home.words.open(HERE)
    memory = home.tell("violin", 0)
    await home.vector(memory)
    home.embedder = FakeEmbedder("another")
    assert await home.arrival.reconcile({HERE}) == 1
    [said] = home.asked()
    assert (said.memory_id, said.space) == (memory.memory_id, home.embedder.fingerprint.digest)


async def test_vectors_that_an_earlier_embedder_left_are_not_taken_for_those_that_the_records_name(home: Home) -> None:
    home.words.open(HERE)
    memory = home.tell("violin", 0)
    first = home.embedder
    await home.vector(memory)
    home.embedder = FakeEmbedder("another")
    await home.vector(memory)
    home.embedder = first
    assert await home.arrival.reconcile({HERE}) == 1
    assert home.asked()[0].space == first.fingerprint.digest


async def test_an_empty_vector_index_is_filled_again(home: Home) -> None:
    home.words.open(HERE)
    for offset in range(450):
        await home.vector(home.tell(f"turn {offset}", offset))
    home.index = FakeIndex()
    arrival = Arrival(home.memories, home.index, home.space, home._committed, home.around)
    assert await arrival.reconcile({HERE}) == 450
    assert len({said.memory_id for said in home.asked()}) == 450


async def test_a_partition_without_memories_needs_nothing(home: Home) -> None:
    home.words.open(HERE)
    assert await home.arrival.reconcile({HERE}) == 0
    assert await home.arrival.reconcile(()) == 0
