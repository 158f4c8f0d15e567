"""What a job does with one memory, and what became of it."""

from datetime import timedelta

import pytest

from agents.rules.memory.maintaining import is_in_other_space, job_outcome, maintenance_action
from schemas.jobs import Job, JobKind
from schemas.memories import Embedding, EmbeddingStatus, Memory
from schemas.scopes import Scope
from tests.builders.memories import START, embedded_in, made

BEFORE, AFTER = START - timedelta(hours=1), START + timedelta(hours=1)


def job(kind: JobKind) -> Job:
    return Job(scope=Scope(user_id="ana"), job_id="j", kind=kind, started_at=START + timedelta(minutes=1))


def standing(status: EmbeddingStatus, **fields: object) -> Memory:
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
def test_each_job_has_its_own_made_and_leaves_the_rest_alone(kind: JobKind, makes: set[str]) -> None:
    memories = {status: standing(status) for status in ("ready", "stale", "failed", "not_applicable")}
    memories["waiting"] = standing("pending", error="its model is missing")
    found = {name: maintenance_action(job(kind), memory, "s1") for name, memory in memories.items()}
    assert {name for name, what in found.items() if what == "make"} == makes
    assert {found[name] for name in found.keys() - makes} <= {"skip"}


def test_a_vector_that_is_on_its_way_is_awaited_and_not_made_twice() -> None:
    assert maintenance_action(job("backfill"), standing("pending"), "s1") == "await"
    assert maintenance_action(job("retry_failed"), standing("pending"), "s1") == "skip"


def test_what_belongs_into_another_space_or_is_missing_there_is_made() -> None:
    ready = standing("ready")
    assert maintenance_action(job("backfill"), ready, "s2") == "make"
    assert maintenance_action(job("reconcile"), ready, "s1", is_missing=True) == "make"
    assert [is_in_other_space(ready, digest) for digest in ("s1", "s2", None)] == [False, True, False]
    assert is_in_other_space(standing("stale"), "s1")


def test_what_misses_its_model_fails_at_once() -> None:
    assert maintenance_action(job("rebuild"), standing("ready"), None) == "fail"


@pytest.mark.parametrize(("status", "what"), [("ready", "done"), ("failed", "fail")])
def test_what_a_job_did_before_it_was_cut_off_is_not_done_again(status: EmbeddingStatus, what: str) -> None:
    assert maintenance_action(job("rebuild"), standing(status, embedded_at=AFTER), "s1") == what
    assert maintenance_action(job("rebuild"), standing(status, embedded_at=BEFORE), "s1") == "make"
    assert maintenance_action(job("rebuild"), standing(status, embedded_at=None), "s1") == "make"


def test_what_became_of_a_memory_is_known_once_its_record_says_so() -> None:
    before = standing("ready", embedded_at=BEFORE)
    assert job_outcome(before, before, "s1") is None
    assert job_outcome(before, standing("pending"), "s1") is None
    assert job_outcome(before, standing("ready", embedded_at=AFTER), "s1") == "processed"
    assert job_outcome(before, standing("failed", embedded_at=AFTER), "s1") == "failed"
    assert job_outcome(before, None, None) == "skipped"


def test_a_model_that_leaves_during_a_job_fails_what_waits_for_it() -> None:
    waiting = made("cello", embedding=Embedding(error="its model is missing"))
    assert job_outcome(waiting, waiting, None) == "failed"
    assert job_outcome(waiting, waiting, "s1") is None
