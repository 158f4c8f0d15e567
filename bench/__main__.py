"""`python -m bench [--quick]`: print a table of ratios and, at the end, one line of JSON."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.harness.report import Report
from bench.run import Bench, Sizes

FULL = Sizes(turns=3000, alone=600, questions=500, poison_rounds=2)
QUICK = Sizes(turns=1000, alone=200, questions=200, poison_rounds=1)


def main() -> None:
    """Measure in a temporary directory and print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a third of the load; too noisy for decisions")
    options = parser.parse_args()
    report = Report(_print_line)
    report.section("the machine")
    report.fact("cores", "cores", len(os.sched_getaffinity(0)))
    report.fact("load_before", "load average before (1 min)", round(os.getloadavg()[0], 2))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="modestream-bench-") as directory:
        asyncio.run(_run_until_signal(Bench(Path(directory), QUICK if options.quick else FULL, report, _progress)))
    report.number("bench_s", "duration of the benchmark", time.monotonic() - began, "s")
    report.print()


async def _run_until_signal(bench: Bench) -> None:
    """Run the benchmark; SIGTERM ends it like Ctrl-C, so that no process is left running."""
    running = asyncio.ensure_future(bench.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    await running


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _progress(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


if __name__ == "__main__":
    main()
