"""The newest runs of a boundary, of windows that are read from the last to the first."""

from datetime import UTC, datetime

from modestream_client.runs import Run

from streams.flow.runs.record import RunsFound

AT = datetime(2026, 3, 1, tzinfo=UTC)


def value(run_id: str, ms: float = 1.0) -> bytes:
    run = Run(run_id=run_id, pipeline="retrieve", part="answer", at=AT, ms=ms)
    return run.model_dump_json(by_alias=True).encode()


def found(limit: int = 10, since_ms: int = 0) -> RunsFound:
    return RunsFound(b"u1", lambda run: run.run_id != "unwanted", limit, since_ms)


def ids(runs: RunsFound) -> list[str]:
    return [run.run_id for run in runs.page().runs]


def test_runs_of_the_boundary_are_newest_first() -> None:
    runs = found()
    for key, run_id in ((b"u1", "3"), (b"u2", "other"), (b"u1", "unwanted"), (b"u1", "4")):
        runs.take(key, value(run_id), 0)
    runs.finish_window()
    runs.take(b"u1", value("1"), 0)
    runs.take(b"u1", value("2"), 0)
    assert ids(runs) == ["4", "3", "2", "1"]


def test_a_redelivered_request_is_shown_once_with_its_last_record() -> None:
    runs = found()
    for number in (1.0, 2.0):
        runs.take(b"u1", value("1", number), 0)
    assert [(run.run_id, run.ms) for run in runs.page().runs] == [("1", 2.0)]


def test_reading_ends_with_the_limit() -> None:
    runs = found(limit=2)
    for number in range(3):
        assert not runs.is_enough
        runs.take(b"u1", value(str(number)), 0)
    runs.finish_window()
    assert runs.is_enough
    assert ids(runs) == ["2", "1"]


def test_runs_before_the_user_was_forgotten_are_left_out() -> None:
    runs = found()
    runs.take(b"u1", value("2"), 0)
    runs.take(b"u1", None, 0)
    runs.take(b"u2", None, 0)
    runs.take(b"u1", value("3"), 0)
    runs.finish_window()
    assert runs.is_enough
    assert ids(runs) == ["3"]


def test_earlier_windows_are_not_read_for_a_later_time() -> None:
    runs = found(since_ms=1000)
    runs.take(b"u2", value("0"), 999)
    runs.take(b"u1", value("1"), 1000)
    runs.finish_window()
    assert runs.is_enough
    assert ids(runs) == ["1"]


def test_what_is_no_run_is_left_out() -> None:
    runs = found()
    runs.take(b"u1", b"{}", 0)
    runs.take(b"u1", b"\xff", 0)
    assert ids(runs) == []
