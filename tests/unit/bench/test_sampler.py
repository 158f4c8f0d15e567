"""How the sampler's program is run, with scripts in its place."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.profile import sampler
from bench.profile.samples import Sample
from bench.profile.threads import EVENT_LOOP

WORKS = """
while [ $# -gt 0 ]; do case $1 in --output) file=$2;; esac; shift; done
trap 'echo "thread (7): MainThread;answer (agents/retrieval/retrieve.py:84) 5" > "$file"; exit 0' INT
echo "py-spy> Sampling process 100 times a second. Press Control-C to exit."
while :; do sleep 0.01; done
"""
MAY_NOT_ATTACH = 'echo "Error: Permission denied (os error 13)"; exit 1'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Install a script as the sampler's program."""

    def install(script: str) -> None:
        file = tmp_path / "py-spy"
        file.write_text(f"#!/bin/bash\n{script}\n")
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
    program(f"echo $$ > {tmp_path}/pid\n{WORKS}")

    async def work() -> None:
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        await sampler.sample_while(os.getpid(), work)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
