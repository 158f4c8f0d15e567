"""The stored jobs of a boundary are bounded in number and in bytes, and lose texts that are forgotten."""

from datetime import UTC, datetime

import pytest

from schemas.failures import Rejected
from schemas.internal import job_history
from schemas.internal.job_history import MAX_STORED_JOBS, JobHistory, StoredJob
from schemas.messages.replies import SuccessReply, encode_error

DONE = SuccessReply({"processed": 1}).encode()
CONSOLIDATED = SuccessReply({"diff": [{"op": "distil", "before": "3 turns", "after": "A secret."}]}).encode()


def job(number: int, at_ms: int = 1) -> StoredJob:
    return StoredJob(job_id=f"backfill-0-{number}", project="p1", at_ms=at_ms)


def ids(history: JobHistory) -> list[str]:
    return [job.job_id for job in history.stored]


def test_the_last_jobs_are_kept_beside_the_times_of_backfills() -> None:
    history = JobHistory(last={"general": datetime(2026, 3, 1, tzinfo=UTC)})
    for number in range(MAX_STORED_JOBS + 5):
        history = history.begun(job(number)).ended(f"backfill-0-{number}", DONE)
    assert ids(history) == [f"backfill-0-{number}" for number in range(5, MAX_STORED_JOBS + 5)]
    assert list(history.last) == ["general"]


def test_a_job_that_begins_again_keeps_its_answer_and_a_job_of_a_recreated_topic_replaces_it() -> None:
    history = JobHistory().begun(job(1)).ended("backfill-0-1", DONE)
    assert history.begun(job(1)) == history
    assert history.begun(job(1, at_ms=2)).stored == (job(1, at_ms=2),)


def test_the_answer_of_a_job_that_was_dropped_is_not_stored() -> None:
    assert JobHistory().ended("backfill-0-1", DONE) == JobHistory()


def test_older_answers_give_way_to_newer_ones_and_running_jobs_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_history, "MAX_ANSWER_BYTES", 2 * len(DONE))
    history = JobHistory()
    for number in range(4):
        history = history.begun(job(number))
    for number in (1, 2, 3):
        history = history.ended(f"backfill-0-{number}", DONE)
    assert ids(history) == ["backfill-0-0", "backfill-0-2", "backfill-0-3"]


def test_an_answer_that_is_too_large_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_history, "MAX_ANSWER_BYTES", 300)
    [stored] = JobHistory().begun(job(1)).ended("backfill-0-1", b"x" * 301).stored
    assert stored.body()["state"] == "failed"
    assert stored.body()["error"]["code"] == "too_large"


def test_a_failed_job_has_the_error() -> None:
    [stored] = JobHistory().begun(job(1)).ended("backfill-0-1", encode_error(Rejected("conflict", "no", "x"))).stored
    assert stored.body() == {
        "job_id": "backfill-0-1",
        "state": "failed",
        "result": None,
        "error": {"code": "conflict", "message": "no", "field": "x"},
        "warnings": [],
    }


@pytest.mark.parametrize("is_running", [True, False])
def test_texts_go_from_answers_that_are_there_and_from_those_to_come(*, is_running: bool) -> None:
    history = JobHistory().begun(job(1))
    if is_running:
        history = history.without_texts().ended("backfill-0-1", CONSOLIDATED)
    else:
        history = history.ended("backfill-0-1", CONSOLIDATED).without_texts()
    assert "secret" not in history.model_dump_json()
    assert history.stored[0].body()["result"]["diff"] == [{"op": "distil", "before": None, "after": None}]


def reported(number: int, answer: bytes) -> StoredJob:
    return StoredJob(job_id=f"import-{number:032x}", project=None, at_ms=number, progress={"read": 1}).answered(answer)


def test_answers_of_imports_take_bounded_room_together() -> None:
    history = JobHistory()
    for number in range(4):
        history = history.reported(reported(number, b'{"status":"ok","result":{"x":"%b"}}' % (b"x" * 3_000_000)))
    assert [job.at_ms for job in history.stored] == [3]


def test_memories_are_forgotten_whatever_an_import_has_reported() -> None:
    history = JobHistory().reported(reported(1, b'{"status":"ok","result":{"diff":7}}'))
    assert history.without_texts() == history
