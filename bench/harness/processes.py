"""Memory and processor time of the system's processes, from Linux's `/proc`."""

import os
from collections.abc import Mapping
from pathlib import Path

from bench.harness.system import System

MIB = 1024
"""KiB, the unit of `/proc`, per MiB."""

USER_TICKS = 11
"""Index of user time in `/proc/PID/stat` after the name; system time follows (`man proc`)."""


def resident(system: System) -> dict[str, dict[str, float]]:
    """Return `rss` and `pss` (shared pages divided among processes) of each process in MiB."""
    return {name: _memory(pid) for name, pid in _pids(system).items()}


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    return _memory(pid)["rss"]


def cpu_seconds(system: System) -> dict[str, float]:
    """Return the processor time of each process since its start, without the supervisor."""
    pids = {name: pid for name, pid in _pids(system).items() if name != "supervisor"}
    return {name: stat_cpu_seconds(Path(f"/proc/{pid}/stat")) for name, pid in pids.items()}


def _pids(system: System) -> Mapping[str, int]:
    """Return the pids by name; the worker's only child is its embedder."""
    worker = system.pid("worker")
    [embedder] = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    broker, gateway, supervisor = system.pid("broker"), system.pid("gateway"), system.supervisor
    return {"worker": worker, "embedder": int(embedder), "broker": broker, "gateway": gateway, "supervisor": supervisor}


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
