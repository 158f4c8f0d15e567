"""Maintenance actions and outcomes."""

from datetime import timedelta

import pytest

from agents.rules.memory.maintaining import is_in_other_space, job_outcome, maintenance_action
from schemas.internal.changes import Job, JobKind
from schemas.scopes import Scope
from schemas.state.memories import Embedding, EmbeddingStatus, Memory
from tests.builders.memories import START, embedded_in, made

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
