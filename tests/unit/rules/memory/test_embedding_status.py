"""State transitions of a memory's embedding."""

from typing import Any

import pytest

from agents.rules.memory.embedding_status import (
    apply_embedded,
    awaits_model,
    is_in_flight,
    mark_pending,
    mark_stale,
    orphaned_location,
    written_location,
)
from schemas.internal.events import Embedded
from schemas.state.memories import Embedding, EmbeddingStatus, VectorLocation
from tests.builders.memories import START, embedded_in, made

OLD_LOCATION = VectorLocation(mode="general", space="s1")
NEW_LOCATION = VectorLocation(mode="general", space="s2")


def embedded(**fields: Any) -> Embedded:
    known = {"memory_id": "m", "content_hash": "h", "mode": "general", "status": "ready", "space": "s2", "at": START}
    return Embedded.model_validate(known | fields)


def test_written_vector_is_ready_at_its_location() -> None:
    embedding = apply_embedded(made("a", embedding=Embedding(error="waits")), embedded()).embedding
    assert (embedding.status, embedding.place, embedding.space, embedding.error) == ("ready", NEW_LOCATION, "s2", None)
    assert (embedding.content_hash, embedding.embedded_at) == ("h", START)


def test_failed_embedding_keeps_the_last_location() -> None:
    embedding = apply_embedded(made("a", embedding=embedded_in("s1")), embedded(status="failed", error="why")).embedding
    assert (embedding.status, embedding.place, embedding.space, embedding.error) == (
        "failed",
        OLD_LOCATION,
        None,
        "why",
    )


@pytest.mark.parametrize("error", [None, "no model"])
def test_pending_vector_keeps_the_last_location(error: str | None) -> None:
    embedding = mark_pending(made("a", embedding=embedded_in("s1")), error).embedding
    assert (embedding.status, embedding.place, embedding.space, embedding.error) == (
        "pending",
        OLD_LOCATION,
        None,
        error,
    )


def test_mark_stale_clears_the_error() -> None:
    embedding = mark_stale(mark_pending(made("a", embedding=embedded_in("s1")), "no model")).embedding
    assert (embedding.status, embedding.place, embedding.space, embedding.error) == ("stale", OLD_LOCATION, None, None)


@pytest.mark.parametrize("status", ["failed", "waiting", "stale"])
def test_only_ready_events_have_a_written_location(status: str) -> None:
    assert written_location(embedded()) == NEW_LOCATION
    assert written_location(embedded(status=status)) is None
    assert written_location(embedded(space=None)) is None


@pytest.mark.parametrize(
    ("status", "error", "in_flight", "waits"),
    [
        ("pending", None, True, False),
        ("pending", "no model", False, True),
        ("stale", None, False, True),
        ("ready", None, False, False),
        ("failed", "why", False, False),
    ],
)
def test_in_flight_and_waiting_by_status(
    status: EmbeddingStatus, error: str | None, in_flight: bool, waits: bool
) -> None:
    memory = made("a", embedding=Embedding(status=status, error=error))
    assert (is_in_flight(memory), awaits_model(memory)) == (in_flight, waits)


@pytest.mark.parametrize("status", ["ready", "stale", "failed"])
def test_unexpected_vector_orphans_the_last_one(status: EmbeddingStatus) -> None:
    memory = made("a", embedding=embedded_in("s1", status=status))
    assert orphaned_location(memory, NEW_LOCATION) == OLD_LOCATION
    assert orphaned_location(memory, OLD_LOCATION) is None
    assert orphaned_location(memory, None) is None


def test_in_flight_vector_orphans_nothing() -> None:
    moving = made("a", embedding=embedded_in("s1", status="pending"))
    assert orphaned_location(moving, NEW_LOCATION) is None
    assert orphaned_location(mark_pending(moving, "no model"), NEW_LOCATION) == OLD_LOCATION


def test_first_vector_orphans_nothing() -> None:
    assert orphaned_location(made("a", embedding=Embedding(status="failed")), NEW_LOCATION) is None
