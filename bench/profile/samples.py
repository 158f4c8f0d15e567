"""Samples of a worker's threads, as py-spy writes them, and the milliseconds of each stage."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.profile.stages import OTHER, STAGES, stage_of
from bench.profile.threads import CONSUMER, EVENT_LOOP, NATIVE, OTHER_PYTHON, ThreadKind

CONSUMER_ROOT = "WorkerThread.run (mode/threads.py"
"""A frame of every stack of Faust's consumer thread."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One stack and how often it was seen."""

    thread: ThreadKind
    stage: str
    count: int


def parse_samples(lines: Iterable[str]) -> list[Sample]:
    """Parse lines of `thread (TID): NAME;FRAME;FRAME;... COUNT`, frames from the root on; skip any other line."""
    parsed = (line.rpartition(" ") for line in lines)
    return [_sample(stack.split(";"), int(count)) for stack, _, count in parsed if stack and count.strip().isdigit()]


def _sample(frames: list[str], count: int) -> Sample:
    thread, *stack = frames
    return Sample(_kind_of(thread, stack), stage_of(stack), count)


def _kind_of(thread: str, stack: list[str]) -> ThreadKind:
    if any(frame.startswith(CONSUMER_ROOT) for frame in stack):
        return CONSUMER
    return EVENT_LOOP if thread.endswith(": MainThread") else OTHER_PYTHON


def stage_costs(samples: Iterable[Sample], thread_ms: Mapping[ThreadKind, float]) -> dict[str, float]:
    """Divide the processor time of each kind of thread among its stages, by their shares of its samples.

    Samples are taken of the thread that holds the interpreter lock, so the time of native code that runs without it is
    divided in the same way. A kind without samples counts as `other`; native threads are no part of it.
    """
    counts: dict[ThreadKind, Counter[str]] = {kind: Counter() for kind in thread_ms if kind != NATIVE}
    for sample in samples:
        if sample.thread in counts:
            counts[sample.thread][sample.stage] += sample.count
    costs = dict.fromkeys(STAGES, 0.0)
    for kind, by_stage in counts.items():
        seen = by_stage or Counter({OTHER: 1})
        for stage, count in seen.items():
            costs[stage] += thread_ms[kind] * count / seen.total()
    return costs
