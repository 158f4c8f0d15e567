"""Retention policies of interaction modes."""

import pytest
from modestream_client.vocabulary import InteractionMode

from agents.rules.context.section_candidates import PROTECTED_TOP_K, RETENTION_POLICIES, apply_retention
from agents.rules.cues.labels import NO_LABELS, SentenceLabel
from schemas.state.interaction import INTERACTION_MODES

FILLER: list[tuple[str, SentenceLabel, InteractionMode | None]] = [
    (f"best {place}", NO_LABELS, None) for place in range(PROTECTED_TOP_K)
]


def test_every_mode_has_a_policy() -> None:
    assert set(RETENTION_POLICIES) == set(INTERACTION_MODES)


@pytest.mark.parametrize(
    ("mode", "labels", "interaction_mode", "stays"),
    [
        ("TASK", SentenceLabel.SPECULATION, None, False),
        ("TASK", NO_LABELS, "EXPLORATION", False),
        ("TASK", SentenceLabel.SPECULATION | SentenceLabel.CONSTRAINT, "EXPLORATION", True),
        ("TASK", NO_LABELS, "DEBUGGING", True),
        ("EXPLORATION", SentenceLabel.CODE, None, False),
        ("EXPLORATION", SentenceLabel.TOOL, None, False),
        ("EXPLORATION", SentenceLabel.SPECULATION, "EXPLORATION", True),
        ("DEBUGGING", SentenceLabel.DONE, None, False),
        ("DEBUGGING", NO_LABELS, "EXPLORATION", False),
        ("DEBUGGING", SentenceLabel.ERROR | SentenceLabel.DONE, None, True),
        ("LEARNING", SentenceLabel.CHANGE, None, False),
        ("LEARNING", SentenceLabel.EXAMPLE | SentenceLabel.TOOL, None, True),
        (
            "GENERAL",
            SentenceLabel.SPECULATION | SentenceLabel.CODE | SentenceLabel.TOOL | SentenceLabel.COURTESY,
            "EXPLORATION",
            True,
        ),
    ],
    ids=str,
)
def test_mode_drops_unwanted_memories(
    mode: InteractionMode, labels: SentenceLabel, interaction_mode: InteractionMode | None, stays: bool
) -> None:
    kept, dropped = apply_retention([*FILLER, ("hit", labels, interaction_mode)], RETENTION_POLICIES[mode])
    assert ("hit" in kept) == stays
    assert ("hit" in dropped) != stays


def test_best_hits_are_always_kept() -> None:
    hits: list[tuple[str, SentenceLabel, InteractionMode | None]] = [
        (f"hit {place}", SentenceLabel.SPECULATION, "EXPLORATION") for place in range(PROTECTED_TOP_K + 2)
    ]
    kept, dropped = apply_retention(hits, RETENTION_POLICIES["TASK"])
    assert kept == [f"hit {place}" for place in range(PROTECTED_TOP_K)]
    assert dropped == [f"hit {PROTECTED_TOP_K}", f"hit {PROTECTED_TOP_K + 1}"]


def test_wanted_hits_move_up_but_not_to_the_top() -> None:
    hits: list[tuple[str, SentenceLabel, InteractionMode | None]] = [
        (str(place), NO_LABELS, None) for place in range(7)
    ]
    hits[6] = ("error", SentenceLabel.ERROR, None)
    assert apply_retention(hits, RETENTION_POLICIES["DEBUGGING"])[0] == ["0", "1", "2", "3", "error", "4", "5"]
