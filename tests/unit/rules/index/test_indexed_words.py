"""The words of a text that the lexical index stores."""

from collections import Counter

from agents.rules.index.indexed_words import (
    LAST_PASSAGE_BIT,
    LONG_TEXT_CHARS,
    MAX_INDEXED_TERMS,
    indexed_words,
    is_long,
)
from agents.rules.text.languages import detect_language
from agents.rules.text.passages import cut_passages
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


def test_words_of_a_text_that_is_not_cut_are_in_no_passage() -> None:
    assert indexed_words("the ship and the harbour").passages == {}


def test_words_of_a_cut_text_have_a_bit_for_each_passage() -> None:
    words = indexed_words("ship harbour \n\nship crane", (0, 15))
    assert words.passages == {"ship": 0b11, "harbour": 0b01, "crane": 0b10}


def test_white_space_before_the_first_passage_is_in_none() -> None:
    assert indexed_words("\n\n ship crane", (3, 8)).passages == {"ship": 0b01, "crane": 0b10}


def test_a_cut_text_has_the_words_of_the_whole() -> None:
    text = "The harbour master signs every ship's papers in Hamburg-Altona, on fly.io. " * 40
    starts = tuple(span.start for span in cut_passages(text))
    assert len(starts) > 1
    assert indexed_words(text, starts)[:4] == indexed_words(text)[:4]


def test_a_long_text_that_is_cut_has_the_words_of_the_whole() -> None:
    text = " ".join(f"Ship's paper {number}-B fly.io/{number} \u00e9t\u00e9 na\u00efve. " for number in range(1000))
    starts = tuple(span.start for span in cut_passages(text))
    assert is_long(text)
    assert indexed_words(text, starts)[:4] == indexed_words(text)[:4]


def test_passages_behind_the_last_bit_share_it() -> None:
    text = " ".join(f"word{number}" for number in range(65))
    starts = tuple(text.index(f"word{number}") for number in range(65))
    assert indexed_words(text, starts).passages["word64"] == 1 << LAST_PASSAGE_BIT


def test_passages_are_those_of_the_cutting_that_is_asked_for() -> None:
    text = "ship " * LONG_TEXT_CHARS
    assert [indexed_words(text, starts).passages for starts in ((), (0, 5))] == [{}, {"ship": 0b11}]


def test_words_that_are_left_out_are_in_no_passage() -> None:
    text = " ".join(f"word{number}" for number in range(MAX_INDEXED_TERMS + 100))
    words = indexed_words(text, (0, len(text) // 2))
    assert set(words.passages) == set(words.counts)
