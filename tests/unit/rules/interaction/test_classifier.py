"""The shipped classifier and its file format."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents.rules.interaction.classifier import (
    HASH_BUCKETS,
    HEAD_CHARS,
    INTENTS,
    MODEL_FILE_MAGIC,
    TAIL_CHARS,
    CueTable,
    InteractionClassifier,
    dense_features,
    fold_for_hashing,
    hash_ngrams,
    head_and_tail,
)
from schemas.state.interaction import INTERACTION_MODES
from tests.builders.taxonomies import SHIPPED

FILE = Path(__file__).parents[4] / "agents" / "data" / "interaction_model.bin"
ZERO_VECTOR = np.zeros(384, np.float32)


@pytest.fixture(scope="module")
def classifier() -> InteractionClassifier:
    return InteractionClassifier.loads(FILE.read_bytes())


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("Add pagination to the user list, 20 rows a page, please", "TASK"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'id'", "DEBUGGING"),
        ("Explain the difference between TCP and UDP", "LEARNING"),
        ("I'm not sure whether we should move, maybe we could stay. What do you think?", "EXPLORATION"),
        ("thanks, good night!", "GENERAL"),
        ("Übersetze diesen Satz bitte ins Englische", "TASK"),
        ("¿Cuál es la diferencia entre ser y estar?", "LEARNING"),
        ("merci beaucoup, à demain !", "GENERAL"),
    ],
)
def test_words_alone_decide_clear_cases(classifier: InteractionClassifier, text: str, mode: str) -> None:
    assert INTERACTION_MODES[int(classifier.probabilities(text, ZERO_VECTOR).argmax())] == mode


@pytest.mark.parametrize("text", ["", " ", "?", "\ud800", "\x00", "a" * 32_768, "好" * 32_768, "\n" * 32_768])
def test_any_text_gives_probabilities(classifier: InteractionClassifier, text: str) -> None:
    shares = classifier.probabilities(text, ZERO_VECTOR)
    assert shares.shape == (len(INTERACTION_MODES),)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)


def test_vector_changes_probabilities(classifier: InteractionClassifier) -> None:
    first, second = (
        classifier.probabilities("the thing with the wheel", at) for at in np.eye(384, dtype=np.float32)[:2]
    )
    assert not np.allclose(first, second)


def test_vector_of_another_shape_is_refused(classifier: InteractionClassifier) -> None:
    with pytest.raises(ValueError, match="768"):
        classifier.probabilities("a", np.zeros(768, np.float32))


@pytest.mark.parametrize(
    "text",
    [
        "We moved the piano on Sunday. It took five of us and a lot of swearing.",
        "My sister's back from Oslo, with a cold and two suitcases of knitting wool.",
        "Grandpa told the whole table how he'd met her on a night train, and nobody ate.",
        "Gestern war die Feier, Opa hat getanzt und ist dann im Sessel eingeschlafen.",
    ],
)
def test_telling_is_no_exploration(classifier: InteractionClassifier, text: str) -> None:
    shares = dict(zip(INTERACTION_MODES, classifier.probabilities(text, ZERO_VECTOR).tolist(), strict=True))
    assert shares["EXPLORATION"] < 0.5 < shares["GENERAL"]


def test_model_file_is_small_and_described() -> None:
    data = FILE.read_bytes()
    assert len(data) < 2_000_000
    assert json.loads(data[len(MODEL_FILE_MAGIC) : data.index(b"\n", len(MODEL_FILE_MAGIC))])["modes"] == list(
        INTERACTION_MODES
    )


def test_malformed_files_are_refused() -> None:
    data = FILE.read_bytes()
    for damaged in (b"", b"{}\n", data[1:], data + b"x", data[:-1], data.replace(b"EXPLORATION", b"EXPLOSIONS!", 1)):
        with pytest.raises(ValueError, match=r"model|buffer|JSON|Expecting|subsection"):
            InteractionClassifier.loads(damaged)


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
    assert set(INTENTS) == set(SHIPPED.intents)


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
