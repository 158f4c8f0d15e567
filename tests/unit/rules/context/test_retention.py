"""What each interaction mode keeps and drops."""

import pytest

from agents.rules.context.retention import ALWAYS_RELEVANT, KEEPING, in_order
from agents.rules.cues.labels import NO_MARK, Mark
from schemas.interaction import INTERACTION_MODES, InteractionMode

FILLER: list[tuple[str, Mark, InteractionMode | None]] = [
    (f"best {place}", NO_MARK, None) for place in range(ALWAYS_RELEVANT)
]


def test_every_mode_says_what_it_keeps() -> None:
    assert set(KEEPING) == set(INTERACTION_MODES)


@pytest.mark.parametrize(
    ("mode", "marks", "said_as", "stays"),
    [
        ("TASK", Mark.SPECULATION, None, False),
        ("TASK", NO_MARK, "EXPLORATION", False),
        ("TASK", Mark.SPECULATION | Mark.CONSTRAINT, "EXPLORATION", True),
        ("TASK", NO_MARK, "DEBUGGING", True),
        ("EXPLORATION", Mark.CODE, None, False),
        ("EXPLORATION", Mark.TOOL, None, False),
        ("EXPLORATION", Mark.SPECULATION, "EXPLORATION", True),
        ("DEBUGGING", Mark.DONE, None, False),
        ("DEBUGGING", NO_MARK, "EXPLORATION", False),
        ("DEBUGGING", Mark.ERROR | Mark.DONE, None, True),
        ("LEARNING", Mark.CHANGE, None, False),
        ("LEARNING", Mark.EXAMPLE | Mark.TOOL, None, True),
        ("GENERAL", Mark.SPECULATION | Mark.CODE | Mark.TOOL | Mark.COURTESY, "EXPLORATION", True),
    ],
    ids=str,
)
def test_a_mode_drops_what_the_seed_says(
    mode: InteractionMode, marks: Mark, said_as: InteractionMode | None, stays: bool
) -> None:
    kept, dropped = in_order([*FILLER, ("hit", marks, said_as)], KEEPING[mode])
    assert ("hit" in kept, "hit" in dropped) == (stays, not stays)


def test_the_best_hits_stay_whatever_they_are() -> None:
    hits: list[tuple[str, Mark, InteractionMode | None]] = [
        (f"hit {place}", Mark.SPECULATION, "EXPLORATION") for place in range(5)
    ]
    kept, dropped = in_order(hits, KEEPING["TASK"])
    assert kept == [f"hit {place}" for place in range(ALWAYS_RELEVANT)]
    assert dropped == ["hit 3", "hit 4"]


def test_what_is_wanted_comes_forward_but_not_before_everything() -> None:
    hits: list[tuple[str, Mark, InteractionMode | None]] = [(str(place), NO_MARK, None) for place in range(7)]
    hits[6] = ("error", Mark.ERROR, None)
    assert in_order(hits, KEEPING["DEBUGGING"])[0] == ["0", "1", "2", "3", "error", "4", "5"]
