"""A turn as numbers."""

import numpy as np
import pytest

from agents.rules.cues.intents import DIRECT, VARIATIONS
from agents.rules.interaction.cues import Cues
from agents.rules.interaction.features import BUCKETS, HEAD, INTENTS, TAIL, folded, pieces, read_part, values

CUES = Cues.loads("# a remark\nDO en: write, set up, renam*\nDO ja: 書いて\nWHY de: warum\n")


def test_a_long_text_is_read_at_both_ends() -> None:
    part = read_part("a" * 40_000 + "end")
    assert len(part) <= HEAD + TAIL + 3
    assert part.startswith("a")
    assert part.endswith("end")
    assert read_part("short") == "short"


def test_numbers_cases_accents_and_line_ends_make_no_difference() -> None:
    assert folded("Käse  12\n34") == folded("kase 9 8") == "kase 0 0"


def test_pieces_are_numbers_of_words_and_characters_each_once() -> None:
    found = pieces("write a test test")
    assert np.all(np.diff(found) > 0)
    assert found[0] >= 0
    assert found[-1] < 2 * BUCKETS
    assert (found < BUCKETS).any()
    assert (found >= BUCKETS).any()


@pytest.mark.parametrize("text", ["", "a", "?", "\ud800", "好", "\U0001f600"])
def test_any_text_has_features(text: str) -> None:
    plain = folded(read_part(text))
    assert len(pieces(plain)) > 0
    assert np.isfinite(values(text, plain, len(text), CUES)).all()


def test_pieces_stay_the_same_from_version_to_version() -> None:
    assert int(pieces("why?").sum()) == 1053742


def test_every_intent_of_the_tables_is_a_feature() -> None:
    assert set(INTENTS) == set(DIRECT) | set(VARIATIONS)


def test_cues_count_at_the_beginning_and_anywhere() -> None:
    counts = CUES.counts("renaming comes first, later you write")
    do = CUES.groups.index("DO")
    assert counts[0, do] < counts[1, do]
    assert counts[:, CUES.groups.index("WHY")].sum() == 0


def test_cues_are_phrases_stems_and_pieces_of_unspaced_scripts() -> None:
    for text in ("set up", "renamed", "手紙を書いてください"):
        assert CUES.counts(folded(text))[1, 0] > 0
    assert CUES.counts("up set")[1, 0] == 0
    assert CUES.counts("rewritten")[1, 0] == 0


def test_a_line_without_a_colon_is_refused() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        Cues.loads("DO en write")
