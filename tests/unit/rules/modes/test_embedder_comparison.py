"""Which of two embedders has the turns of one conversation nearer."""

import numpy as np
import pytest

from agents.rules.index.columns import MISSING
from agents.rules.index.memory_columns import MemoryColumns, MemoryKind, MemoryRow, Trait
from agents.rules.modes.embedder_comparison import MAX_CONVERSATION_TURNS, MAX_TURNS, compare, describe, sample_turns

RANDOM = np.random.default_rng(7)
CONVERSATIONS = np.repeat(np.arange(20), 5)


def clustered(noise: float) -> np.typing.NDArray[np.float32]:
    """Vectors of conversations around centres of their own."""
    centres = RANDOM.normal(size=(20, 16))[CONVERSATIONS]
    return (centres + noise * RANDOM.normal(size=centres.shape)).astype(np.float32)


@pytest.mark.parametrize(("own", "general", "verdict"), [(0.1, 3.0, "better"), (3.0, 0.1, "worse")])
def test_a_clear_difference(own: float, general: float, verdict: str) -> None:
    found = compare(clustered(own), clustered(general), CONVERSATIONS)
    assert found.verdict == verdict
    assert abs(found.difference) > found.margin
    assert max(found.recall, found.general_recall) == pytest.approx(1.0)


def test_the_same_vectors_do_not_differ() -> None:
    rows = clustered(1.0)
    found = compare(rows, 3 * rows, CONVERSATIONS)
    assert found.verdict == "no_difference"
    assert found.difference == 0.0
    assert describe("code", [], found.verdict, found)["general_recall_at_10"] == round(found.recall, 4)


def columns(conversations: dict[str, int], mode: str = "code") -> MemoryColumns:
    kind = MemoryKind((("project_id", "p1"), ("user_id", "u1")), mode, "episodic", "medium")
    names = [name for name, turns in conversations.items() for _ in range(turns)]
    traits = {number: Trait(kind, name, None) for number, name in enumerate(dict.fromkeys(names))}
    trait_of = {trait.conversation: number for number, trait in traits.items()}
    rows = [
        MemoryRow(number, f"m{number}", trait_of[name], number, number, 3, 0.5, superseded=False, space=None)
        for number, name in enumerate(names)
    ]
    return MemoryColumns(rows, traits)


def test_a_sample_is_bounded_and_the_same_each_time() -> None:
    memories = columns({f"c{number}": 30 for number in range(40)} | {"alone": 1})
    sample = sample_turns(memories, lambda kind: kind.mode == "code")
    assert len(sample) == MAX_TURNS
    counts = np.unique([example.conversation for example in sample], return_counts=True)[1]
    assert set(counts.tolist()) == {MAX_CONVERSATION_TURNS}
    assert sample == sample_turns(memories, lambda kind: kind.mode == "code")
    assert sample_turns(memories, lambda kind: kind.mode == "journal") == []
    assert MISSING not in {example.conversation for example in sample}
