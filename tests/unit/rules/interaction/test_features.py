"""Features of a turn."""

import numpy as np
import pytest

from agents.rules.cues.intents import DIRECT_MODES, SYNONYM_MODES
from agents.rules.interaction.features import (
    HASH_BUCKETS,
    HEAD_CHARS,
    INTENTS,
    TAIL_CHARS,
    CueTable,
    dense_features,
    fold_for_hashing,
    hash_ngrams,
    head_and_tail,
)

CUES = CueTable.loads("# a remark\nDO en: write, set up, renam*\nDO ja: 書いて\nWHY de: warum\n")


def test_head_and_tail_of_a_long_text_are_read() -> None:
    part = head_and_tail("a" * 40_000 + "end")
    assert len(part) <= HEAD_CHARS + TAIL_CHARS + 3
    assert part.startswith("a")
    assert part.endswith("end")
    assert head_and_tail("short") == "short"


def test_folding_removes_numbers_case_accents_and_line_ends() -> None:
    assert fold_for_hashing("Käse  12\n34") == fold_for_hashing("kase 9 8") == "kase 0 0"


def test_ngram_indices_are_unique_and_ordered() -> None:
    found = hash_ngrams("write a test test")
    assert np.all(np.diff(found) > 0)
    assert found[0] >= 0
    assert found[-1] < 2 * HASH_BUCKETS
    assert (found < HASH_BUCKETS).any()
    assert (found >= HASH_BUCKETS).any()


@pytest.mark.parametrize("text", ["", "a", "?", "\ud800", "好", "\U0001f600"])
def test_any_text_has_features(text: str) -> None:
    plain = fold_for_hashing(head_and_tail(text))
    assert len(hash_ngrams(plain)) > 0
    assert np.isfinite(dense_features(text, plain, len(text), CUES)).all()


def test_ngram_hashes_are_stable_across_releases() -> None:
    assert int(hash_ngrams("why?").sum()) == 1053742


def test_every_intent_of_the_tables_is_a_feature() -> None:
    assert set(INTENTS) == set(DIRECT_MODES) | set(SYNONYM_MODES)


def test_cues_are_counted_at_the_beginning_and_anywhere() -> None:
    counts = CUES.counts("renaming comes first, later you write")
    do = CUES.groups.index("DO")
    assert counts[0, do] < counts[1, do]
    assert counts[:, CUES.groups.index("WHY")].sum() == 0


def test_cues_are_phrases_stems_and_pieces_of_unspaced_scripts() -> None:
    for text in ("set up", "renamed", "手紙を書いてください"):
        assert CUES.counts(fold_for_hashing(text))[1, 0] > 0
    assert CUES.counts("up set")[1, 0] == 0
    assert CUES.counts("rewritten")[1, 0] == 0


def test_cue_line_without_colon_is_refused() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        CueTable.loads("DO en write")
