"""The words of a text that the lexical index stores."""

from collections import Counter

from agents.rules.index.indexed_words import LONG_TEXT_CHARS, MAX_INDEXED_TERMS, indexed_words, is_long
from agents.rules.text.languages import detect_language
from agents.rules.text.tokenizer import tokenize


def test_words_are_those_of_the_text() -> None:
    text = "The harbour master signs every ship's papers in Hamburg-Altona. " * 50
    words, found = tokenize(text), indexed_words(text)
    assert (found.length, found.language, found.lines) == (len(words), detect_language(words), "\n".join(words))


def test_words_of_a_long_text_are_those_of_the_whole() -> None:
    text = " ".join(f"Ship's paper {number}-B fly.io/{number} \u00e9t\u00e9 na\u00efve 港口" for number in range(4000))
    words, found = tokenize(text), indexed_words(text)
    assert is_long(text)
    assert (found.length, found.language, found.lines) == (len(words), detect_language(words), "\n".join(words))
    assert found.counts == Counter(words)


def test_only_the_first_different_words_are_indexed() -> None:
    text = " ".join(f"word{number}" for number in range(MAX_INDEXED_TERMS + 1))
    words = indexed_words(f"{text} word1 word{MAX_INDEXED_TERMS}").lines.split("\n")
    assert len(set(words)) == MAX_INDEXED_TERMS
    assert words[-1] == "word1"


def test_a_long_text_is_read_once() -> None:
    text = "ship " * LONG_TEXT_CHARS
    assert is_long(text)
    assert indexed_words(text) is indexed_words(text)
