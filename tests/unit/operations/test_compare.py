"""Two listings of a user compared, of which the first may be written to meanwhile."""

from typing import Any

import pytest

from operations.compare import compare_memories


def listing(**texts: str) -> dict[str, Any]:
    fields = {"type": "episodic", "occurred_at": "2026-03-01T09:30:00Z", "mode": "general", "version": 1}
    return {name: {**fields, "memory_id": name, "text": text, "superseded_by": None} for name, text in texts.items()}


BEFORE = listing(kept="a", edited="a", forgotten="a")
LATER = listing(kept="a", edited="b", said="a")


@pytest.mark.parametrize("second", [BEFORE, LATER, listing(kept="a", edited="a"), listing(kept="a", edited="b")])
def test_what_the_first_was_told_meanwhile_is_no_difference(second: dict[str, Any]) -> None:
    assert not compare_memories(BEFORE, second, LATER)


def test_what_stays_different_is_told() -> None:
    found = compare_memories(BEFORE, listing(edited="c", extra="a"), LATER)
    assert found.missing == ["kept"]
    assert [memory["memory_id"] for memory in found.extra] == ["extra"]
    assert [(first["text"], second["text"]) for first, second in found.different] == [("b", "c")]
    assert found.equal == 0
