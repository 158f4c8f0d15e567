"""Which words of a boundary count as one."""

import numpy as np
import pytest

from agents.rules.index.vocabulary import MAX_INSERTED_WORDS, MIN_PENDING_WORDS, Vocabulary
from agents.rules.text.languages import LANGUAGES
from agents.rules.text.stemming import stems

ENGLISH, GERMAN = (LANGUAGES.index(name) for name in ("english", "german"))


def test_words_with_the_same_stem_count_as_one() -> None:
    words = Vocabulary(["fly", "flies", "flying", "flu", "fl", "run", "running"])
    assert words.expand_terms(["flies", "runs"], [ENGLISH], fuzzy=False) == [
        ["flies", "fly", "flying"],
        ["run", "running"],
    ]


def test_only_languages_that_are_spoken_count() -> None:
    words = Vocabulary(["hund", "note"])
    assert words.expand_terms(["hunden", "notes"], [ENGLISH]) == [[], ["note"]]
    assert words.expand_terms(["hunden"], [GERMAN]) == words.expand_terms(["hunden"], [ENGLISH, GERMAN]) == [["hund"]]


def test_a_word_that_is_written_counts_as_itself_without_any_language() -> None:
    assert Vocabulary(["fahrten", "fahrt"]).expand_terms(["fahrten", "bus"], [], fuzzy=False) == [["fahrten"], []]


def test_alike_words_count_and_can_be_left_out() -> None:
    words = Vocabulary(["mieterhohung", "miete"])
    assert words.expand_terms(["erhohung"], [GERMAN]) == [["mieterhohung"]]
    assert words.expand_terms(["erhohung"], [GERMAN], fuzzy=False) == [[]]


def test_the_same_word_asked_for_twice_is_answered_twice() -> None:
    assert Vocabulary(["mieterhohung"]).expand_terms(["erhohung", "erhohung"], [GERMAN]) == [["mieterhohung"]] * 2


@pytest.mark.parametrize("language", range(1, len(LANGUAGES)))
def test_no_word_with_the_same_stem_is_missed(language: int) -> None:
    """Candidates are sought by how a stem begins; endings of all kinds must be among them."""
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
    asked = Vocabulary(words).expand_terms(words, [language], fuzzy=False)
    expected = [sorted(by_stem[stem]) for stem in stems(words, language)]
    assert asked == expected


def test_words_that_are_heard_in_any_portions_are_known_as_if_from_the_start() -> None:
    rng = np.random.default_rng(3)
    words = ["".join(rng.choice(list("abcdenrst"), rng.integers(2, 10))) for _ in range(3 * MIN_PENDING_WORDS)]
    asked = [*words[::40], "unheard", "stranded"]
    for portion in (1, MAX_INSERTED_WORDS // 2, MAX_INSERTED_WORDS + 5, MIN_PENDING_WORDS + 7):
        grown = Vocabulary(words[:10])
        for first in range(0, len(words), portion):
            grown.add(words[first : first + portion])
            grown.expand_terms(["stand"], [ENGLISH])
        assert len(grown) == len(set(words))
        assert grown.expand_terms(asked, [ENGLISH]) == Vocabulary(set(words)).expand_terms(asked, [ENGLISH])
