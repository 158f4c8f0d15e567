"""The processes that read files: bounded, confined, replaced after a failure, and never left."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.failures import Unavailable
from schemas.models.language import Heard
from schemas.state.files import ReadFailed
from streams.adapters.files import process_reader
from streams.adapters.files.process_reader import COMMAND, PROJECT_ROOT, ProcessFileReader, ReadLimits
from tests.builders.files import KEY
from tests.fakes.language_model import FakeLanguageModel

WAITS = f"""
import sys, time
from streams.adapters.files import reading
from streams.adapters.files.text_builder import MediaPiece

def read_file(file, media_type, name, text):
    text.note_progress()
    if name == "sleep":
        time.sleep(60)
    if name == "spin":
        while True:
            pass
    if name == "grow":
        bytearray(3 << 30)
    if name == "die":
        import ctypes
        ctypes.string_at(0)
    if name == "flood":
        while True:
            text.send(MediaPiece(bytes(1 << 20), "piece.flac", "transcribe"))
    if name == "vanish":
        import os
        os._exit(1)
    text.add({KEY!r})
    return text.finish("test")

reading.read_file = read_file
from streams.adapters.files import child
child.main()
"""
"""A process whose reader does as a file's name says."""

ATTEMPTS = """
import ctypes, os, socket, sys
from streams.adapters.files.confinement import confine
confine(1 << 30)
libc = ctypes.CDLL(None, use_errno=True)
attempts = {
    "socket": lambda: socket.socket(),
    "socket in C": lambda: libc.socket(2, 1, 0) >= 0 or 1 / 0,
    "program": lambda: os.execv("/bin/true", ["true"]),
    "file": lambda: open(sys.argv[1] + ".new", "w"),
    "change in C": lambda: libc.unlink(sys.argv[1].encode()) == 0 or 1 / 0,
    "signal": lambda: os.kill(os.getppid(), 0),
    "signal to a thread in C": lambda: libc.tgkill(os.getppid(), os.getppid(), 0) == 0 or 1 / 0,
    "signal by a file in C": lambda: libc.syscall(424, os.pidfd_open(os.getppid()), 0, None, 0) == 0 or 1 / 0,
    "rights in C": lambda: libc.chmod(sys.argv[1].encode(), 0o600) == 0 or 1 / 0,
    "length in C": lambda: libc.truncate(sys.argv[1].encode(), 0) == 0 or 1 / 0,
    "length by reading in C": lambda: libc.open(sys.argv[1].encode(), os.O_RDONLY | os.O_TRUNC) >= 0 or 1 / 0,
    "another file": lambda: open(sys.argv[1]),
    "another file in C": lambda: libc.open(sys.argv[1].encode(), os.O_RDONLY) >= 0 or 1 / 0,
    "another file through its process": lambda: open(f"/proc/self/root{sys.argv[1]}"),
    "names of a folder": lambda: os.listdir(os.path.dirname(sys.argv[1])),
    "names of other processes": lambda: os.listdir("/proc"),
    "words of another process": lambda: open(f"/proc/{os.getppid()}/cmdline"),
    "process in C": lambda: libc.fork() >= 0 or 1 / 0,
    "memory": lambda: bytearray(2 << 30),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name)
    except (OSError, MemoryError, ZeroDivisionError):
        pass
"""


@pytest.fixture
async def reader(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProcessFileReader]:
    monkeypatch.setattr(process_reader, "COMMAND", (sys.executable, "-c", WAITS))
    opened = ProcessFileReader(ReadLimits(processes=2))
    yield opened
    await opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "bytes"
    path.write_text(KEY)
    return path


async def read(reader: ProcessFileReader, path: Path, name: str = "ok") -> str:
    try:
        return (await reader.read(path, media_type="text/plain", name=name)).text
    except ReadFailed as failure:
        return failure.code


