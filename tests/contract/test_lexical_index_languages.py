"""Words with equal stems, in every language of the lexical index."""

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.text.languages import LANGUAGES
from streams.flow.stores import LexicalStore
from tests.builders.lexical_queries import found
from tests.builders.memories import made


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
def test_word_is_found_by_its_other_forms_in_every_language(words: LexicalStore, written: str, asked: str) -> None:
    memory = made(written)
    words.put(0, LexicalDocument(memory))
    words.put(0, LexicalDocument(made("zzz", 1)))
    assert found(words, asked) == {memory.memory_id}


def test_text_of_unknown_language_is_found_by_its_word(words: LexicalStore) -> None:
    for number in range(20):
        words.put(0, LexicalDocument(made("Das ist nicht das, was wir haben wollten", number)))
    short = made("Fahrten", 20)
    words.put(0, LexicalDocument(short))
    assert found(words, "What were the Fahrten about?") == {short.memory_id}
    assert found(words, "Fahrt") == {short.memory_id}


def test_similar_terms_match_only_on_demand(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("Die Mieterhöhung ist da", 0)))
    [alike] = words.postings(0, "ana", ["erhohung"])
    [stems] = words.postings(0, "ana", ["erhohung"], fuzzy=False)
    assert len(alike.numbers) == 1
    assert len(stems.numbers) == 0


def test_new_terms_count_in_the_next_query(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("violin", 0)))
    assert found(words, "violins") != set()
    late = made("She brought her harps and a Mieterhöhung", 1)
    words.put(0, LexicalDocument(late))
    assert found(words, "harp") == found(words, "Erhöhung") == {late.memory_id}
    words.put(0, LexicalDocument(late.model_copy(update={"text": "nothing"})))
    assert found(words, "harp") == set()


def test_another_user_s_language_is_not_spoken_here(words: LexicalStore) -> None:
    mine = made("The hund was in the garden and it was late", 0)
    words.put(0, LexicalDocument(mine))
    alone = words.postings(0, "ana", ["hunden", "gardens"])
    for number in range(30):
        words.put(0, LexicalDocument(made("Das ist nicht das, was der Hund haben wollte", number, user="ben")))
    neighbours = words.postings(0, "ana", ["hunden", "gardens"])
    assert (
        [neighbour.numbers.tolist() for neighbour in neighbours]
        == [postings.numbers.tolist() for postings in alone]
        == [[], [0]]
    )
    assert words.memory_columns(0, "ana").languages() == [LANGUAGES.index("english")]
    assert words.memory_columns(0, "ben").languages() == [LANGUAGES.index("german")]
