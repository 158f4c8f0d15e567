"""What a lexical index finds after memories were rewritten, changed, removed or never written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from agents.rules.cues.labels import label_memory
from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory
from schemas.state.modes import Visibility
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores import LexicalStore
from tests.builders.lexical_queries import found
from tests.builders.memories import embedded_in, made
from tests.properties import SEEDS, SHARED_FIXTURE, scaled

READY = embedded_in("space-1")


def test_replaced_text_is_no_longer_found(words: LexicalStore) -> None:
    old = made("The locker code is quagga seven.", speaker="Ana", entities=("Quagga",))
    words.put(0, LexicalDocument(old))
    words.put(0, LexicalDocument(old.model_copy(update={"text": "The key hangs behind the door.", "entities": ()})))
    assert found(words, "quagga locker code") == set()
    assert found(words, "key behind door") == {old.memory_id}
    assert len(words.entity_postings(0, "ana", ["Quagga"])[0].numbers) == 0
    assert words.memory_columns(0, "ana").documents == 1


def test_same_memory_again_changes_nothing(words: LexicalStore) -> None:
    memory = made("violin and bow")
    for _ in range(3):
        words.put(0, LexicalDocument(memory))
    [violin] = words.postings(0, "ana", ["violin"])
    assert violin.numbers.tolist() == [0]
    assert violin.counts.tolist() == [1]
    assert words.memory_columns(0, "ana").documents == 1


def test_changes_of_other_fields_are_visible(words: LexicalStore) -> None:
    memory = made("violin")
    words.put(0, LexicalDocument(memory))
    columns = words.memory_columns(0, "ana")
    assert not columns.embedded("space-1").any()
    words.put(
        0, LexicalDocument(memory.model_copy(update={"embedding": READY, "superseded_by": "x", "speaker": "Ben"}))
    )
    columns = words.memory_columns(0, "ana")
    assert columns.embedded("space-1").any()
    assert not columns.admitted(MemoryFilter("ana")).any()
    assert set(columns.speakers) == {"Ben"}


def test_vector_of_a_replaced_text_does_not_count(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("violin", embedding=embedded_in("space-1", status="stale"))))
    assert not words.memory_columns(0, "ana").embedded("space-1").any()
    assert words.ready_places(0) == {}


def test_later_entities_replace_earlier_ones(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("Lunch with Mrs Okafor", entities=("Lunch",))))
    words.put(0, LexicalDocument(made("Lunch with Mrs Okafor", entities=("Mrs Okafor",))))
    [okafor, lunch] = words.entity_postings(0, "ana", ["Mrs Okafor", "Lunch"])
    assert len(okafor.numbers) == 1
    assert len(lunch.numbers) == 0


def test_labels_are_stored_and_follow_the_text(words: SqliteLexicalIndex) -> None:
    memory = made("Where is the key?", role="assistant")
    for text in ("Where is the key?", "It hangs behind the door, on 3 March."):
        memory = memory.model_copy(update={"text": text})
        words.put(0, LexicalDocument(memory))
        assert words.memory_columns(0, "ana").columns.labels[0] == int(label_memory(memory))
    spoken = memory.model_copy(update={"role": "user"})
    words.put(0, LexicalDocument(spoken))
    words.commit(0)
    words.open(0)
    assert words.memory_columns(0, "ana").columns.labels[0] == int(label_memory(spoken)) != int(label_memory(memory))


def test_removed_memory_is_not_found(words: LexicalStore) -> None:
    kept, gone = made("violin", 0, speaker="Ana"), made("violin bow", 1, speaker="Ben", entities=("Bow",))
    words.put(0, LexicalDocument(kept))
    words.put(0, LexicalDocument(gone))
    words.memory_columns(0, "ana")
    words.remove(0, gone.memory_id)
    words.remove(0, gone.memory_id)
    words.remove(0, "unknown")
    assert found(words, "violin bow") == {kept.memory_id}
    columns = words.memory_columns(0, "ana")
    assert set(columns.number_of) == {kept.memory_id}
    assert set(columns.speakers) == {"Ana"}
    assert len(words.entity_postings(0, "ana", ["Bow"])[0].numbers) == 0


def test_removed_boundary_leaves_nothing_and_can_be_reused(words: LexicalStore) -> None:
    memories = [made(f"violin {n}", n) for n in range(3)]
    for memory in memories:
        words.put(0, LexicalDocument(memory))
    for memory in memories:
        words.remove(0, memory.memory_id)
    assert words.memory_columns(0, "ana").documents == 0
    assert words.counts(0, "ana") == {}
    words.put(0, LexicalDocument(memories[1]))
    assert found(words, "violin") == {memories[1].memory_id}


def test_write_that_fails_changes_nothing(words: LexicalStore) -> None:
    first = made("violin", 0)
    words.put(0, LexicalDocument(first))
    words.memory_columns(0, "ana")
    broken = made("violin and harbour", 1, source=2**80)
    with pytest.raises((Unavailable, OverflowError)):
        words.put(0, LexicalDocument(broken))
    assert found(words, "violin harbour") == {first.memory_id}
    second = made("harbour", 2)
    words.put(0, LexicalDocument(second))
    assert found(words, "violin harbour") == {first.memory_id, second.memory_id}


@settings(max_examples=scaled(5), suppress_health_check=SHARED_FIXTURE)
@given(seed=SEEDS)
def test_incremental_columns_equal_reloaded_ones(tmp_path: Path, seed: int) -> None:
    words = SqliteLexicalIndex(tmp_path)
    words.drop(0)
    words.open(0)
    rng = np.random.default_rng(seed)
    for step in range(300):
        number = int(rng.integers(60))
        memory: Memory = made(f"turn {rng.integers(5)}", number, speaker=f"s{rng.integers(3)}")
        if rng.random() < 0.3:
            words.remove(0, memory.memory_id)
        else:
            words.put(0, LexicalDocument(memory))
        columns = words.memory_columns(0, "ana") if step % 7 == 0 else None
        del columns
    kept = _described(words)
    words.close()
    words.open(0)
    assert _described(words) == kept
    words.close()


def _described(words: LexicalStore) -> dict[str, tuple[object, ...]]:
    columns = words.memory_columns(0, "ana")
    order = columns.order()
    speakers = {place: name for name, place in columns.speakers.items()}
    return {
        memory_id: (
            speakers[int(columns.columns.speakers[number])],
            int(columns.columns.lengths[number]),
            int(columns.columns.languages[number]),
            int(columns.columns.labels[number]),
            int(order.positions[number]),
            columns.id_of.get(int(order.before[number])),
            columns.id_of.get(int(order.after[number])),
        )
        for memory_id, number in columns.number_of.items()
    }


def test_memory_that_no_search_finds_is_in_an_index_of_its_own(words: LexicalStore) -> None:
    shown, other = made("violin and bow", speaker="Ana"), made("violin case", 1, speaker="Ana")
    for memory in (shown, other):
        words.put(0, LexicalDocument(memory))
    hidden = shown.model_copy(update={"visibility": Visibility(searchable=False)})
    words.put(0, LexicalDocument(hidden))
    assert found(words, "violin") == {other.memory_id}
    assert len(words.postings(0, "ana", ["bow"])[0].numbers) == 0, "nor do its words count for others"
    assert list(words.memory_columns(0, hidden.index_name).number_of) == [shown.memory_id]
    assert words.memory_columns(0, "ana").documents == 1
    words.put(0, LexicalDocument(shown))
    assert found(words, "violin") == {shown.memory_id, other.memory_id}
    assert words.memory_columns(0, hidden.index_name).documents == 0


def test_vectors_held_beside_the_present_one_are_read_and_counted(words: LexicalStore) -> None:
    held = embedded_in("space-2").model_copy(update={"held": ("space-1",)})
    failed = held.model_copy(update={"status": "failed"})
    words.put(0, LexicalDocument(made("violin", 0, embedding=held)))
    words.put(0, LexicalDocument(made("cello", 1, embedding=failed)))
    words.put(0, LexicalDocument(made("harp", 2, embedding=embedded_in("space-2"))))
    columns = words.memory_columns(0, "ana")
    assert [columns.embedded(space).tolist()[:3] for space in ("space-1", "space-2")] == [
        [True, False, False],
        [True, False, True],
    ]
    assert columns.held().tolist()[:3] == [True, False, False]
    assert {place.space: count for place, count in words.ready_places(0).items()} == {"space-1": 1, "space-2": 2}
    words.put(0, LexicalDocument(made("violin", 0, embedding=embedded_in("space-2"))))
    assert not words.memory_columns(0, "ana").held().any()
