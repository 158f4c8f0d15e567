"""Where a memory's vector stands after what happened to it."""

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
from schemas.events import Embedded
from schemas.memories import Embedding, EmbeddingStatus, VectorLocation
from tests.builders.memories import START, embedded_in, made

HERE = VectorLocation(mode="general", space="s1")
THERE = VectorLocation(mode="general", space="s2")


def said(**fields: Any) -> Embedded:
    known = {"memory_id": "m", "content_hash": "h", "mode": "general", "status": "ready", "space": "s2", "at": START}
    return Embedded.model_validate(known | fields)


def test_a_vector_that_is_written_is_ready_where_it_was_written() -> None:
    embedding = apply_embedded(made("a", embedding=Embedding(error="waits")), said()).embedding
    assert (embedding.status, embedding.place, embedding.space, embedding.error) == ("ready", THERE, "s2", None)
    assert (embedding.content_hash, embedding.embedded_at) == ("h", START)


def test_a_vector_that_could_not_be_made_leaves_the_place_of_the_last_one() -> None:
    embedding = apply_embedded(made("a", embedding=embedded_in("s1")), said(status="failed", error="why")).embedding
    assert (embedding.status, embedding.place, embedding.space, embedding.error) == ("failed", HERE, None, "why")


@pytest.mark.parametrize("error", [None, "no model"])
def test_a_vector_that_is_due_keeps_the_place_of_the_last_one_and_is_not_ready(error: str | None) -> None:
    embedding = mark_pending(made("a", embedding=embedded_in("s1")), error).embedding
    assert (embedding.status, embedding.place, embedding.space, embedding.error) == ("pending", HERE, None, error)


def test_a_vector_of_another_space_is_stale_and_waits_for_nothing_yet() -> None:
    embedding = mark_stale(mark_pending(made("a", embedding=embedded_in("s1")), "no model")).embedding
    assert (embedding.status, embedding.place, embedding.space, embedding.error) == ("stale", HERE, None, None)


@pytest.mark.parametrize("status", ["failed", "waiting", "stale"])
def test_nothing_is_written_but_what_is_ready(status: str) -> None:
    assert written_location(said()) == THERE
    assert written_location(said(status=status)) is None
    assert written_location(said(space=None)) is None


@pytest.mark.parametrize(
    ("status", "error", "on_its_way", "waits"),
    [
        ("pending", None, True, False),
        ("pending", "no model", False, True),
        ("stale", None, False, True),
        ("ready", None, False, False),
        ("failed", "why", False, False),
    ],
)
def test_a_vector_is_on_its_way_or_waits_or_neither(
    status: EmbeddingStatus, error: str | None, on_its_way: bool, waits: bool
) -> None:
    memory = made("a", embedding=Embedding(status=status, error=error))
    assert (is_in_flight(memory), awaits_model(memory)) == (on_its_way, waits)


@pytest.mark.parametrize("status", ["ready", "stale", "failed"])
def test_a_vector_that_nobody_expected_leaves_one_behind(status: EmbeddingStatus) -> None:
    memory = made("a", embedding=embedded_in("s1", status=status))
    assert orphaned_location(memory, THERE) == HERE
    assert orphaned_location(memory, HERE) is None
    assert orphaned_location(memory, None) is None


def test_a_vector_on_its_way_empties_the_place_of_the_last_one_itself() -> None:
    moving = made("a", embedding=embedded_in("s1", status="pending"))
    assert orphaned_location(moving, THERE) is None
    assert orphaned_location(mark_pending(moving, "no model"), THERE) == HERE


def test_nothing_is_left_behind_by_a_first_vector() -> None:
    assert orphaned_location(made("a", embedding=Embedding(status="failed")), THERE) is None
