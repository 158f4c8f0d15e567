import pytest

from agents.rules.text.languages import LANGUAGES, STOP_WORDS, UNKNOWN_LANGUAGE, detect_language, stems, stop_words_of
from agents.rules.text.tokenizer import fold, tokenize


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where did I park the car?", "english"),
        ("Wo habe ich das Auto geparkt?", "german"),
        ("¿Dónde aparqué el coche?", "spanish"),
        ("Où est-ce que j'ai garé la voiture ?", "french"),
        ("Onde eu estacionei o meu carro ontem?", "portuguese"),
        ("Dove ho parcheggiato la macchina?", "italian"),
        ("Waar heb ik de auto geparkeerd?", "dutch"),
        ("Var har jag parkerat min bil någonstans?", "swedish"),
        ("Hvor har jeg parkeret min bil, og hvornår?", "danish"),
        ("Hvor har jeg parkert bilen min, og når ble det?", "norwegian"),
        ("Где я припарковал свою машину?", "russian"),
        ("Arabam nerede ve ne zaman park ettim?", "turkish"),
    ],
)
def test_language_of_a_sentence(text: str, language: str) -> None:
    assert LANGUAGES[detect_language(tokenize(text))] == language


def test_text_without_stop_words_is_unknown_and_uses_english_ones() -> None:
    assert detect_language(["violin", "340"]) == detect_language([]) == UNKNOWN_LANGUAGE
    assert "the" in stop_words_of(["violin"])
    assert stems(["violins"], UNKNOWN_LANGUAGE) == ["violin"]


def test_english_wins_a_tie() -> None:
    assert LANGUAGES[detect_language(["in"])] == "english"


def test_stop_words_are_folded() -> None:
    assert [word for words in STOP_WORDS.values() for word in words if fold(word) != word] == []


def test_stored_language_indexes_are_stable() -> None:
    assert LANGUAGES[:5] == ("", "english", "german", "spanish", "french")
    assert LANGUAGES[5:] == ("portuguese", "italian", "dutch", "swedish", "danish", "norwegian", "russian", "turkish")


def test_every_language_has_a_stemmer() -> None:
    plurals = {"german": "hunden", "spanish": "casas", "russian": "книги", "turkish": "kitaplar", "swedish": "bilarna"}
    for language, word in plurals.items():
        [stem] = stems([word], LANGUAGES.index(language))
        assert stem != word
        assert word.startswith(stem)
