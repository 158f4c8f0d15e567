"""`python -m bench [--quick] [--only PART]`: print a table of ratios and, at the end, one line of JSON."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from bench.harness.report import Report
from bench.run import Bench, Part, Sizes
from bench.server import ServerAddress

FULL = Sizes(turns=3000, alone=600, questions=500, poison_rounds=2, listed=50_000)
QUICK = Sizes(turns=1000, alone=200, questions=200, poison_rounds=1, listed=10_000)


def main() -> None:
    """Measure in a temporary directory and print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a third of the load; too noisy for decisions")
    parser.add_argument("--only", choices=get_args(Part), help="one part of the measurements")
    parser.add_argument("--memories", type=int, help="of the user whose pages and maps are read")
    parser.add_argument(
        "--qdrant", default=os.environ.get("MODESTREAM_TEST_QDRANT_URL"), help="URL of a Qdrant server to measure, too"
    )
    parser.add_argument(
        "--qdrant-grpc-port",
        type=int,
        default=int(os.environ.get("MODESTREAM_TEST_QDRANT_GRPC_PORT", "6334")),
        help="its port of gRPC, 6334 by default; 0: REST",
    )
    options = parser.parse_args()
    server = ServerAddress(options.qdrant, options.qdrant_grpc_port or None) if options.qdrant else None
    sizes = QUICK if options.quick else FULL
    sizes = replace(sizes, listed=options.memories or sizes.listed)
    report = Report(_print_line)
    report.section("the machine")
    report.fact("cores", "cores", len(os.sched_getaffinity(0)))
    report.fact("load_before", "load average before (1 min)", round(os.getloadavg()[0], 2))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="modestream-bench-") as directory:
        bench = Bench(Path(directory), sizes, report, _progress, server)
        asyncio.run(run_until_signal(bench.run(options.only)))
    report.number("bench_s", "duration of the benchmark", time.monotonic() - began, "s")
    report.print()


async def run_until_signal(benchmark: Coroutine[Any, Any, None]) -> None:
    """Run the benchmark; SIGTERM ends it like Ctrl-C, so that no process is left running."""
    running = asyncio.ensure_future(benchmark)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    await running


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _progress(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


if __name__ == "__main__":
    main()
