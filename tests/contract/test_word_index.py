"""What every word index promises (`agents.word_port.WordIndex`)."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from agents.rules.languages import LANGUAGES
from agents.rules.marks import marks_of
from agents.rules.words import question_terms
from agents.word_port import WordIndex
from schemas.failures import Unavailable
from schemas.memories import Assigned, Embedding, Item, Memory, Place, Reading, Resource
from schemas.vectors import Where
from streams.adapters.words.sqlite_words import SqliteWords
from tests.made_memories import embedded_in, made

READY = embedded_in("space-1")


def found(words: WordIndex, query: str, boundary: str = "ana", partition: int = 0) -> set[str]:
    """The ids of the memories that have any word of the question."""
    ids = words.roster(partition, boundary).id_of
    return {
        ids[number]
        for postings in words.postings(partition, boundary, question_terms(query))
        for number in postings.numbers.tolist()
    }


def test_a_memory_is_found_by_its_words_at_once(words: WordIndex) -> None:
    memory = made("The violin lesson moved to Thursday.")
    words.put(0, memory)
    assert found(words, "violin lessons") == {memory.memory_id}
    assert found(words, "harbour") == set()


def test_a_memory_is_found_by_the_text_of_its_resources(words: WordIndex) -> None:
    memory = made("Look!", resources=(Resource(uri="file:a", text="a heron at the pond"),))
    words.put(0, memory)
    assert found(words, "heron") == {memory.memory_id}


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("She was running in the park", "How often does she run?"),
        ("Wir haben die Mieterhöhung nach den Ferien verschickt", "Wann war die Erhöhung?"),
        ("Die Boxen sind alle belegt, und das ist gut so", "Wie teuer ist eine Box?"),
        ("Enviaron las facturas a la gestoría y no me dijeron nada", "¿Quién envió la factura?"),
        ("Les chevaux sont dans les écuries de la voisine", "Où est l'écurie ?"),
        ("Comprei as passagens para o casamento da minha irmã", "Quando comprei a passagem?"),
        ("Ho prenotato le camere per i miei genitori", "Quale camera ho prenotato?"),
        ("We hebben de fietsen naar de kelder gebracht", "Waar is de fiets?"),
        ("Vi har lagat bilarna och det blev inte billigt", "Var är bilen?"),
        ("Jeg har solgt bøgerne til min nabo i går", "Hvem har købt min bog eller bøger?"),
        ("Jeg har malt veggene i stua sammen med broren min", "Hvilken vegg er malt?"),
        # ruff: noqa: RUF001 - letters of other alphabets
        ("Мы перенесли встречи с врачами на май", "Когда встреча с врачом?"),
        ("Kitapları kütüphaneye geri verdim ama biri kayıp", "Hangi kitap kayıp?"),
        ("Reitstunden!", "Was kostet die Reitstunde?"),
    ],
)
def test_a_word_is_found_by_its_other_forms_in_every_language(words: WordIndex, written: str, asked: str) -> None:
    memory = made(written)
    words.put(0, memory)
    words.put(0, made("zzz", 1))
    assert found(words, asked) == {memory.memory_id}


def test_a_text_of_which_the_language_cannot_be_told_is_found_by_the_word_that_it_says(words: WordIndex) -> None:
    for number in range(20):
        words.put(0, made("Das ist nicht das, was wir haben wollten", number))
    short = made("Fahrten", 20)
    words.put(0, short)
    assert found(words, "What were the Fahrten about?") == {short.memory_id}
    assert found(words, "Fahrt") == {short.memory_id}


def test_words_that_count_as_one_are_one_term(words: WordIndex) -> None:
    words.put(0, made("violin, violins and more violins", 0))
    words.put(0, made("the violin", 1))
    [violin] = words.postings(0, "ana", ["violins"])
    assert violin.numbers.tolist() == [0, 1]
    assert violin.counts.tolist() == [3, 1]


def test_words_that_are_only_alike_count_on_demand(words: WordIndex) -> None:
    words.put(0, made("Die Mieterhöhung ist da", 0))
    [alike] = words.postings(0, "ana", ["erhohung"])
    [stems] = words.postings(0, "ana", ["erhohung"], alike=False)
    assert (len(alike.numbers), len(stems.numbers)) == (1, 0)


def test_words_that_are_written_after_a_question_count_in_the_next(words: WordIndex) -> None:
    words.put(0, made("violin", 0))
    assert found(words, "violins") != set()
    late = made("She brought her harps and a Mieterhöhung", 1)
    words.put(0, late)
    assert found(words, "harp") == found(words, "Erhöhung") == {late.memory_id}
    words.put(0, late.model_copy(update={"text": "nothing"}))
    assert found(words, "harp") == set()


def test_numbers_and_identifiers_count_as_nothing_else(words: WordIndex) -> None:
    words.put(0, made("On 2026-03-01 we took release-2026-03-01 and 1234567", 0))
    assert found(words, "2026-03-02") <= found(words, "2026")
    assert [len(one.numbers) for one in words.postings(0, "ana", ["2026-03-02", "1234568"])] == [0, 0]


def test_another_user_s_language_is_not_spoken_here(words: WordIndex) -> None:
    mine = made("The hund was in the garden and it was late", 0)
    words.put(0, mine)
    alone = words.postings(0, "ana", ["hunden", "gardens"])
    for number in range(30):
        words.put(0, made("Das ist nicht das, was der Hund haben wollte", number, user="ben"))
    beside = words.postings(0, "ana", ["hunden", "gardens"])
    assert [one.numbers.tolist() for one in beside] == [one.numbers.tolist() for one in alone] == [[], [0]]
    assert words.roster(0, "ana").languages() == [LANGUAGES.index("english")]
    assert words.roster(0, "ben").languages() == [LANGUAGES.index("german")]


def test_marks_are_kept_and_follow_the_text(words: WordIndex) -> None:
    memory = made("Where is the key?", role="assistant")
    for text in ("Where is the key?", "It hangs behind the door, on 3 March."):
        memory = memory.model_copy(update={"text": text})
        words.put(0, memory)
        assert words.roster(0, "ana").columns.marks[0] == int(marks_of(memory))
    spoken = memory.model_copy(update={"role": "user"})
    words.put(0, spoken)
    words.commit(0)
    words.open(0)
    assert words.roster(0, "ana").columns.marks[0] == int(marks_of(spoken)) != int(marks_of(memory))


def test_many_terms_are_answered_in_their_order(words: WordIndex) -> None:
    for number in range(200):
        words.put(0, made(f"word{number} and letters", number))
    asked = [f"word{number}" for number in reversed(range(256))]
    numbers = [one.numbers.tolist() for one in words.postings(0, "ana", asked)]
    assert numbers == [[]] * 56 + [[number] for number in reversed(range(200))]


def test_postings_tell_how_often_and_lengths_how_long(words: WordIndex) -> None:
    words.put(0, made("violin, violin and bow", 0))
    words.put(0, made("violin", 1))
    [violin, harbour] = words.postings(0, "ana", ["violin", "harbour"])
    assert dict(zip(violin.numbers.tolist(), violin.counts.tolist(), strict=True)) == {0: 2, 1: 1}
    assert len(harbour.numbers) == 0
    assert words.roster(0, "ana").columns.lengths[:2].tolist() == [4, 1]


def test_a_replaced_text_is_no_longer_found(words: WordIndex) -> None:
    old = made("The locker code is quagga seven.", speaker="Ana", entities=("Quagga",))
    words.put(0, old)
    words.put(0, old.model_copy(update={"text": "The key hangs behind the door.", "entities": ()}))
    assert found(words, "quagga locker code") == set()
    assert found(words, "key behind door") == {old.memory_id}
    assert len(words.entity_postings(0, "ana", ["Quagga"])[0].numbers) == 0
    assert words.roster(0, "ana").documents == 1


def test_the_same_memory_again_changes_nothing(words: WordIndex) -> None:
    memory = made("violin and bow")
    for _ in range(3):
        words.put(0, memory)
    [violin] = words.postings(0, "ana", ["violin"])
    assert (violin.numbers.tolist(), violin.counts.tolist()) == ([0], [1])
    assert words.roster(0, "ana").documents == 1


def test_what_changes_beside_the_text_is_seen(words: WordIndex) -> None:
    memory = made("violin")
    words.put(0, memory)
    roster = words.roster(0, "ana")
    assert not roster.embedded("space-1").any()
    words.put(0, memory.model_copy(update={"embedding": READY, "superseded_by": "x", "speaker": "Ben"}))
    roster = words.roster(0, "ana")
    assert roster.embedded("space-1").any()
    assert not roster.admitted(Where("ana")).any()
    assert set(roster.speakers) == {"Ben"}


def test_a_vector_of_a_text_that_is_gone_is_no_vector(words: WordIndex) -> None:
    words.put(0, made("violin", embedding=embedded_in("space-1", status="stale")))
    assert not words.roster(0, "ana").embedded("space-1").any()
    assert words.ready_places(0) == {}


def test_entities_are_found_whatever_their_case(words: WordIndex) -> None:
    words.put(0, made("Lunch with Mrs Okafor", entities=("Mrs  Okafor", "Köln")))
    [okafor, cologne, lunch] = words.entity_postings(0, "ana", ["mrs okafor", "KÖLN", "Lunch"])
    assert (len(okafor.numbers), len(cologne.numbers), len(lunch.numbers)) == (1, 1, 0)
    assert words.roster(0, "ana").columns.lengths[0] == 4, "entities are no words of the text"


def test_entities_that_are_found_later_replace_those_before(words: WordIndex) -> None:
    words.put(0, made("Lunch with Mrs Okafor", entities=("Lunch",)))
    words.put(0, made("Lunch with Mrs Okafor", entities=("Mrs Okafor",)))
    [okafor, lunch] = words.entity_postings(0, "ana", ["Mrs Okafor", "Lunch"])
    assert (len(okafor.numbers), len(lunch.numbers)) == (1, 0)


def test_a_forgotten_memory_is_found_by_nothing(words: WordIndex) -> None:
    kept, gone = made("violin", 0, speaker="Ana"), made("violin bow", 1, speaker="Ben", entities=("Bow",))
    words.put(0, kept)
    words.put(0, gone)
    words.roster(0, "ana")
    words.remove(0, gone.memory_id)
    words.remove(0, gone.memory_id)
    words.remove(0, "unknown")
    assert found(words, "violin bow") == {kept.memory_id}
    roster = words.roster(0, "ana")
    assert set(roster.number_of) == {kept.memory_id}
    assert set(roster.speakers) == {"Ana"}
    assert len(words.entity_postings(0, "ana", ["Bow"])[0].numbers) == 0


def test_a_forgotten_user_leaves_nothing_and_may_come_back(words: WordIndex) -> None:
    memories = [made(f"violin {n}", n) for n in range(3)]
    for memory in memories:
        words.put(0, memory)
    for memory in memories:
        words.remove(0, memory.memory_id)
    assert words.roster(0, "ana").documents == 0
    assert words.counts(0, "ana") == {}
    words.put(0, memories[1])
    assert found(words, "violin") == {memories[1].memory_id}


def test_another_users_memories_are_invisible(words: WordIndex) -> None:
    mine = made("violin lesson", 0)
    words.put(0, mine)
    before = words.postings(0, "ana", ["violin", "lesson"])
    for number in range(50):
        words.put(0, made("violin lesson of somebody", number, user="ben"))
    after = words.postings(0, "ana", ["violin", "lesson"])
    assert [postings.numbers.tolist() for postings in after] == [postings.numbers.tolist() for postings in before]
    assert words.roster(0, "ana").documents == 1
    assert found(words, "somebody") == set()
    assert found(words, "violin", "carl") == set()
    assert words.roster(0, "ben").documents == 50


def test_counts_are_by_mode_and_status(words: WordIndex) -> None:
    words.put(0, made("a", 0, speaker="Ana"))
    words.put(0, made("b", 1, speaker="Ben"))
    words.put(0, made("c", 2, embedding=READY))
    words.put(0, made("d", 3, mode="code", embedding=Embedding(status="failed")))
    words.put(0, made("e", 4, user="ben"))
    assert words.counts(0, "ana") == {"general": {"pending": 2, "ready": 1}, "code": {"failed": 1}}
    assert words.counts(0, "nobody") == {}


def test_memories_are_listed_by_status(words: WordIndex) -> None:
    statuses = {0: Embedding(), 1: READY, 2: Embedding(status="failed"), 3: Embedding(status="stale")}
    memories = {number: made("a", number, embedding=embedding) for number, embedding in statuses.items()}
    for memory in memories.values():
        words.put(0, memory)
    other = made("a", 9, user="ben")
    words.put(0, other)
    assert set(words.with_status(0, ("pending", "stale"))) == {
        memories[0].memory_id,
        memories[3].memory_id,
        other.memory_id,
    }
    assert list(words.with_status(0, ["ready"])) == [memories[1].memory_id]


def test_vectors_are_counted_by_mode_and_space_over_all_boundaries(words: WordIndex) -> None:
    words.put(0, made("a", 0, embedding=READY, speaker="Ana"))
    words.put(0, made("b", 1, embedding=READY, speaker="Ben"))
    words.put(0, made("c", 2, user="ben", embedding=READY))
    words.put(0, made("d", 3, embedding=embedded_in("space-2")))
    words.put(0, made("e", 4, mode="code", embedding=embedded_in("space-1", "code")))
    words.put(0, made("f", 5))
    assert words.ready_places(0) == {
        Place(mode="general", space="space-1"): 3,
        Place(mode="general", space="space-2"): 1,
        Place(mode="code", space="space-1"): 1,
    }


def test_a_vector_that_moves_or_goes_is_counted_where_it_is(words: WordIndex) -> None:
    words.put(0, made("a", 0, embedding=READY))
    words.put(0, made("a", 0, mode="code", embedding=embedded_in("space-1", "code")))
    assert words.ready_places(0) == {Place(mode="code", space="space-1"): 1}
    words.put(0, made("a", 0, mode="code", embedding=embedded_in("space-1", "code", "pending")))
    assert words.ready_places(0) == {}
    words.put(0, made("b", 1, embedding=READY))
    words.remove(0, made("b", 1).memory_id)
    assert words.ready_places(0) == {}


def test_what_no_model_has_read_yet_is_listed_until_it_is_read_replaced_or_gone(words: WordIndex) -> None:
    unread = Reading(status="pending", text_hash="hash")
    read, gone, waits = (made("a", number, reading=unread) for number in range(3))
    for memory in (read, gone, waits, made("a", 3), made("a", 4, user="ben", reading=unread)):
        words.put(0, memory)
    assert len(list(words.unread(0))) == 4
    words.put(0, read.model_copy(update={"reading": Reading(status="model")}))
    words.remove(0, gone.memory_id)
    assert set(words.unread(0)) == {waits.memory_id, made("a", 4, user="ben").memory_id}


def test_all_that_is_unread_is_listed_while_it_is_written(words: WordIndex) -> None:
    memories = {one.memory_id: one for one in (made("a", n, reading=Reading(status="pending")) for n in range(1200))}
    for memory in memories.values():
        words.put(0, memory)
    listed = []
    for memory_id in words.unread(0):
        listed.append(memory_id)
        words.put(0, memories[memory_id].model_copy(update={"reading": Reading(status="model")}))
    assert sorted(listed) == sorted(memories)
    assert list(words.unread(0)) == []


def test_all_memories_of_a_status_are_listed_while_they_are_written(words: WordIndex) -> None:
    memories = {memory.memory_id: memory for memory in (made("a", number) for number in range(1200))}
    for memory in memories.values():
        words.put(0, memory)
    listed = []
    for memory_id in words.with_status(0, ("pending",)):
        listed.append(memory_id)
        words.put(0, memories[memory_id].model_copy(update={"embedding": READY}))
    assert sorted(listed) == sorted(memories)
    assert list(words.with_status(0, ("pending",))) == []


def under(words: WordIndex, name: str, boundary: str = "ana") -> set[str]:
    """The ids of the memories that are under a category."""
    [postings] = words.category_postings(0, boundary, [name])
    return {words.roster(0, boundary).id_of[number] for number in postings.numbers.tolist()}


def item(*names: str) -> Item:
    return Item(categories=tuple(Assigned(name=name, confidence=0.8) for name in names))


def test_a_memory_is_found_under_each_of_its_categories_as_long_as_it_is_there(words: WordIndex) -> None:
    both, one, none = (
        made("a", number, item=item(*names)) for number, names in enumerate((("health", "food"), ("food",), ()))
    )
    for memory in (both, one, none, made("a", 3), made("a", 4, user="ben", item=item("food"))):
        words.put(0, memory)
    assert under(words, "food") == {both.memory_id, one.memory_id}
    assert under(words, "health") == {both.memory_id}
    words.put(0, both.model_copy(update={"item": item("health")}))
    assert under(words, "food") == {one.memory_id}
    words.remove(0, both.memory_id)
    assert under(words, "health") == set()
    assert under(words, "food", "nobody") == set()


def test_a_category_is_neither_a_word_nor_an_entity(words: WordIndex) -> None:
    filed = made("violin", item=item("harbour"))
    words.put(0, filed)
    words.put(0, made("harbour", 1, entities=("harbour",)))
    assert filed.memory_id not in found(words, "harbour")
    assert under(words, "harbour") == {filed.memory_id}
    assert under(words, "Harbour") == set()
    [named] = words.entity_postings(0, "ana", ["harbour"])
    assert words.roster(0, "ana").id_of[int(named.numbers[0])] != filed.memory_id
    assert int(words.roster(0, "ana").columns.lengths[words.roster(0, "ana").number_of[filed.memory_id]]) == 1


def test_partitions_know_nothing_of_each_other(words: WordIndex) -> None:
    words.open(1)
    words.put(0, made("violin"))
    words.commit(0)
    assert found(words, "violin", partition=1) == set()
    words.drop(1)
    assert found(words, "violin") != set()


def test_a_dropped_partition_begins_anew(words: WordIndex) -> None:
    words.put(0, made("violin"))
    words.set_applied(0, "turns", 7)
    words.commit(0)
    words.drop(0)
    words.drop(0)
    words.open(0)
    assert found(words, "violin") == set()
    assert words.applied(0) == {}


def test_progress_is_kept_by_topic(words: WordIndex) -> None:
    words.set_applied(0, "turns", 7)
    words.set_applied(0, "embedded", 3)
    words.set_applied(0, "turns", 8)
    assert words.applied(0) == {"turns": 8, "embedded": 3}


def test_what_was_committed_survives_and_what_was_not_is_gone_with_its_progress(tmp_path: Path) -> None:
    words = SqliteWords(tmp_path)
    words.open(0)
    safe, lost = made("violin", 0), made("harbour", 1)
    words.put(0, safe)
    words.set_applied(0, "turns", 1)
    words.commit(0)
    words.put(0, lost)
    words.set_applied(0, "turns", 2)
    words.open(0)
    assert found(words, "violin harbour") == {safe.memory_id}
    assert words.applied(0) == {"turns": 1}
    words.close()


def test_closing_commits(tmp_path: Path) -> None:
    words = SqliteWords(tmp_path)
    words.open(0)
    words.put(0, made("violin"))
    words.close()
    words = SqliteWords(tmp_path)
    words.open(0)
    assert len(found(words, "violin")) == 1
    words.close()


@pytest.mark.parametrize("content", [b"no database at all " * 300, b""])
def test_a_broken_file_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "words-0.sqlite").write_bytes(content)
    words = SqliteWords(tmp_path)
    words.open(0)
    words.put(0, made("violin"))
    assert len(found(words, "violin")) == 1
    words.close()


def test_a_file_of_another_form_is_begun_anew(tmp_path: Path) -> None:
    words = SqliteWords(tmp_path)
    words.open(0)
    words.put(0, made("violin"))
    words.set_applied(0, "turns", 1)
    words.close()
    with sqlite3.connect(tmp_path / "words-0.sqlite") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    words.open(0)
    assert found(words, "violin") == set()
    assert words.applied(0) == {}
    words.close()


def test_a_write_that_fails_changes_nothing(words: WordIndex) -> None:
    first = made("violin", 0)
    words.put(0, first)
    words.roster(0, "ana")
    broken = made("violin and harbour", 1, source=2**80)
    with pytest.raises((Unavailable, OverflowError)):
        words.put(0, broken)
    assert found(words, "violin harbour") == {first.memory_id}
    second = made("harbour", 2)
    words.put(0, second)
    assert found(words, "violin harbour") == {first.memory_id, second.memory_id}


def test_any_text_can_be_put(words: WordIndex) -> None:
    texts = ["\x00\x01", "' OR 1=1; --", "\U0001f382", "a\u0301" * 50, " ", "x" * 32768, "word " * 6000, "%_\x1f\n"]
    for number, text in enumerate(texts):
        words.put(0, made(text, number, speaker="O'Neil \x00"))
    assert words.roster(0, "ana").documents == len(texts)
    [word] = words.postings(0, "ana", ["word"])
    assert word.counts.tolist() == [255]


def test_columns_follow_many_writes_as_if_read_anew(tmp_path: Path) -> None:
    words = SqliteWords(tmp_path)
    words.open(0)
    rng = np.random.default_rng(1)
    for step in range(300):
        number = int(rng.integers(60))
        memory: Memory = made(f"turn {rng.integers(5)}", number, speaker=f"s{rng.integers(3)}")
        if rng.random() < 0.3:
            words.remove(0, memory.memory_id)
        else:
            words.put(0, memory)
        followed = words.roster(0, "ana") if step % 7 == 0 else None
        del followed
    kept = _described(words)
    words.close()
    words.open(0)
    assert _described(words) == kept
    words.close()


def _described(words: WordIndex) -> dict[str, tuple[object, ...]]:
    roster = words.roster(0, "ana")
    before, after = roster.beside()
    speakers = {place: name for name, place in roster.speakers.items()}
    return {
        memory_id: (
            speakers[int(roster.columns.speakers[number])],
            int(roster.columns.lengths[number]),
            int(roster.columns.languages[number]),
            int(roster.columns.marks[number]),
            int(roster.order().positions[number]),
            roster.id_of.get(int(before[number])),
            roster.id_of.get(int(after[number])),
        )
        for memory_id, number in roster.number_of.items()
    }
