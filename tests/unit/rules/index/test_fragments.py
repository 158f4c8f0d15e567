"""A text that has a string has words with its fragments: whatever joins, cuts and case."""

from hypothesis import example, given
from hypothesis import strategies as st

from agents.rules.index.lexical_document import MAX_INDEXED_TERMS, LexicalDocument
from agents.rules.index.vocabulary import Vocabulary
from agents.rules.text.tokenizer import fragments
from tests.builders.memories import made

WORDS = st.sampled_from(
    ["fooBar", "snake_case", "Kent's", "ab", "GRÖSSE", "größe", "东京", "x" * 90, "fly.io", "ﬁne", "é", "Й"]
)
JOINTS = st.sampled_from(["", " ", "-", "_", "/", ",", "。", "\n", "'"])
TEXTS = st.lists(st.tuples(WORDS, JOINTS), min_size=1, max_size=150).map(lambda pairs: "".join(map("".join, pairs)))


@given(TEXTS, st.integers(0, 2000), st.integers(1, 30))
@example("a," * 300 + "needle" + ",b" * 300, 600, 6)
@example("ab," * 130 + "fooBar," * 90, 395, 9)
def test_no_text_with_a_string_is_excluded(text: str, start: int, length: int) -> None:
    folded = text.casefold()
    needle = folded[start % len(folded) :][:length]
    analysis = LexicalDocument(made(text)).analysis
    vocabulary = Vocabulary(analysis.counts)
    assert len(analysis.counts) < MAX_INDEXED_TERMS
    assert all(vocabulary.containing(fragment) for fragment in fragments(needle))


def test_a_text_without_the_string_is_excluded() -> None:
    vocabulary = Vocabulary(LexicalDocument(made("The lamp is in the cellar.")).analysis.counts)
    assert vocabulary.containing("kent") == []
    assert vocabulary.containing("ella") == ["cellar"]
