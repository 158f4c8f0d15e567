"""Have a language model understand a turn: its answer after custom steps, as a part of the turn's run."""

from collections.abc import Awaitable, Callable

from agents.ports.pipelines import ActivePipelines, State
from agents.understanding.understand import UNDERSTAND
from schemas.failures import Rejected
from schemas.internal.events import Understood
from schemas.state.memories import Memory
from streams.flow.runs.parts import timed_part
from streams.flow.worker_context import WorkerContext


async def understood_turn(
    active: ActivePipelines,
    ask: Callable[[], Awaitable[Understood]],
    turn: Memory,
    partition: int,
    ctx: WorkerContext,
    job_id: str | None = None,
) -> Understood | None:
    """Return the answer about a turn, None where the step is off; `job_id` is the job that asks again.

    Without what was understood where a custom step fails: asked again, it would fail again. Raises what `ask` raises,
    recorded.
    """

    async def asked(_state: State) -> State:
        event = await ask()
        return {"event": event, "understanding": event.found}

    state: State = {"memory": turn}
    with timed_part(ctx.runs, "understand", turn, partition, job_id) as part:
        try:
            await active.run({UNDERSTAND: asked}, state)
        except Rejected:
            if "event" not in state:
                raise
            state["understanding"] = None
        if "event" not in state:
            return None
        event: Understood = state["event"].model_copy(update={"found": state["understanding"]})
        # What a model has answered in short: no texts.
        found = event.found
        part.outcome = {
            "profile": event.profile,
            "prompt": event.prompt,
            "interaction_mode": None if event.interaction is None else event.interaction.mode,
            "items": 0 if found is None else len(found.items),
            "categories": 0 if found is None else len(found.categories),
            **({} if job_id is None else {"job_id": job_id}),
        }
    return event
