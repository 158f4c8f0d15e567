"""Later parts of a turn's run: its vector, a language model's answer, what is derived. Each is a run of its own.

They are linked by the id of the memory, and recorded where the turn's run is one of the share, or where they fail.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog
from modestream_client.runs import Run, RunFailure, RunPart

from agents.ports.run_timer import RunTimer
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.state.memories import Memory
from streams.flow.runs.record import has_failed_model, revision_of, times_of
from streams.flow.runs.recorder import RunRecorder

log = structlog.get_logger()


class PartUnderWay:
    """A part. `timer` is to be current while its code runs; `outcome` has ids and counts.

    `job_id` is the job that repeats the part of a turn.
    """

    __slots__ = ("job_id", "outcome", "timer")

    def __init__(self, job_id: str | None = None) -> None:
        self.job_id = job_id
        self.timer = RunTimer()
        self.outcome: Mapping[str, Any] = {}


@contextmanager
def timed_part(
    runs: RunRecorder | None, part: RunPart, memory: Memory, partition: int, job_id: str | None = None
) -> Iterator[PartUnderWay]:
    """Time a part, and record it at the end of the block; an exception is its failure.

    One that a job repeats has a run of its own beside the first.
    """
    under_way = PartUnderWay(job_id)
    try:
        with under_way.timer:
            yield under_way
    except Exception as problem:
        end_part(runs, part, memory, partition, under_way, _code_of(problem))
        raise
    end_part(runs, part, memory, partition, under_way)


def _code_of(problem: Exception) -> str:
    if isinstance(problem, Rejected):
        return problem.dead_letter_code
    return "unavailable" if isinstance(problem, Unavailable | ModelMissing) else "internal"


def end_part(
    runs: RunRecorder | None,
    part: RunPart,
    memory: Memory,
    partition: int,
    under_way: PartUnderWay,
    failure: str | None = None,
) -> None:
    """Record a part that ends now, if it is one of the share, failed, or a model failed in it."""
    if runs is None:
        return
    is_failed = failure is not None or has_failed_model(under_way.timer)
    if not is_failed and not runs.is_sampled(memory.memory_id):
        return
    try:
        run = Run(
            run_id="-".join(filter(None, (part, memory.memory_id, str(memory.latest), under_way.job_id))),
            pipeline="memorize",
            part=part,
            scope=dict(memory.scope),
            memory_id=memory.memory_id,
            revision=revision_of(runs.current_revision()),
            outcome=None if failure is not None else {"version": memory.version, **under_way.outcome},
            failure=None if failure is None else RunFailure(code=failure),
            **times_of(under_way.timer, runs.clock.now()),
        )
        runs.publish(run, memory.boundary.encode(), partition)
    except Exception:
        log.exception("a part of a run could not be recorded", part=part, partition=partition)
