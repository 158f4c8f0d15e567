"""Sentences labelled by hand, and the quality of the sentence labels on the held-out half."""

import pytest

from training.labels.__main__ import REPORT
from training.labels.measuring import Quality, found_labels, measure_labels
from training.labels.report import format_report
from training.labels.sentences import LABELS, Label, read_sentences

MIN_PRECISION = 0.95


def test_halves_are_large_and_share_no_conversation_and_no_text() -> None:
    development, held_out = read_sentences("development"), read_sentences("held_out")
    assert min(len(development), len(held_out)) >= 400
    assert not {example.conversation for example in development} & {example.conversation for example in held_out}
    long = {example.text.casefold() for example in development if len(example.text) > 25}
    assert not long & {example.text.casefold() for example in held_out}


@pytest.mark.parametrize("label", LABELS)
def test_labels_of_held_out_sentences_are_right(label: Label) -> None:
    quality = measure_labels(read_sentences("held_out"))[label]
    assert quality.right > 0
    assert quality.precision >= MIN_PRECISION


def test_report_is_that_of_the_current_patterns() -> None:
    assert REPORT.read_text(encoding="utf-8") == format_report(), "run python -m training.labels"


def test_sentence_has_the_labels_of_its_words() -> None:
    assert found_labels("Never log passwords.") == {"safety", "constraint"}
    assert found_labels("Good morning.") == frozenset()


def test_quality_of_few_sentences_proves_little() -> None:
    few, many = Quality(5, 0, 0, 0), Quality(500, 0, 0, 0)
    assert few.precision == many.precision
    assert few.least_precision < 0.6
    assert many.least_precision > 0.99
    assert not Quality(0, 0, 3, 0).least_precision
