"""Processor time of the worker's threads and its context switches, from Linux's `/proc/PID/task`."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.harness.processes import stat_cpu_seconds

ThreadKind = Literal["event loop", "consumer thread", "other Python threads", "native threads"]

EVENT_LOOP: ThreadKind = "event loop"
CONSUMER: ThreadKind = "consumer thread"
"""Faust's: it fetches, decodes and commits in an event loop of its own."""
OTHER_PYTHON: ThreadKind = "other Python threads"
NATIVE: ThreadKind = "native threads"
"""RocksDB's and the vector engine's."""
LOOKS, LOOK_INTERVAL_S = 20, 0.05
"""How often the threads are looked at for the one that waits for sockets, and the pause between."""

THREAD_KINDS = (EVENT_LOOP, CONSUMER, OTHER_PYTHON, NATIVE)


@dataclass(frozen=True, slots=True)
class ThreadCounters:
    """What a thread has used since its start."""

    kind: ThreadKind
    cpu_s: float
    voluntary: int
    involuntary: int


async def find_consumer_thread(worker: int) -> int | None:
    """Return the thread, apart from the event loop's, that mostly waits for sockets; None where the kernel hides it."""
    waits: Counter[int] = Counter()
    for _ in range(LOOKS):
        waits.update(int(task.name) for task in _tasks(worker) if _waits_for_sockets(task))
        await asyncio.sleep(LOOK_INTERVAL_S)
    del waits[worker]
    return max(waits, key=waits.__getitem__, default=None)


def _waits_for_sockets(task: Path) -> bool:
    with suppress(OSError):
        return "epoll" in (task / "wchan").read_text()
    return False


def thread_counters(worker: int, consumer: int | None) -> dict[int, ThreadCounters]:
    """Return the counters of each thread by its id; a thread that ends meanwhile is left out."""
    counters = {}
    for task in _tasks(worker):
        with suppress(OSError):
            counters[int(task.name)] = _counters(task, worker, consumer)
    return counters


def _tasks(worker: int) -> Iterator[Path]:
    return Path(f"/proc/{worker}/task").iterdir()


def _counters(task: Path, worker: int, consumer: int | None) -> ThreadCounters:
    rows = dict(row.split(":", 1) for row in (task / "status").read_text().splitlines())
    voluntary, involuntary = int(rows["voluntary_ctxt_switches"]), int(rows["nonvoluntary_ctxt_switches"])
    kind = _kind_of(int(task.name), rows["Name"].strip(), worker, consumer)
    return ThreadCounters(kind, stat_cpu_seconds(task / "stat"), voluntary, involuntary)


def _kind_of(thread: int, name: str, worker: int, consumer: int | None) -> ThreadKind:
    """Native libraries name their threads; those of Python have the name of the program."""
    if thread == worker:
        return EVENT_LOOP
    if thread == consumer:
        return CONSUMER
    return OTHER_PYTHON if name.startswith("python") else NATIVE
