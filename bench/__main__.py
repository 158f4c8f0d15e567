"""`python -m bench [--quick]`: prints a table of ratios and, at the end, one line of JSON."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.report import Report
from bench.run import Bench, Sizes

FULL = Sizes(turns=3000, alone=600, questions=500, poison_rounds=2)
QUICK = Sizes(turns=1000, alone=200, questions=200, poison_rounds=1)


def main() -> None:
    """Measure, print, and leave nothing behind."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of it: for a first look, not for decisions")
    options = parser.parse_args()
    report = Report(_tell)
    report.section("the machine")
    report.fact("cores", "cores", len(os.sched_getaffinity(0)))
    report.fact("load_before", "load before, of the last minute", round(os.getloadavg()[0], 2))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="modestream-bench-") as directory:
        asyncio.run(_until_told(Bench(Path(directory), QUICK if options.quick else FULL, report, _progress)))
    report.number("bench_s", "this measurement took", time.monotonic() - began, "s")
    report.print()


async def _until_told(bench: Bench) -> None:
    """Run; a SIGTERM ends it as Ctrl-C does, so that no process is left behind."""
    running = asyncio.ensure_future(bench.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    await running


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _progress(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


if __name__ == "__main__":
    main()
