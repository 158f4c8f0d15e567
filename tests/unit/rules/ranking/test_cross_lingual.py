"""Memories in another language than the question, and the merge of two models' results."""

import pytest

from agents.rules.cues.labels import label_memory
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.ranking.cross_lingual import (
    CROSS_LINGUAL_BIAS,
    MIN_OTHER_LANGUAGE_COUNT,
    is_worth_asking,
    merge_cross_lingual,
    other_language_mask,
    split_by_language,
)
from agents.rules.text.languages import detect_language
from agents.rules.text.tokenizer import tokenize
from schemas.models.vectors import Scored
from tests.builders.memories import made

ENGLISH, SPANISH, SHORT, JAPANESE = (
    "The kettle is in the kitchen.",
    "La tetera está en la cocina con las tazas.",
    "Claro que",
    "昨日、新しい自転車を買いました。",
)
IDS = ["english", "spanish", "short", "japanese"]


@pytest.fixture
def memory_columns() -> MemoryColumns:
    """One memory of each kind, numbered from 0, with the ids above."""
    memories = [made(text, number) for number, text in enumerate((ENGLISH, SPANISH, SHORT, JAPANESE))]
    rows = [
        MemoryRow(
            number, IDS[number], 0, one.occurred_ms, one.source, 3, 0.5, False, "s", language, int(label_memory(one))
        )
        for number, one in enumerate(memories)
        for language in [detect_language(tokenize(one.text))]
    ]
    return MemoryColumns(rows, {0: Trait.of(memories[0])})


def test_english_question_masks_foreign_memories(memory_columns: MemoryColumns) -> None:
    assert other_language_mask(memory_columns, foreign=False).tolist()[:4] == [False, True, False, True]


def test_foreign_question_masks_memories_detected_as_english(memory_columns: MemoryColumns) -> None:
    assert other_language_mask(memory_columns, foreign=True).tolist()[:4] == [True, False, False, False]


def test_split_keeps_order_and_drops_unknown_ids(memory_columns: MemoryColumns) -> None:
    parts = split_by_language(["japanese", "gone", "english", "spanish", "short"], memory_columns, foreign=False)
    assert parts == {False: ["english", "short"], True: ["japanese", "spanish"]}


@pytest.mark.parametrize(
    ("other_language_count", "total", "expected"),
    [
        (0, 0, False),
        (0, 10, False),
        (1, 5, True),
        (2, 260, False),
        (3, 260, True),
        (MIN_OTHER_LANGUAGE_COUNT, 50_000, True),
    ],
)
def test_second_model_is_asked_only_for_enough_memories(other_language_count: int, total: int, expected: bool) -> None:
    assert is_worth_asking(other_language_count, total) == expected


def test_merge_returns_a_single_own_language_result_unchanged(memory_columns: MemoryColumns) -> None:
    found = [Scored("spanish", 0.1), Scored("gone", 0.5)]
    assert merge_cross_lingual({False: found}, memory_columns, foreign=False, bias=0.11, limit=1) == found


def test_merge_takes_own_memories_of_each_model_and_adds_the_bias(memory_columns: MemoryColumns) -> None:
    own = [Scored("spanish", 0.9), Scored("english", 0.5), Scored("short", 0.1)]
    other = [Scored("english", 0.8), Scored("spanish", 0.45), Scored("gone", 0.4), Scored("japanese", -0.25)]
    found = merge_cross_lingual({False: own, True: other}, memory_columns, foreign=False, bias=0.125, limit=9)
    assert found == [Scored("spanish", 0.575), Scored("english", 0.5), Scored("short", 0.1), Scored("japanese", -0.125)]
    assert (
        merge_cross_lingual({False: own, True: other}, memory_columns, foreign=False, bias=0.125, limit=2) == found[:2]
    )


def test_single_cross_lingual_result_is_kept_and_capped(memory_columns: MemoryColumns) -> None:
    found = merge_cross_lingual(
        {True: [Scored("short", 0.95), Scored("b", 0.5)]}, memory_columns, foreign=False, bias=0.125, limit=9
    )
    assert found == [Scored("short", 1.0), Scored("b", 0.625)]


def test_merge_breaks_ties_by_id(memory_columns: MemoryColumns) -> None:
    found = merge_cross_lingual(
        {False: [Scored("short", 0.5)], True: [Scored("japanese", 0.5)]},
        memory_columns,
        foreign=False,
        bias=0.0,
        limit=2,
    )
    assert [one.memory_id for one in found] == ["japanese", "short"]


def test_cross_lingual_bias_is_never_negative() -> None:
    assert all(one >= 0 for bias in CROSS_LINGUAL_BIAS.values() for one in bias)
