"""What the lexical index stores of a memory: its terms, and a hash of all that they depend on."""

from collections import Counter

import pytest

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.lexical_document import (
    LAST_PASSAGE_BIT,
    LONG_TEXT_CHARS,
    MAX_INDEXED_TERMS,
    LexicalDocument,
    entity_key,
    estimate_importance,
    indexed_words,
    is_long,
    is_question,
)
from agents.rules.text.languages import detect_language
from agents.rules.text.passages import cut_passages
from agents.rules.text.tokenizer import tokenize
from schemas.state.memories import CategoryAssignment, Embedding, Item
from tests.builders.memories import made


def test_words_keep_order_and_names_are_sorted() -> None:
    health, art = (CategoryAssignment(name=name, confidence=0.5) for name in ("health", "art"))
    memory = made("a violin, a bow", entities=("Köln", "Mrs  Okafor", "köln"), item=Item(categories=(health, art)))
    analysis = LexicalDocument(memory).analysis
    assert analysis.lines == "a\nviolin\na\nbow"
    assert analysis.length == 4
    assert analysis.entities == ["koln", "mrs okafor"]
    assert analysis.categories == ["art", "health"]


def test_labels_are_those_of_the_text() -> None:
    assert SentenceLabel.DECISION in LexicalDocument(made("We decided to use PostgreSQL.")).analysis.labels


def test_digest_depends_on_what_is_analysed_alone() -> None:
    memory = made("violin", entities=("Ana",))
    same = memory.model_copy(update={"embedding": Embedding(status="failed"), "superseded_by": "x", "mode": "code"})
    assert LexicalDocument(same).digest == LexicalDocument(memory).digest
    for change in ({"text": "viola"}, {"entities": ("Ben",)}, {"role": "assistant"}, {"item": Item(kind="goal")}):
        assert LexicalDocument(memory.model_copy(update=change)).digest != LexicalDocument(memory).digest


def test_importance_follows_the_record_where_the_text_is_unchanged() -> None:
    memory = made("violin")
    assert LexicalDocument(memory.model_copy(update={"importance": 0.9})).importance(1) == 0.9
    assert LexicalDocument(memory).importance(1) < 0.5


def test_line_breaks_in_entities_are_spaces() -> None:
    assert entity_key("Mrs\n Okafor") == "mrs okafor"


def test_words_are_those_of_the_text() -> None:
    text = "The harbour master signs every ship's papers in Hamburg-Altona. " * 50
    words, found = tokenize(text), indexed_words(text)
    assert found.length == len(words)
    assert found.language == detect_language(words)
    assert found.lines == "\n".join(words)


def test_words_of_a_long_text_are_those_of_the_whole() -> None:
    text = " ".join(f"Ship's paper {number}-B fly.io/{number} \u00e9t\u00e9 na\u00efve 港口" for number in range(4000))
    words, found = tokenize(text), indexed_words(text)
    assert is_long(text)
    assert found.length == len(words)
    assert found.language == detect_language(words)
    assert found.lines == "\n".join(words)
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


def test_given_importance_wins() -> None:
    assert estimate_importance(0.0, "a long telling sentence", 40) == 0.0
    assert estimate_importance(1.0, "Why?", 1) == 1.0


def test_question_is_less_important_than_statement() -> None:
    assert estimate_importance(None, "We moved the violin lesson?", 5) < estimate_importance(
        None, "We moved the violin lesson.", 5
    )


def test_importance_grows_with_length_and_saturates() -> None:
    assert (
        estimate_importance(None, "yes", 1)
        < estimate_importance(None, "yes", 12)
        < estimate_importance(None, "yes", 40)
    )
    assert estimate_importance(None, "yes", 40) == estimate_importance(None, "yes", 4000) == 0.5


@pytest.mark.parametrize("text", ["Really?", 'She said "really?"', "去哪里\uff1f", "Where? \n", "(ok?)"])
def test_question_ends_with_a_question_mark(text: str) -> None:
    assert is_question(text)
    assert not is_question(text + " Yes.")
