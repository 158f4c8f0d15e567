from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from agents.rules.index.vocabulary import (
    MAX_INSERTED_WORDS,
    MAX_SIMILAR_WORDS,
    MIN_DICE,
    MIN_PENDING_WORDS,
    CharNgrams,
    Vocabulary,
)
from agents.rules.text.languages import LANGUAGES, stems
from tests.properties import SEEDS, scaled

ENGLISH, GERMAN = (LANGUAGES.index(name) for name in ("english", "german"))


def test_expansion_by_stem() -> None:
    words = Vocabulary(["fly", "flies", "flying", "flu", "fl", "run", "running"])
    assert words.expand_terms(["flies", "runs"], [ENGLISH], fuzzy=False) == [
        ["flies", "fly", "flying"],
        ["run", "running"],
    ]


def test_only_spoken_languages_expand() -> None:
    words = Vocabulary(["hund", "note"])
    assert words.expand_terms(["hunden", "notes"], [ENGLISH]) == [[], ["note"]]
    assert words.expand_terms(["hunden"], [GERMAN]) == words.expand_terms(["hunden"], [ENGLISH, GERMAN]) == [["hund"]]


def test_known_word_matches_itself_without_a_language() -> None:
    assert Vocabulary(["fahrten", "fahrt"]).expand_terms(["fahrten", "bus"], [], fuzzy=False) == [["fahrten"], []]


def test_fuzzy_matches_are_optional() -> None:
    words = Vocabulary(["mieterhohung", "miete"])
    assert words.expand_terms(["erhohung"], [GERMAN]) == [["mieterhohung"]]
    assert words.expand_terms(["erhohung"], [GERMAN], fuzzy=False) == [[]]


def test_repeated_term_is_expanded_twice() -> None:
    assert Vocabulary(["mieterhohung"]).expand_terms(["erhohung", "erhohung"], [GERMAN]) == [["mieterhohung"]] * 2


@pytest.mark.parametrize("language", range(1, len(LANGUAGES)))
def test_prefix_search_finds_all_words_of_a_stem(language: int) -> None:
    """Candidates are searched by the prefix of a stem; endings of all kinds must be found."""
    beginnings = ["lauf", "cas", "envi", "dorp", "kitab", "frequ", "bro", "apply", "na", "go", "loeb"]
    endings = [
        "",
        "s",
        "es",
        "en",
        "er",
        "ing",
        "ed",
        "ence",
        "ente",
        "os",
        "am",
        "lar",
        "od",
        "oden",
        "ly",
        "ies",
        "y",
        "ado",
    ]
    words = [first + last for first in beginnings for last in endings]
    by_stem: dict[str, set[str]] = {}
    for word, stem in zip(words, stems(words, language), strict=True):
        by_stem.setdefault(stem, set()).add(word)
    found = Vocabulary(words).expand_terms(words, [language], fuzzy=False)
    expected = [sorted(by_stem[stem]) for stem in stems(words, language)]
    assert found == expected


@settings(max_examples=scaled(2))
@given(seed=SEEDS)
def test_incremental_vocabulary_equals_a_full_build(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abcdenrst"), rng.integers(2, 10))) for _ in range(3 * MIN_PENDING_WORDS)]
    terms = [*words[::40], "unheard", "stranded"]
    for batch in (1, MAX_INSERTED_WORDS // 2, MAX_INSERTED_WORDS + 5, MIN_PENDING_WORDS + 7):
        grown = Vocabulary(set(words[:10]))
        for first in range(0, len(words), batch):
            grown.add(words[first : first + batch])
            grown.expand_terms(["stand"], [ENGLISH])
        assert len(grown) == len(set(words))
        assert grown.expand_terms(terms, [ENGLISH]) == Vocabulary(set(words)).expand_terms(terms, [ENGLISH])


def test_of_too_many_words_the_shortest_are_matched_by_their_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.rules.index.vocabulary.MAX_NGRAM_WORDS", 1)
    known = Vocabulary(["schifffahrten", "verwaltungsgerichte"])
    assert known.expand_terms(["schifffahrtsx", "verwaltungsgerichtx"], []) == [["schifffahrten"], []]


def similar(words: list[str], *queries: str) -> list[list[str]]:
    return CharNgrams.of(words).similar_words(CharNgrams.of(queries))


def dice(first: str, second: str) -> float:
    left, right = ({word[at : at + 4] for at in range(len(word) - 3)} for word in (first, second))
    return 2 * len(left & right) / (len(left) + len(right))


WORDS = ["erhohung", "mieterhohung", "mieter", "hohe", "enviaron", "envio", "2026-03-01", "boxen", "boxenmiete", "Чай"]


def test_words_match_by_dice_of_their_ngrams() -> None:
    queries = ["mieterhohungen", "erhohungen", "boxenmieten", "enviaran"]
    for word, found in zip(queries, similar(WORDS, *queries), strict=True):
        assert found == [each for each in WORDS if len(each) > 4 and dice(each, word) >= MIN_DICE]
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
