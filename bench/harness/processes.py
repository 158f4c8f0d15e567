"""Memory and processor time of the system's processes, from Linux's `/proc`."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.harness.system import System

MIB = 1024
"""KiB, the unit of `/proc`, per MiB."""

USER_TICKS = 11
"""Index of user time in `/proc/PID/stat` after the name; system time follows (`man proc`)."""


def resident(system: System) -> dict[str, dict[str, float]]:
    """Return `rss` and `pss` (shared pages divided among processes) of each process in MiB; embedders together."""
    return {name: dict(sum((Counter(_memory(pid)) for pid in pids), Counter())) for name, pids in _pids(system).items()}


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    return _memory(pid)["rss"]


def cpu_seconds(system: System) -> dict[str, float]:
    """Return the processor time of each process since its start, without the supervisor; of all embedders together."""
    return {
        name: sum(stat_cpu_seconds(Path(f"/proc/{pid}/stat")) for pid in pids)
        for name, pids in _pids(system).items()
        if name != "supervisor"
    }


def _pids(system: System) -> Mapping[str, Sequence[int]]:
    """Return the pids by name; the worker's children are embedders, one for each model that is loaded."""
    worker = system.pid("worker")
    embedders = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    return {
        "worker": [worker],
        "embedder": [*map(int, embedders)],
        "broker": [system.pid("broker")],
        "gateway": [system.pid("gateway")],
        "supervisor": [system.supervisor],
    }


def stat_cpu_seconds(stat: Path, *, with_ended_children: bool = False) -> float:
    """Return the processor time of the process or thread with this file, such as `/proc/PID/stat`."""
    after_name = stat.read_text().rpartition(")")[2].split()
    ticks = after_name[USER_TICKS : USER_TICKS + (4 if with_ended_children else 2)]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> dict[str, float]:
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        rows = Path(f"/proc/{pid}/status").read_text().replace("VmRSS", "Rss").splitlines()
    parts = (row.partition(":") for row in rows)
    return {name.lower(): round(int(rest.split()[0]) / MIB, 1) for name, _, rest in parts if name in ("Rss", "Pss")}
