"""State transitions of a memory's embedding."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from modestream_client.vocabulary import EmbeddingStatus

from agents.rules.memory.embedding_status import (
    apply_embedded,
    awaits_model,
    is_in_flight,
    is_in_other_space,
    job_outcome,
    maintenance_action,
    mark_pending,
    mark_stale,
    mark_waiting,
    orphaned_location,
    written_location,
)
from schemas.internal.changes import Job, JobKind
from schemas.internal.events import Embedded
from schemas.scopes import Scope
from schemas.state.memories import Embedding, Memory, VectorLocation
from tests.builders.memories import START, embedded_in, made

OLD_LOCATION = VectorLocation(mode="general", space="s1")
NEW_LOCATION = VectorLocation(mode="general", space="s2")


def embedded(**fields: Any) -> Embedded:
    known = {"memory_id": "m", "content_hash": "h", "mode": "general", "status": "ready", "space": "s2", "at": START}
    return Embedded.model_validate(known | fields)


def test_written_vector_is_ready_at_its_location() -> None:
    embedding = apply_embedded(made("a", embedding=Embedding(error="waits")), embedded()).embedding
    assert embedding.status == "ready"
    assert embedding.place == NEW_LOCATION
    assert embedding.space == "s2"
    assert embedding.error is None
    assert embedding.content_hash == "h"
    assert embedding.embedded_at == START


def test_failed_embedding_keeps_the_last_location() -> None:
    embedding = apply_embedded(made("a", embedding=embedded_in("s1")), embedded(status="failed", error="why")).embedding
    assert embedding.status == "failed"
    assert embedding.place == OLD_LOCATION
    assert embedding.space is None
    assert embedding.error == "why"


def test_pending_vector_keeps_the_last_location() -> None:
    embedding = mark_pending(made("a", embedding=embedded_in("s1"))).embedding
    assert embedding.status == "pending"
    assert embedding.place == OLD_LOCATION
    assert embedding.space is None
    assert embedding.error is None


def waiting_memory(**fields: Any) -> Memory:
    event = embedded(status="waiting", space=None, error="no model", code="model_missing", **fields)
    return mark_waiting(made("a", embedding=embedded_in("s1")), event)


@pytest.mark.parametrize("mark", [mark_pending, mark_stale])
def test_vector_that_is_due_again_has_no_error(mark: Callable[[Memory], Memory]) -> None:
    embedding = mark(waiting_memory()).embedding
    assert embedding.place == OLD_LOCATION
    assert embedding.space is None
    assert embedding.error is None
    assert embedding.error_code is None
    assert embedding.error_at is None


def test_error_has_its_code_and_the_time_since_when_it_lasts() -> None:
    first = waiting_memory(at=BEFORE)
    again = mark_waiting(first, embedded(status="waiting", space=None, error="x", code="model_missing", at=AFTER))
    assert again.embedding.error_code == "model_missing"
    assert again.embedding.error_at == BEFORE


def test_another_error_begins_when_it_happens() -> None:
    failed = apply_embedded(
        waiting_memory(at=BEFORE), embedded(status="failed", error="x", code="text_refused", at=AFTER)
    )
    assert failed.embedding.error_code == "text_refused"
    assert failed.embedding.error_at == AFTER


def test_written_vector_has_no_error() -> None:
    embedding = apply_embedded(waiting_memory(), embedded()).embedding
    assert embedding.error is None
    assert embedding.error_code is None
    assert embedding.error_at is None


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
    assert is_in_flight(memory) == in_flight
    assert awaits_model(memory) == waits


@pytest.mark.parametrize("status", ["ready", "stale", "failed"])
def test_unexpected_vector_orphans_the_last_one(status: EmbeddingStatus) -> None:
    memory = made("a", embedding=embedded_in("s1", status=status))
    assert orphaned_location(memory, NEW_LOCATION) == OLD_LOCATION
    assert orphaned_location(memory, OLD_LOCATION) is None
    assert orphaned_location(memory, None) is None


def test_in_flight_vector_orphans_nothing() -> None:
    moving = made("a", embedding=embedded_in("s1", status="pending"))
    assert orphaned_location(moving, NEW_LOCATION) is None
    waiting = mark_waiting(moving, embedded(status="waiting", space=None, error="no model"))
    assert orphaned_location(waiting, NEW_LOCATION) == OLD_LOCATION


def test_first_vector_orphans_nothing() -> None:
    assert orphaned_location(made("a", embedding=Embedding(status="failed")), NEW_LOCATION) is None


BEFORE, AFTER = START - timedelta(hours=1), START + timedelta(hours=1)


def job(kind: JobKind) -> Job:
    return Job(scope=Scope(user_id="ana"), job_id="j", kind=kind, started_at=START + timedelta(minutes=1))


def memory_with(status: EmbeddingStatus, **fields: object) -> Memory:
    return made("cello", embedding=embedded_in("s1", status=status).model_copy(update=fields))


@pytest.mark.parametrize(
    ("kind", "makes"),
    [
        ("backfill", {"stale", "waiting"}),
        ("rebuild", {"ready", "stale", "waiting", "failed"}),
        ("reconcile", {"stale", "waiting"}),
        ("retry_failed", {"failed"}),
    ],
)
def test_each_job_kind_embeds_its_own_statuses(kind: JobKind, makes: set[str]) -> None:
    memories = {status: memory_with(status) for status in ("ready", "stale", "failed", "not_applicable")}
    memories["waiting"] = memory_with("pending", error="its model is missing")
    found = {name: maintenance_action(job(kind), memory, "s1") for name, memory in memories.items()}
    assert {name for name, what in found.items() if what == "make"} == makes
    assert {found[name] for name in found.keys() - makes} <= {"skip"}


def test_in_flight_vector_is_awaited() -> None:
    assert maintenance_action(job("backfill"), memory_with("pending"), "s1") == "await"
    assert maintenance_action(job("retry_failed"), memory_with("pending"), "s1") == "skip"


def test_vector_of_another_space_or_missing_in_the_index_is_made() -> None:
    ready = memory_with("ready")
    assert maintenance_action(job("backfill"), ready, "s2") == "make"
    assert maintenance_action(job("reconcile"), ready, "s1", is_missing=True) == "make"
    assert [is_in_other_space(ready, digest) for digest in ("s1", "s2", None)] == [False, True, False]
    assert is_in_other_space(memory_with("stale"), "s1")


def test_missing_model_fails() -> None:
    assert maintenance_action(job("rebuild"), memory_with("ready"), None) == "fail"


@pytest.mark.parametrize(("status", "what"), [("ready", "done"), ("failed", "fail")])
def test_redelivered_job_skips_finished_memories(status: EmbeddingStatus, what: str) -> None:
    assert maintenance_action(job("rebuild"), memory_with(status, embedded_at=AFTER), "s1") == what
    assert maintenance_action(job("rebuild"), memory_with(status, embedded_at=BEFORE), "s1") == "make"
    assert maintenance_action(job("rebuild"), memory_with(status, embedded_at=None), "s1") == "make"


def test_outcome_follows_the_record() -> None:
    before = memory_with("ready", embedded_at=BEFORE)
    assert job_outcome(before, before, "s1") is None
    assert job_outcome(before, memory_with("pending"), "s1") is None
    assert job_outcome(before, memory_with("ready", embedded_at=AFTER), "s1") == "processed"
    assert job_outcome(before, memory_with("failed", embedded_at=AFTER), "s1") == "failed"
    assert job_outcome(before, None, None) == "skipped"


def test_model_lost_during_a_job_fails_waiting_memories() -> None:
    waiting = made("cello", embedding=Embedding(error="its model is missing"))
    assert job_outcome(waiting, waiting, None) == "failed"
    assert job_outcome(waiting, waiting, "s1") is None
