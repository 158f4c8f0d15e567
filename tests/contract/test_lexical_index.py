"""What every lexical index finds (`streams.flow.stores.LexicalStore`)."""

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import CategoryAssignment, Item, Resource
from streams.flow.stores import LexicalStore
from tests.builders.lexical_queries import found
from tests.builders.memories import made


def test_memory_is_found_by_its_words_immediately(words: LexicalStore) -> None:
    memory = made("The violin lesson moved to Thursday.")
    words.put(0, LexicalDocument(memory))
    assert found(words, "violin lessons") == {memory.memory_id}
    assert found(words, "harbour") == set()


def test_memory_is_found_by_the_text_of_its_resources(words: LexicalStore) -> None:
    memory = made("Look!", resources=(Resource(uri="file:a", text="a heron at the pond"),))
    words.put(0, LexicalDocument(memory))
    assert found(words, "heron") == {memory.memory_id}


def test_words_with_equal_stems_are_one_term(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("violin, violins and more violins", 0)))
    words.put(0, LexicalDocument(made("the violin", 1)))
    [violin] = words.postings(0, "ana", ["violins"])
    assert violin.numbers.tolist() == [0, 1]
    assert violin.counts.tolist() == [3, 1]


def test_numbers_and_identifiers_count_as_nothing_else(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("On 2026-03-01 we took release-2026-03-01 and 1234567", 0)))
    assert found(words, "2026-03-02") <= found(words, "2026")
    assert [len(posting.numbers) for posting in words.postings(0, "ana", ["2026-03-02", "1234568"])] == [0, 0]


def test_many_terms_are_answered_in_their_order(words: LexicalStore) -> None:
    for number in range(200):
        words.put(0, LexicalDocument(made(f"word{number} and letters", number)))
    asked = [f"word{number}" for number in reversed(range(256))]
    numbers = [posting.numbers.tolist() for posting in words.postings(0, "ana", asked)]
    assert numbers == [[]] * 56 + [[number] for number in reversed(range(200))]


def test_postings_tell_how_often_and_lengths_how_long(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("violin, violin and bow", 0)))
    words.put(0, LexicalDocument(made("violin", 1)))
    [violin, harbour] = words.postings(0, "ana", ["violin", "harbour"])
    assert dict(zip(violin.numbers.tolist(), violin.counts.tolist(), strict=True)) == {0: 2, 1: 1}
    assert len(harbour.numbers) == 0
    assert words.memory_columns(0, "ana").columns.lengths[:2].tolist() == [4, 1]


def test_entities_match_case_insensitively(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("Lunch with Mrs Okafor", entities=("Mrs  Okafor", "Köln"))))
    [okafor, cologne, lunch] = words.entity_postings(0, "ana", ["mrs okafor", "KÖLN", "Lunch"])
    assert len(okafor.numbers) == 1
    assert len(cologne.numbers) == 1
    assert len(lunch.numbers) == 0
    assert words.memory_columns(0, "ana").columns.lengths[0] == 4, "entities are not terms of the text"


def under(words: LexicalStore, name: str, boundary: str = "ana") -> set[str]:
    [postings] = words.category_postings(0, boundary, [name])
    return {words.memory_columns(0, boundary).id_of[number] for number in postings.numbers.tolist()}


def item(*names: str) -> Item:
    return Item(categories=tuple(CategoryAssignment(name=name, confidence=0.8) for name in names))


def test_memory_is_found_under_each_category_while_it_exists(words: LexicalStore) -> None:
    both, single, none = (
        made("a", number, item=item(*names)) for number, names in enumerate((("health", "food"), ("food",), ()))
    )
    for memory in (both, single, none, made("a", 3), made("a", 4, user="ben", item=item("food"))):
        words.put(0, LexicalDocument(memory))
    assert under(words, "food") == {both.memory_id, single.memory_id}
    assert under(words, "health") == {both.memory_id}
    words.put(0, LexicalDocument(both.model_copy(update={"item": item("health")})))
    assert under(words, "food") == {single.memory_id}
    words.remove(0, both.memory_id)
    assert under(words, "health") == set()
    assert under(words, "food", "nobody") == set()


def test_category_is_neither_a_word_nor_an_entity(words: LexicalStore) -> None:
    filed = made("violin", item=item("harbour"))
    words.put(0, LexicalDocument(filed))
    words.put(0, LexicalDocument(made("harbour", 1, entities=("harbour",))))
    assert filed.memory_id not in found(words, "harbour")
    assert under(words, "harbour") == {filed.memory_id}
    assert under(words, "Harbour") == set()
    [named] = words.entity_postings(0, "ana", ["harbour"])
    assert words.memory_columns(0, "ana").id_of[int(named.numbers[0])] != filed.memory_id
    assert (
        int(words.memory_columns(0, "ana").columns.lengths[words.memory_columns(0, "ana").number_of[filed.memory_id]])
        == 1
    )


def test_another_users_memories_are_invisible(words: LexicalStore) -> None:
    mine = made("violin lesson", 0)
    words.put(0, LexicalDocument(mine))
    before = words.postings(0, "ana", ["violin", "lesson"])
    for number in range(50):
        words.put(0, LexicalDocument(made("violin lesson of somebody", number, user="ben")))
    after = words.postings(0, "ana", ["violin", "lesson"])
    assert [postings.numbers.tolist() for postings in after] == [postings.numbers.tolist() for postings in before]
    assert words.memory_columns(0, "ana").documents == 1
    assert found(words, "somebody") == set()
    assert found(words, "violin", "carl") == set()
    assert words.memory_columns(0, "ben").documents == 50


def test_any_text_can_be_put(words: LexicalStore) -> None:
    texts = ["\x00\x01", "' OR 1=1; --", "\U0001f382", "a\u0301" * 50, " ", "x" * 32768, "word " * 6000, "%_\x1f\n"]
    for number, text in enumerate(texts):
        words.put(0, LexicalDocument(made(text, number, speaker="O'Neil \x00")))
    assert words.memory_columns(0, "ana").documents == len(texts)
    [word] = words.postings(0, "ana", ["word"])
    assert word.counts.tolist() == [255]