@pytest.mark.parametrize(
    ("name", "code", "limits"),
    [
        ("sleep", "too_large", ReadLimits(seconds=2)),
        ("spin", "too_large", ReadLimits(seconds=2)),
        ("grow", "too_large", ReadLimits()),
        ("die", "unreadable", ReadLimits()),
        ("vanish", "unavailable", ReadLimits()),
    ],
)
async def test_failure_is_of_its_file_alone(
    reader: ProcessFileReader, path: Path, name: str, code: str, limits: ReadLimits
) -> None:
    usual = reader._limits
    # Both processes run first: on a busy machine starting one takes seconds, which the short limit would count.
    await asyncio.gather(read(reader, path), read(reader, path))
    reader._limits = limits
    failing = asyncio.create_task(read(reader, path, name))
    await asyncio.sleep(0)  # it has taken its limit; the others keep the usual one
    reader._limits = usual
    others = [read(reader, path) for _ in range(3)]
    assert await asyncio.gather(failing, *others) == [code, *[KEY] * 3]


async def test_processes_are_reused(reader: ProcessFileReader, path: Path) -> None:
    for _ in range(5):
        assert await read(reader, path) == KEY
    assert len(reader._idle) == 1


async def test_no_more_processes_than_the_limit(reader: ProcessFileReader, path: Path) -> None:
    await asyncio.gather(*(read(reader, path) for _ in range(8)))
    assert len(reader._idle) <= 2


async def test_images_and_sound_leave_a_process_to_documents(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_reader, "COMMAND", (sys.executable, "-c", WAITS))
    reader = ProcessFileReader(ReadLimits(processes=2, seconds=60))
    sounds = [asyncio.create_task(reader.read(path, media_type="audio/wav", name="sleep")) for _ in range(3)]
    assert await read(reader, path) == KEY
    for sound in sounds:
        sound.cancel()
    await asyncio.gather(*sounds, return_exceptions=True)
    await reader.close()


async def test_process_that_is_given_up_is_ended(reader: ProcessFileReader, path: Path) -> None:
    reading = asyncio.create_task(read(reader, path, "sleep"))
    await asyncio.sleep(0.5)
    reading.cancel()
    await asyncio.wait([reading])
    assert not reader._idle
    assert await read(reader, path) == KEY


class Slow(FakeLanguageModel):
    async def transcribe(self, *_: object) -> list[Heard]:
        await asyncio.sleep(1)
        raise Unavailable("away")


async def test_process_that_writes_while_no_model_takes_it_blocks_no_file(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(process_reader, "COMMAND", (sys.executable, "-c", WAITS))
    reader = ProcessFileReader(ReadLimits(processes=1), Slow())
    async with asyncio.timeout(30):
        assert await read(reader, path, "flood") == "unavailable"
        assert await read(reader, path) == KEY
        await reader.close()


async def test_process_that_was_killed_while_idle_costs_no_file(reader: ProcessFileReader, path: Path) -> None:
    await read(reader, path)
    [process] = reader._idle
    process._process.kill()
    await process._process.wait()
    assert await read(reader, path) == KEY


async def test_bytes_that_are_not_there_are_unavailable(tmp_path: Path) -> None:
    reader = ProcessFileReader(ReadLimits())
    assert await read(reader, tmp_path / "none") == "unavailable"
    await reader.close()


async def test_secrets_of_the_worker_are_not_passed_on(
    reader: ProcessFileReader, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    await read(reader, path)
    [process] = reader._idle
    environment = Path(f"/proc/{process._process.pid}/environ").read_text()
    assert "PATH=" in environment
    assert "secret" not in environment


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only Python code is confined")
def test_process_can_do_nothing_but_read(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPTS, str(path)], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert path.exists()


def test_process_ends_with_its_worker(tmp_path: Path) -> None:
    worker = f"""
import socket, subprocess, sys, time
ours, theirs = socket.socketpair()
child = subprocess.Popen({[*COMMAND, str(1 << 30)]!r}, stdin=theirs, cwd={str(PROJECT_ROOT)!r})
theirs.close()
print(child.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", worker], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        child = int(started.stdout.readline())
        time.sleep(1)
        started.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and is_alive(child):
        time.sleep(0.05)
    assert not is_alive(child)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
