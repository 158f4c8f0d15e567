from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agents.rules.text.passages import MAX_CHUNK_CHARS, chunk_text, sentence_spans

TEXTS = some.text(alphabet=some.sampled_from('ab .!?\n\t-"1>|`\u2026\u201c\u201d\U0001f382'), max_size=300)


def stated(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One is here.  Two is there! Three?\nFour", ["One is here.", "Two is there!", "Three?", "Four"]),
        ("It takes 200 ms. To deploy, wait.", ["It takes 200 ms.", "To deploy, wait."]),
        ("- Never deploy.\n2) Call Ana.\n## A title", ["Never deploy.", "Call Ana.", "A title"]),
        ('She wrote: "We use Oracle. It is slow." We use MySQL.', ["We use MySQL."]),
    ],
    ids=["punctuation and lines", "a unit is no abbreviation", "without bullets", "after a quotation"],
)
def test_sentences_of_a_text(text: str, sentences: list[str]) -> None:
    assert stated(text) == sentences


@pytest.mark.parametrize(
    "text",
    [
        "Ask Dr. Weber about it.",
        "Bring fruit, e.g. apples.",
        "Wir sehen uns am 3. Mai in Bonn.",
        "Version 1.2.3 is out.",
        "J. Doe signs it.",
    ],
)
def test_abbreviations_and_dates_do_not_end_a_sentence(text: str) -> None:
    assert stated(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "> We use Oracle.",
        "| port | 7401 |",
        "```\nWe use Oracle.\n```",
        '"We use Oracle. It is slow." ',
        "\u201cWe use Oracle. It is slow.\u201d",
        "\u201eWir nehmen Oracle. Es ist langsam.\u201c",
        'She wrote: "We use Oracle. It is slow. We know."',
    ],
)
def test_quotations_code_and_tables_are_skipped(text: str) -> None:
    assert stated(text) == []


@given(TEXTS)
def test_sentence_spans_are_ordered_and_inside_the_text(text: str) -> None:
    spans = sentence_spans(text)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(span.end <= other.start for span, other in pairwise(spans))
    assert all(text[span.start : span.end] == text[span.start : span.end].strip() for span in spans)


@given(TEXTS, some.integers(min_value=5, max_value=60))
def test_chunks_keep_all_text_and_fit_the_window(text: str, window: int) -> None:
    spans = chunk_text(text, window)
    assert all(0 < span.end - span.start <= window for span in spans)
    assert all(span.end <= other.start for span, other in pairwise(spans))
    kept = "".join(text[span.start : span.end] for span in spans)
    assert "".join(kept.split()) == ("".join(text.split()) if len(text) > window else "")


def test_chunks_end_at_sentence_ends() -> None:
    text = "This sentence has forty letters in it. " * 60
    spans = chunk_text(text)
    assert all(text[span.start : span.end].endswith("it.") for span in spans)
    assert len(spans) <= len(text) // (MAX_CHUNK_CHARS // 2) + 1


def test_short_text_has_no_chunks() -> None:
    assert chunk_text("Short. Text.") == []


@pytest.mark.parametrize("piece", [" ", ".", "\n", "- ", '"', "1. ", "a. ", "\u201c", "e.g. ", "```\n"])
def test_repetitive_text_is_cut_in_linear_time(piece: str) -> None:
    hostile = piece * (32_768 // len(piece))
    sentence_spans(hostile)
    chunk_text(hostile)
