"""Where own steps run: behind a built-in step, or in its place. Pure."""

from collections.abc import Iterator

from agents.rules.pipelines.built_in import BUILT_IN
from schemas.state.pipelines import PlacedStep, Topology


def own_steps(topology: Topology) -> Iterator[tuple[str, PlacedStep]]:
    """Yield the enabled own steps in their order, each with the built-in step behind or instead of which it runs."""
    place = ""
    for step in topology.steps():
        place = step.step_id if step.step_id in BUILT_IN else place
        if step.implementation is not None and step.enabled:
            yield place, step


def has_own_at(topology: Topology, place: str) -> bool:
    """True if own steps run there."""
    return any(one == place for one, _ in own_steps(topology))
