"""What the lexical index stores of a memory: its terms, and a hash of all that they depend on."""

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.lexical_document import LexicalDocument, entity_key
from schemas.state.memories import CategoryAssignment, Embedding, Item
from tests.builders.memories import made


def test_words_keep_order_and_names_are_sorted() -> None:
    health, art = (CategoryAssignment(name=name, confidence=0.5) for name in ("health", "art"))
    memory = made("a violin, a bow", entities=("Köln", "Mrs  Okafor", "köln"), item=Item(categories=(health, art)))
    analysis = LexicalDocument(memory).analysis
    assert (analysis.lines, analysis.length) == ("a\nviolin\na\nbow", 4)
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
