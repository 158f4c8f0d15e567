"""Fuzzy word matching by character n-grams."""

from random import Random

import pytest

from agents.rules.index.vocabulary import MAX_SIMILAR_WORDS, MIN_DICE, CharNgrams


def similar(words: list[str], *queries: str) -> list[list[str]]:
    return CharNgrams.of(words).similar_words(CharNgrams.of(queries))


def dice(first: str, second: str) -> float:
    one, other = ({word[at : at + 4] for at in range(len(word) - 3)} for word in (first, second))
    return 2 * len(one & other) / (len(one) + len(other))


WORDS = ["erhohung", "mieterhohung", "mieter", "hohe", "enviaron", "envio", "2026-03-01", "boxen", "boxenmiete", "Чай"]


def test_words_match_by_dice_of_their_ngrams() -> None:
    queries = ["mieterhohungen", "erhohungen", "boxenmieten", "enviaran"]
    for word, found in zip(queries, similar(WORDS, *queries), strict=True):
        assert found == [one for one in WORDS if len(one) > 4 and dice(one, word) >= MIN_DICE]
    assert similar(WORDS, "erhohungen") == [["erhohung", "mieterhohung"]]


def test_word_matches_itself() -> None:
    assert similar(WORDS, "boxen") == [["boxen"]]


@pytest.mark.parametrize("word", ["2026-03-01", "hohe", "v1.2.3", "", "\n", "abc12"])
def test_short_words_and_non_words_match_nothing(word: str) -> None:
    assert CharNgrams.of([word]).words == []
    assert similar([word, "boxen"], "boxen") == [["boxen"]]


def test_ngrams_do_not_cross_word_boundaries() -> None:
    assert similar(["abcde", "fghij"], "bcdefg", "defgh") == [[], []]


def test_letters_of_other_scripts_differ() -> None:
    assert similar(["припарковал", "boxen"], "припарковали") == [["припарковал"]]
    assert similar(["boxen"], "припарковали") == [[]]
    assert similar(["abcde"], "qrstu") == [[]]


def test_empty_index_matches_nothing() -> None:
    assert similar([], "boxen") == [[]]
    assert similar(["boxen"]) == []


def test_repeated_ngrams_count_once() -> None:
    assert similar(["aaaaaaaaaa"], "aaaabbbbbbbb") == [[]]


def test_words_over_two_letters_take_bounded_work() -> None:
    letters = Random(1)
    made = ["".join(letters.choice("ab") for _ in range(60)) for _ in range(6_000)]
    found = similar(made, *made[:256])
    assert sum(map(len, found)) <= 256 * MAX_SIMILAR_WORDS


def test_only_the_most_similar_words_are_returned() -> None:
    made = [f"verwaltungen{first}{second}" for first in "abcdefghij" for second in "abcdefghij"]
    [found] = similar(["verwaltungena", *made], "verwaltungena")
    assert len(found) == MAX_SIMILAR_WORDS
    assert found[0] == "verwaltungena"
