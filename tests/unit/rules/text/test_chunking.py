"""Where sentences stand, and how long texts are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agents.rules.text.chunking import MAX_CHUNK_CHARS, chunk_text, sentence_spans

TEXTS = some.text(alphabet=some.sampled_from('ab .!?\n\t-"1>|`\u2026\u201c\u201d\U0001f382'), max_size=300)


def stated(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentence_spans(text)]


def test_sentences_are_found_where_they_end() -> None:
    assert stated("One is here.  Two is there! Three?\nFour") == ["One is here.", "Two is there!", "Three?", "Four"]


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
def test_a_full_stop_that_ends_no_sentence_does_not_cut(text: str) -> None:
    assert stated(text) == [text]


def test_a_unit_before_a_full_stop_is_no_title() -> None:
    assert stated("It takes 200 ms. To deploy, wait.") == ["It takes 200 ms.", "To deploy, wait."]


def test_the_mark_of_a_list_is_no_part_of_the_sentence() -> None:
    assert stated("- Never deploy.\n2) Call Ana.\n## A title") == ["Never deploy.", "Call Ana.", "A title"]


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
def test_what_is_quoted_or_code_is_no_sentence_of_the_writer(text: str) -> None:
    assert stated(text) == []


def test_after_a_quotation_the_writer_speaks_again() -> None:
    assert stated('She wrote: "We use Oracle. It is slow." We use MySQL.') == ["We use MySQL."]


@given(TEXTS)
def test_spans_of_sentences_lie_inside_the_text_in_order(text: str) -> None:
    spans = sentence_spans(text)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert all(text[span.start : span.end] == text[span.start : span.end].strip() for span in spans)


@given(TEXTS, some.integers(min_value=5, max_value=60))
def test_segments_hold_all_that_is_no_white_space_and_fit_the_window(text: str, window: int) -> None:
    spans = chunk_text(text, window)
    assert all(0 < span.end - span.start <= window for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    kept = "".join(text[span.start : span.end] for span in spans)
    assert "".join(kept.split()) == ("".join(text.split()) if len(text) > window else "")


def test_a_document_is_cut_where_a_sentence_ends() -> None:
    text = "This sentence has forty letters in it. " * 60
    spans = chunk_text(text)
    assert all(text[span.start : span.end].endswith("it.") for span in spans)
    assert len(spans) <= len(text) // (MAX_CHUNK_CHARS // 2) + 1


def test_a_text_that_fits_the_window_is_not_cut() -> None:
    assert chunk_text("Short. Text.") == []


@pytest.mark.parametrize("piece", [" ", ".", "\n", "- ", '"', "1. ", "a. ", "\u201c", "e.g. ", "```\n"])
def test_a_long_text_of_one_piece_is_cut_in_no_time_to_speak_of(piece: str) -> None:
    hostile = piece * (32_768 // len(piece))
    sentence_spans(hostile)
    chunk_text(hostile)
