"""`python -m bench.faults [--quick] [--only TEXT] [--rows FILE] [--write]`: count what each fault loses or doubles.

Faults of one kind meet one system in a temporary directory, one after another, each with users of its own. Prints a
row for each; with `--write` it also writes `docs/faults.md`. Exit code 1 if a turn is lost or doubled. A full run takes
half an hour. A full disk needs the right to mount a file system.
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.faults.clock_faults import CLOCK_FAULTS, faketime_library
from bench.faults.disk_faults import DISK_FAULTS, can_mount
from bench.faults.fleet_faults import FLEET_FAULTS
from bench.faults.input_faults import INPUT_FAULTS
from bench.faults.load import USERS
from bench.faults.page import line, page
from bench.faults.process_faults import PROCESS_FAULTS
from bench.faults.row import Fault, Row, Size, measure
from bench.faults.server_faults import SERVER_FAULTS
from bench.faults.shared_faults import SHARED_FAULTS
from bench.faults.world import Models

FULL, QUICK = Size(turns=300, per_second=10.0), Size(turns=100, per_second=10.0)

PAGE = Path(__file__).parents[2] / "docs/faults.md"

NO_MOUNT = "full disks: this process may not mount a file system"
NO_CLOCK = "jumps of a process's clock: libfaketime is not installed"
NOT_HERE = ("faults of Qdrant itself: no server was at hand", "jumps of the broker's clock, and of the whole machine's")


def main() -> None:
    """Measure, print, and say by the exit status whether all is right."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK.turns} turns instead of {FULL.turns:,}")
    parser.add_argument("--turns", type=int, help="turns around each fault, at least")
    parser.add_argument("--per-second", type=float, help=f"turns a second, {FULL.per_second:g} by default")
    parser.add_argument("--only", action="append", default=[], help="faults with this text; may be repeated")
    parser.add_argument(
        "--rows", type=Path, help="a file of rows in JSON: those of earlier runs are kept, new ones added"
    )
    parser.add_argument("--write", action="store_true", help="write docs/faults.md")
    options = parser.parse_args()
    # Ended like Ctrl-C: systems are stopped, and file systems unmounted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A broker that is away would be hundreds of lines.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    usual = QUICK if options.quick else FULL
    size = Size(options.turns or usual.turns, options.per_second or usual.per_second)
    faults, missing = _chosen(options.only)
    with tempfile.TemporaryDirectory(prefix="modestream-models-") as models:
        Models.directory = Path(models)
        measured = asyncio.run(_measured(faults, size, options.rows))
    if options.write:
        rows = _kept(options.rows) | measured
        ordered = [rows[fault.name] for fault in _chosen([])[0] if fault.name in rows]
        servers = {fault.name for fault in SERVER_FAULTS}
        usual_rows = [row for row in ordered if row.fault not in servers]
        on_server = [row for row in ordered if row.fault in servers]
        PAGE.write_text(page(usual_rows, len(os.sched_getaffinity(0)), USERS, size, missing, on_server))
    sys.exit(0 if len(measured) == len(faults) and all(row.is_right for row in measured.values()) else 1)


def _chosen(texts: Sequence[str]) -> tuple[list[Fault], list[str]]:
    disks = DISK_FAULTS if can_mount() else []
    clocks = CLOCK_FAULTS if faketime_library() is not None else []
    every = [*PROCESS_FAULTS, *clocks, *disks, *INPUT_FAULTS, *SHARED_FAULTS, *FLEET_FAULTS, *SERVER_FAULTS]
    chosen = [fault for fault in every if not texts or any(text in fault.name for text in texts)]
    return chosen, [*([] if disks else [NO_MOUNT]), *([] if clocks else [NO_CLOCK]), *NOT_HERE]


def _kept(file: Path | None) -> dict[str, Row]:
    """Return the rows of earlier runs by fault, the latest of each."""
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    return {row.fault: row for row in (Row(**json.loads(text)) for text in lines)}


async def _measured(faults: Sequence[Fault], size: Size, file: Path | None) -> dict[str, Row]:
    """Measure all, those of one system together; a row is printed and kept as soon as it is there."""
    rows, left = {}, list(enumerate(faults))
    while left:
        start = left[0][1].world
        async with start() as world:
            for one in [one for one in left if one[1].world is start]:
                left.remove(one)
                number, fault = one
                try:
                    row = rows[fault.name] = await measure(world, fault, size, f"row{number}")
                except Exception as problem:  # The others are measured in a new system.
                    sys.stderr.write(f"{fault.name}: {type(problem).__name__}: {problem}\n")
                    break
                _keep(row, file)
    return rows


def _keep(row: Row, file: Path | None) -> None:
    print(line(row), flush=True)
    if file is not None:
        with file.open("a") as opened:
            opened.write(json.dumps(row.as_json()) + "\n")


if __name__ == "__main__":
    main()
