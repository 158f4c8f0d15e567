"""The deployment's own steps on what a language model has understood of a turn."""

from schemas.failures import Rejected
from schemas.internal.events import Understood
from schemas.state.memories import Memory
from streams.flow.support.pipelines import Pipelines

UNDERSTAND = "memorize.understand"


async def with_own_steps(event: Understood, memory: Memory, pipelines: Pipelines) -> Understood:
    """Return the answer after own steps; without one where a step fails: asked again, it would fail again."""
    active = await pipelines.at(event.revision)
    if active is None or event.found is None or not active.has_own(UNDERSTAND):
        return event
    try:
        own = await active.run_own(UNDERSTAND, {"memory": memory, "understanding": event.found})
    except Rejected:
        return event.model_copy(update={"found": None})
    return event.model_copy(update={"found": own.value})
