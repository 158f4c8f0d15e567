"""Processor time and context switches of the running system between two moments."""

from dataclasses import dataclass

from bench.harness.processes import cpu_seconds
from bench.harness.system import System
from bench.profile.threads import THREAD_KINDS, ThreadCounters, ThreadKind, thread_counters


@dataclass(frozen=True, slots=True)
class Costs:
    """Milliseconds and context switches of one turn or question."""

    process_ms: dict[str, float]
    thread_ms: dict[ThreadKind, float]
    """The worker's."""
    voluntary_switches: float
    involuntary_switches: float

    @property
    def total_ms(self) -> float:
        """All processes together."""
        return sum(self.process_ms.values())


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters at one moment."""

    processes: dict[str, float]
    threads: dict[int, ThreadCounters]

    @classmethod
    def read(cls, system: System, consumer: int | None) -> "Counters":
        """Read the counters; `consumer` is the id of Faust's consumer thread."""
        return cls(cpu_seconds(system), thread_counters(system.pid("worker"), consumer))

    def costs_since(self, earlier: "Counters", count: int) -> Costs:
        """Return the costs of each of `count` turns or questions since an earlier moment."""
        processes = {
            name: 1000 * (seconds - earlier.processes[name]) / count for name, seconds in self.processes.items()
        }
        used = [_difference(now, earlier.threads.get(thread)) for thread, now in self.threads.items()]
        threads = {kind: 1000 * sum(one.cpu_s for one in used if one.kind == kind) / count for kind in THREAD_KINDS}
        voluntary, involuntary = sum(one.voluntary for one in used), sum(one.involuntary for one in used)
        return Costs(processes, threads, voluntary / count, involuntary / count)


def _difference(now: ThreadCounters, before: ThreadCounters | None) -> ThreadCounters:
    if before is None:
        return now
    return ThreadCounters(
        now.kind, now.cpu_s - before.cpu_s, now.voluntary - before.voluntary, now.involuntary - before.involuntary
    )
