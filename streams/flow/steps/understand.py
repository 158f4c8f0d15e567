"""Have a language model understand a turn: its answer after custom steps, as a part of the turn's run."""

from collections.abc import Awaitable, Callable
from typing import Any

from agents.ports.run_timer import step
from schemas.failures import Rejected
from schemas.internal.events import Understood
from schemas.state.memories import Memory
from streams.flow.pipelines.in_force import Pipelines
from streams.flow.runs.parts import timed_part
from streams.flow.worker_context import WorkerContext

UNDERSTAND = "memorize.understand"


async def understood_turn(
    ask: Callable[[], Awaitable[Understood]],
    turn: Memory,
    partition: int,
    ctx: WorkerContext,
    job_id: str | None = None,
) -> Understood:
    """Return the answer about a turn; `job_id` is the job that asks again. Raises what `ask` raises, recorded."""
    with timed_part(ctx.runs, "understand", turn, partition, job_id) as part:
        with step(UNDERSTAND):
            event = await ask()
        event = await _with_custom_steps(event, turn, ctx.pipelines)
        part.outcome = _outcome(event, job_id)
    return event


async def _with_custom_steps(event: Understood, memory: Memory, pipelines: Pipelines) -> Understood:
    """Return the answer after custom steps; without one where a step fails: asked again, it would fail again."""
    active = await pipelines.at(event.revision)
    if active is None or event.found is None or not active.has_custom(UNDERSTAND):
        return event
    try:
        own = await active.run_custom(UNDERSTAND, {"memory": memory, "understanding": event.found})
    except Rejected:
        return event.model_copy(update={"found": None})
    return event.model_copy(update={"found": own.value})


def _outcome(event: Understood, job_id: str | None) -> dict[str, Any]:
    """Return what a model has answered in short: no texts."""
    found = event.found
    return {
        "profile": event.profile,
        "prompt": event.prompt,
        "interaction_mode": None if event.interaction is None else event.interaction.mode,
        "items": 0 if found is None else len(found.items),
        "categories": 0 if found is None else len(found.categories),
        **({} if job_id is None else {"job_id": job_id}),
    }
