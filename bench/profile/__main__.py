"""`python -m bench.profile [--quick]`: print processor time by process, thread and stage, and one line of JSON."""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from modestream_client import MemoryClient

from bench.__main__ import run_until_signal
from bench.harness.report import Report
from bench.harness.system import running
from bench.profile.run import Profile, Sizes

FULL = Sizes(turns=3000, memories=600, questions={1: 500, 8: 1000, 32: 1500})
QUICK = Sizes(turns=160, memories=80, questions={1: 30, 8: 48, 32: 96})


def main() -> None:
    """Profile a system of its own in a temporary directory and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the load; too noisy for decisions")
    sizes = QUICK if parser.parse_args().quick else FULL
    report = Report(lambda line: print(line, flush=True))
    report.section("the machine")
    report.fact("cores", "cores", len(os.sched_getaffinity(0)))
    report.fact("load_before", "load average before (1 min)", round(os.getloadavg()[0], 2))
    began = time.monotonic()
    asyncio.run(run_until_signal(_profile(sizes, report)))
    report.number("profile_s", "duration of the profile", time.monotonic() - began, "s")
    report.print()


async def _profile(sizes: Sizes, report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="modestream-profile-") as directory:
        async with running(Path(directory)) as system, MemoryClient(system.bootstrap, timeout=60) as client:
            await Profile(system, client, sizes, report).run(_progress)


def _progress(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


if __name__ == "__main__":
    main()
