"""Which words are alike in their letters."""

import pytest

from agents.rules.index.char_ngrams import MIN_DICE, CharNgrams


def alike(words: list[str], *asked: str) -> list[list[str]]:
    return CharNgrams.of(words).similar_words(CharNgrams.of(asked))


def dice(first: str, second: str) -> float:
    one, other = ({word[at : at + 4] for at in range(len(word) - 3)} for word in (first, second))
    return 2 * len(one & other) / (len(one) + len(other))


WORDS = ["erhohung", "mieterhohung", "mieter", "hohe", "enviaron", "envio", "2026-03-01", "boxen", "boxenmiete", "Чай"]


def test_words_are_alike_by_the_share_of_their_runs() -> None:
    asked = ["mieterhohungen", "erhohungen", "boxenmieten", "enviaran"]
    for word, found in zip(asked, alike(WORDS, *asked), strict=True):
        assert found == [one for one in WORDS if len(one) > 4 and dice(one, word) >= MIN_DICE]
    assert alike(WORDS, "erhohungen") == [["erhohung", "mieterhohung"]]


def test_a_word_is_alike_to_itself() -> None:
    assert alike(WORDS, "boxen") == [["boxen"]]


@pytest.mark.parametrize("word", ["2026-03-01", "hohe", "v1.2.3", "", "\n", "abc12"])
def test_short_words_and_what_is_not_of_letters_alone_have_none_alike(word: str) -> None:
    assert CharNgrams.of([word]).words == []
    assert alike([word, "boxen"], "boxen") == [["boxen"]]


def test_runs_do_not_go_from_one_word_into_the_next() -> None:
    assert alike(["abcde", "fghij"], "bcdefg", "defgh") == [[], []]


def test_letters_of_another_script_are_told_apart() -> None:
    assert alike(["припарковал", "boxen"], "припарковали") == [["припарковал"]]
    assert alike(["boxen"], "припарковали") == [[]]
    assert alike(["abcde"], "qrstu") == [[]]


def test_of_no_words_none_is_alike() -> None:
    assert alike([], "boxen") == [[]]
    assert alike(["boxen"]) == []


def test_a_run_that_is_repeated_makes_no_word_alike_that_is_not() -> None:
    assert alike(["aaaaaaaaaa"], "aaaabbbbbbbb") == [[]]
