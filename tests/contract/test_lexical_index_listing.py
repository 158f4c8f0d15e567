"""What a lexical index counts and lists: memories by status, vectors by location, turns without a model's answer."""

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import Embedding, TurnUnderstanding, VectorLocation
from streams.flow.stores import LexicalStore
from tests.builders.memories import embedded_in, made

READY = embedded_in("space-1")


def test_counts_are_by_mode_and_status(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("a", 0, speaker="Ana")))
    words.put(0, LexicalDocument(made("b", 1, speaker="Ben")))
    words.put(0, LexicalDocument(made("c", 2, embedding=READY)))
    words.put(0, LexicalDocument(made("d", 3, mode="code", embedding=Embedding(status="failed"))))
    words.put(0, LexicalDocument(made("e", 4, user="ben")))
    assert words.counts(0, "ana") == {"general": {"pending": 2, "ready": 1}, "code": {"failed": 1}}
    assert words.counts(0, "nobody") == {}


def test_counts_are_those_of_the_given_projects(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("a", 0, project="p1")))
    words.put(0, LexicalDocument(made("b", 1, project="p2")))
    assert words.counts(0, "ana", ("p1", "p3")) == {"general": {"pending": 1}}
    assert words.counts(0, "ana", ()) == {}


def test_index_lists_stored_memories_until_removal(words: LexicalStore) -> None:
    memory = made("a", 0)
    assert not words.has(0, memory.memory_id)
    words.put(0, LexicalDocument(memory))
    assert words.has(0, memory.memory_id)
    words.remove(0, memory.memory_id)
    assert not words.has(0, memory.memory_id)


def test_memories_are_listed_by_status(words: LexicalStore) -> None:
    statuses = {0: Embedding(), 1: READY, 2: Embedding(status="failed"), 3: Embedding(status="stale")}
    memories = {number: made("a", number, embedding=embedding) for number, embedding in statuses.items()}
    for memory in memories.values():
        words.put(0, LexicalDocument(memory))
    other = made("a", 9, user="ben")
    words.put(0, LexicalDocument(other))
    assert set(words.with_status(0, ("pending", "stale"))) == {
        memories[0].memory_id,
        memories[3].memory_id,
        other.memory_id,
    }
    assert list(words.with_status(0, ["ready"])) == [memories[1].memory_id]


def test_numbers_of_a_status_are_those_of_one_boundary(words: LexicalStore) -> None:
    statuses = (Embedding(), READY, Embedding(status="failed"), Embedding(), READY)
    for number, embedding in enumerate(statuses):
        words.put(0, LexicalDocument(made("a", number, embedding=embedding)))
        words.put(0, LexicalDocument(made("a", number, user="ben")))
    ids = {number: words.memory_columns(0, "ana").id_of[number] for number in range(5)}
    assert list(ids.values()) == [made("a", number).memory_id for number in range(5)]
    assert words.numbers_with_status(0, "ana", "pending").tolist() == [0, 3]
    assert words.numbers_with_status(0, "ana", "ready").tolist() == [1, 4]
    assert words.numbers_with_status(0, "ana", "stale").tolist() == []
    assert words.numbers_with_status(0, "unknown", "ready").tolist() == []
    words.put(0, LexicalDocument(made("a", 3, embedding=READY)))
    words.remove(0, ids[0])
    assert words.numbers_with_status(0, "ana", "pending").tolist() == []
    assert words.numbers_with_status(0, "ana", "ready").tolist() == [1, 3, 4]


def test_vectors_are_counted_by_mode_and_space_over_all_boundaries(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("a", 0, embedding=READY, speaker="Ana")))
    words.put(0, LexicalDocument(made("b", 1, embedding=READY, speaker="Ben")))
    words.put(0, LexicalDocument(made("c", 2, user="ben", embedding=READY)))
    words.put(0, LexicalDocument(made("d", 3, embedding=embedded_in("space-2"))))
    words.put(0, LexicalDocument(made("e", 4, mode="code", embedding=embedded_in("space-1", "code"))))
    words.put(0, LexicalDocument(made("f", 5)))
    assert words.ready_places(0) == {
        VectorLocation(mode="general", space="space-1"): 3,
        VectorLocation(mode="general", space="space-2"): 1,
        VectorLocation(mode="code", space="space-1"): 1,
    }


def test_vectors_are_counted_at_their_current_location(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("a", 0, embedding=READY)))
    words.put(0, LexicalDocument(made("a", 0, mode="code", embedding=embedded_in("space-1", "code"))))
    assert words.ready_places(0) == {VectorLocation(mode="code", space="space-1"): 1}
    words.put(0, LexicalDocument(made("a", 0, mode="code", embedding=embedded_in("space-1", "code", "pending"))))
    assert words.ready_places(0) == {}
    words.put(0, LexicalDocument(made("b", 1, embedding=READY)))
    words.remove(0, made("b", 1).memory_id)
    assert words.ready_places(0) == {}


def test_memories_are_pending_until_understood_replaced_or_removed(words: LexicalStore) -> None:
    unread = TurnUnderstanding(status="pending", text_hash="hash")
    read, removed, waits = (made("a", number, reading=unread) for number in range(3))
    for memory in (read, removed, waits, made("a", 3), made("a", 4, user="ben", reading=unread)):
        words.put(0, LexicalDocument(memory))
    assert len(list(words.awaiting_understanding(0))) == 4
    words.put(0, LexicalDocument(read.model_copy(update={"reading": TurnUnderstanding(status="model")})))
    words.remove(0, removed.memory_id)
    assert set(words.awaiting_understanding(0)) == {waits.memory_id, made("a", 4, user="ben").memory_id}


def test_pending_memories_are_listed_during_writes(words: LexicalStore) -> None:
    memories = {
        memory.memory_id: memory
        for memory in (made("a", n, reading=TurnUnderstanding(status="pending")) for n in range(1200))
    }
    for memory in memories.values():
        words.put(0, LexicalDocument(memory))
    listed = []
    for memory_id in words.awaiting_understanding(0):
        listed.append(memory_id)
        words.put(
            0, LexicalDocument(memories[memory_id].model_copy(update={"reading": TurnUnderstanding(status="model")}))
        )
    assert sorted(listed) == sorted(memories)
    assert list(words.awaiting_understanding(0)) == []


def test_all_memories_of_a_status_are_listed_while_they_are_written(words: LexicalStore) -> None:
    memories = {memory.memory_id: memory for memory in (made("a", number) for number in range(1200))}
    for memory in memories.values():
        words.put(0, LexicalDocument(memory))
    listed = []
    for memory_id in words.with_status(0, ("pending",)):
        listed.append(memory_id)
        words.put(0, LexicalDocument(memories[memory_id].model_copy(update={"embedding": READY})))
    assert sorted(listed) == sorted(memories)
    assert list(words.with_status(0, ("pending",))) == []
