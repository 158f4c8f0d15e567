"""What every lexical index says about the passages of long turns: which of them have a term."""

from typing import Any

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.vocabulary import Postings
from agents.rules.text.passages import cut_passages
from schemas.state.memories import Resource
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores import LexicalStore
from tests.builders.memories import made

FILLER = "There is a lot to say about it, and most was said before by somebody with more patience. " * 4
REPLY = "\n\n".join(f"{word} {FILLER}".strip() for word in ("Tulip violin.", "Rose.", "Compost violins."))
"""Three passages, and the third has another form of a word of the first."""


def put(words: LexicalStore, text: str, number: int = 0, **fields: Any) -> None:
    words.put(0, LexicalDocument(made(text, number, **fields)))


def postings(words: LexicalStore, term: str) -> Postings:
    [found] = words.postings(0, "ana", [term])
    return found


def passages(words: LexicalStore, term: str) -> list[str] | None:
    """Return, for each memory with the term, the passages that have it as bits, the last one first."""
    found = postings(words, term).passages
    return None if found is None else [f"{mask:b}" for mask in found.tolist()]


@pytest.mark.parametrize(
    ("term", "bits"),
    [("rose", "10"), ("patience", "111"), ("violin", "101")],
    ids=["in one", "in all", "several forms of a word"],
)
def test_a_term_of_a_long_turn_names_its_passages(words: LexicalStore, term: str, bits: str) -> None:
    put(words, REPLY)
    assert passages(words, term) == [bits]


def test_counts_of_several_forms_of_a_word_are_added(words: LexicalStore) -> None:
    put(words, REPLY)
    assert postings(words, "violin").counts.tolist() == [2]


def test_a_term_of_short_turns_alone_has_no_passages(words: LexicalStore) -> None:
    put(words, "The violin.")
    assert passages(words, "violin") is None


def test_a_short_turn_beside_a_long_one_is_not_cut(words: LexicalStore) -> None:
    put(words, "The violins.")
    put(words, REPLY, 1)
    put(words, "No violin.", 2)
    assert passages(words, "violin") == ["0", "101", "0"]


def test_texts_of_resources_are_a_passage_behind_the_others(words: LexicalStore) -> None:
    put(words, REPLY, resources=(Resource(uri="file:a", media_type="image/png", text="a heron"),))
    assert passages(words, "heron") == ["1000"]


def test_a_long_summary_is_not_cut(words: LexicalStore) -> None:
    put(words, REPLY, origin="distilled")
    assert passages(words, "rose") is None


def test_names_of_a_long_turn_are_in_no_passage(words: LexicalStore) -> None:
    put(words, REPLY, entities=("Rose",))
    [rose] = words.entity_postings(0, "ana", ["Rose"])
    assert rose.passages is None


def test_an_edit_replaces_the_passages(words: LexicalStore) -> None:
    put(words, REPLY)
    put(words, "\n\n".join(reversed(REPLY.split("\n\n"))))
    assert passages(words, "tulip") == ["100"]


def test_an_edit_to_a_short_text_leaves_no_passages(words: LexicalStore) -> None:
    put(words, REPLY)
    put(words, "Tulip.")
    assert passages(words, "tulip") is None


def test_an_edit_to_a_long_text_brings_passages(words: LexicalStore) -> None:
    put(words, "Tulip.")
    put(words, REPLY)
    assert passages(words, "tulip") == ["1"]


def test_passages_survive_a_restart(words: SqliteLexicalIndex) -> None:
    put(words, REPLY)
    words.commit(0)
    words.open(0)
    assert passages(words, "violin") == ["101"]


def test_the_last_passage_of_a_very_long_turn_is_named(words: LexicalStore) -> None:
    text = f"{'Compost is warm. ' * 3000}Finally a violin."
    put(words, text)
    assert passages(words, "violin") == [f"{1 << (len(cut_passages(text)) - 1):b}"]
