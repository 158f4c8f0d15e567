"""`python -m bench.model_outage`: effect of a language model outage on turns.

Turns are published at a steady rate to a system in a temporary directory. Its model server is up for the first third,
hangs and then refuses connections during the second, and is up again for the last. Prints a table and one line of JSON;
exit code 1 if a turn is lost, not understood or in the wrong mode.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import quantiles

from modestream_client import MemoryClient

from bench.harness.language_server import language_server
from bench.harness.outage_turns import Turns
from bench.harness.processes import cpu_seconds
from bench.harness.report import Report
from bench.harness.system import System, running

WARM_UP = 100
"""First turns, not counted: caches are cold, and LiteLLM is not loaded."""

MAX_P95_RATIO = 1.5
"""Target of the acceptance p95 during the outage, relative to the one before."""


def main() -> None:
    """Measure in a temporary directory and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.model_outage", description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--per-second", type=float, default=20.0, help="turns a second, in all three parts")
    options = parser.parse_args()
    report = Report(print)
    report.section(f"{options.turns:,} turns, {options.per_second:g} a second; the model is away for the middle third")
    report.fact("cores", "cores", len(os.sched_getaffinity(0)))
    report.fact("load_before", "load average before (1 min)", round(os.getloadavg()[0], 2))
    with tempfile.TemporaryDirectory(prefix="modestream-outage-") as directory:
        is_correct = asyncio.run(_measure(Path(directory), options.turns, options.per_second, report))
    report.fact("load_after", "load average after (1 min)", round(os.getloadavg()[0], 2))
    report.print()
    sys.exit(0 if is_correct else 1)


async def _measure(directory: Path, count: int, per_second: float, report: Report) -> bool:
    async with language_server() as (api_base, set_state):
        profile = {"model": "openai/bench", "api_base": api_base, "timeout_s": 5.0}
        settings = {"MODESTREAM_LLM_PROFILES": json.dumps({"default": profile})}
        async with (
            running(directory / "data", settings) as system,
            MemoryClient(system.bootstrap, timeout=60) as client,
        ):
            turns = Turns.create(client, WARM_UP + count)
            await turns.declare()
            _progress("warming up")
            await turns.publish(range(WARM_UP), per_second)
            await turns.wait_until_understood(range(WARM_UP))
            await _run_phases(turns, per_second, set_state, report, system)
            return await _check_results(turns, report)


async def _run_phases(
    turns: Turns, per_second: float, set_state: Callable[[str], None], report: Report, system: System
) -> None:
    ends = [WARM_UP + (len(turns.tagged) - WARM_UP) * part // 6 for part in range(7)]
    before, hanging, refusing, after = (range(ends[low], ends[high]) for low, high in ((0, 2), (2, 3), (3, 4), (4, 6)))
    for numbers, state in ((before, "up"), (hanging, "hang"), (refusing, "refuse")):
        _progress(f"{len(numbers)} turns, the model: {state}")
        set_state(state)
        worked = cpu_seconds(system)["worker"]
        await turns.publish(numbers, per_second)
        spent = 1000 * (cpu_seconds(system)["worker"] - worked) / len(numbers)
        report.number(f"{state}_worker_cpu_ms", f"the worker's processor time, model {state}", spent, "ms/turn")
    set_state("up")
    _progress(f"{len(after)} turns, the model is up again")
    back = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        group.create_task(turns.publish(after, per_second))
        await turns.wait_until_understood([*before, *hanging, *refusing])
        outage_done = time.perf_counter() - back
    await turns.wait_until_understood(after)
    all_done = time.perf_counter() - back
    _report_times(turns, {"before": before, "during": [*hanging, *refusing], "after": after}, report)
    report.number("outage_understood_s", "turns of the outage understood, after its end", outage_done, "s")
    report.number("all_understood_s", "all turns understood, after its end", all_done, "s")


def _report_times(turns: Turns, parts: dict[str, Sequence[int]], report: Report) -> None:
    slow = {}
    for name, numbers in parts.items():
        cuts = quantiles([turns.reply_s[number] for number in numbers], n=20)
        slow[name] = cuts[18]
        report.number(f"{name}_p50_ms", f"acceptance of {len(numbers)} turns {name}, p50", 1000 * cuts[9], "ms")
        report.number(f"{name}_p95_ms", f"acceptance of {len(numbers)} turns {name}, p95", 1000 * cuts[18], "ms")
        slowest = max(turns.reply_s[number] for number in numbers)
        report.number(f"{name}_max_ms", f"acceptance of {len(numbers)} turns {name}, slowest", 1000 * slowest, "ms")
    report.ratio("p95_during_to_before", "p95 during / before", slow["during"] / slow["before"], f"<= {MAX_P95_RATIO}")


async def _check_results(turns: Turns, report: Report) -> bool:
    """Return whether each turn is stored once, understood, in the mode that the model gave."""
    lost = len(turns.tagged) - await turns.count_stored()
    report.fact("lost", "turns lost or duplicated", lost)
    report.fact("wrong", "turns in another mode than the model gave", len(turns.wrong))
    for line in turns.wrong[:10]:
        _progress(line)
    return lost == 0 and not turns.wrong


def _progress(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


if __name__ == "__main__":
    main()
