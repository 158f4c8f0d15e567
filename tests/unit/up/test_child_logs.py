import asyncio
from pathlib import Path

from streams.up.child import MAX_LOG_BYTES, rotate_log, tail_log
from streams.up.fleet import rotate_logs
from streams.up.layout import Layout


def test_large_log_is_rotated_while_its_writer_continues(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * (MAX_LOG_BYTES + 1))
        rotate_log(log)
        writer.write(b"next\n")
    assert log.read_bytes() == b"next\n"
    assert (tmp_path / "worker.log.1").stat().st_size == MAX_LOG_BYTES + 1


def test_small_or_absent_log_is_not_rotated(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    rotate_log(log)
    log.write_bytes(b"a few words\n")
    rotate_log(log)
    assert [path.name for path in tmp_path.iterdir()] == ["worker.log"]
    assert log.read_bytes() == b"a few words\n"


def test_tail_is_the_last_non_empty_lines_cut_to_a_width(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(b"first\n" * 5000 + b"Traceback\n\n  here\n" + b"y" * 1000 + b"\n\n")
    assert tail_log(log) == ["Traceback", "  here", "y" * 300]


async def test_audit_log_is_rotated_by_the_gateway_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.create()
    layout.audit_log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    layout.log("gateway").write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    rotating = asyncio.create_task(rotate_logs(layout))
    await asyncio.sleep(0)
    rotating.cancel()
    assert sorted(path.name for path in layout.logs.iterdir()) == ["audit.jsonl", "gateway.log", "gateway.log.1"]
