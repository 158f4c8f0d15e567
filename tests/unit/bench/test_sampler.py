"""How the sampler's program is run, with scripts in its place."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.profile import sampler
from bench.profile.samples import Sample
from bench.profile.threads import EVENT_LOOP

WORKS = """
import signal, sys
from pathlib import Path

def write(*_):
    stack = "thread (7): MainThread;answer (agents/retrieval/retrieve.py:84) 5"
    Path(sys.argv[sys.argv.index("--output") + 1]).write_text(stack)
    sys.exit(0)

signal.signal(signal.SIGINT, write)
print("py-spy> Sampling process 100 times a second. Press Control-C to exit.", flush=True)
while True:
    signal.pause()
"""
MAY_NOT_ATTACH = """
print("Error: Permission denied (os error 13)")
raise SystemExit(1)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Install a script as the sampler's program."""

    def install(script: str) -> None:
        file = tmp_path / "py-spy"
        file.write_text(f"#!{sys.executable}\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    return install


async def test_samples_are_those_of_the_work(program: Callable[[str], None]) -> None:
    program(WORKS)
    done = []

    async def work() -> None:
        done.append(True)

    assert await sampler.sample_while(os.getpid(), work) == [Sample(EVENT_LOOP, "ranking", 5)]
    assert done == [True]


async def test_no_work_is_done_where_the_program_may_not_attach(program: Callable[[str], None]) -> None:
    program(MAY_NOT_ATTACH)

    async def work() -> None:
        pytest.fail("the work was done without samples")

    with pytest.raises(sampler.SamplerUnavailable, match="Permission denied"):
        await sampler.sample_while(os.getpid(), work)


async def test_a_missing_program_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(sampler.SamplerUnavailable, match="not installed"):
        await sampler.sample_while(os.getpid(), lambda: asyncio.sleep(0))


async def test_the_program_ends_when_the_work_fails(program: Callable[[str], None], tmp_path: Path) -> None:
    program(f"import os\nprint(os.getpid(), file=open({str(tmp_path / 'pid')!r}, 'w'), flush=True)\n{WORKS}")

    async def work() -> None:
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        await sampler.sample_while(os.getpid(), work)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
