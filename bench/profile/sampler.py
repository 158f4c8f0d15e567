"""Sample the stacks of a running worker with py-spy."""

import asyncio
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.profile.samples import Sample, parse_samples

SAMPLES_PER_S = 100
"""Each sample stops the worker for a moment: at 100 a second a turn costs it a fifth more, so counters are read apart.
At 250 it was up to twice as much."""

ATTACH_TIMEOUT_S = 30.0
WRITE_TIMEOUT_S = 30.0


class SamplerUnavailable(Exception):
    """py-spy is not installed, or may not attach to a process."""


def find_sampler() -> str | None:
    """Return the program beside the interpreter, else the one on PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


async def sample_while(pid: int, work: Callable[[], Awaitable[object]]) -> list[Sample]:
    """Do the work and return samples of the thread with the interpreter lock. Raises SamplerUnavailable before it."""
    program = find_sampler()
    if program is None:
        raise SamplerUnavailable("py-spy is not installed")
    with tempfile.TemporaryDirectory(prefix="modestream-profile-") as folder:
        file = Path(folder) / "samples.raw"
        sampler = await asyncio.create_subprocess_exec(*_command(program, pid, file), stdout=PIPE, stderr=STDOUT)
        try:
            await _wait_until_attached(sampler)
            # Its warnings would fill the pipe and stop it.
            output = asyncio.create_task(_read_all(sampler))
            await work()
        finally:
            await _end(sampler)
        await output
        return parse_samples(file.read_text().splitlines()) if file.exists() else []


def _command(program: str, pid: int, file: Path) -> tuple[str, ...]:
    options = ("--gil", "--threads", "--format", "raw", "--rate", str(SAMPLES_PER_S), "--output", str(file))
    return (program, "record", "--pid", str(pid), *options)


async def _wait_until_attached(sampler: Process) -> None:
    assert sampler.stdout is not None
    lines = []
    try:
        async with asyncio.timeout(ATTACH_TIMEOUT_S):
            async for line in sampler.stdout:
                lines.append(line.decode(errors="replace").strip())
                if "Sampling process" in lines[-1]:
                    return
    except TimeoutError:
        lines.append(f"it was not ready within {ATTACH_TIMEOUT_S:.0f} s")
    raise SamplerUnavailable("py-spy may not attach: " + " ".join(lines))


async def _read_all(sampler: Process) -> None:
    assert sampler.stdout is not None
    while await sampler.stdout.read(65536):
        pass


async def _end(sampler: Process) -> None:
    """Interrupt the sampler, which then writes its file."""
    if sampler.returncode is None:
        sampler.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            await sampler.wait()
    except TimeoutError:
        sampler.kill()
        await sampler.wait()
