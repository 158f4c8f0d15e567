"""Where own steps run: behind a built-in step, or in its place. Pure."""

from collections.abc import Iterator

from agents.rules.pipelines.built_in import BUILT_IN
from agents.rules.pipelines.own_contract import REJECTING_PLACES
from schemas.state.pipelines import PlacedStep, Topology


def own_steps(topology: Topology) -> Iterator[tuple[str, PlacedStep]]:
    """Yield the enabled own steps in their order, each with the built-in step behind or instead of which it runs."""
    place = ""
    for step in topology.steps():
        place = step.step_id if step.step_id in BUILT_IN else place
        if step.implementation is not None and step.enabled:
            yield place, step


def steps_not_to_skip(topology: Topology) -> Iterator[tuple[str, PlacedStep]]:
    """Yield the own steps, with their places, whose failure rejects the turn or the request."""
    for place, step in own_steps(topology):
        default = "reject" if BUILT_IN[place].opens in REJECTING_PLACES else "skip"
        if (step.config.get("on_failure") or default) == "reject":
            yield place, step


def has_own_at(topology: Topology, place: str) -> bool:
    """True if own steps run there."""
    return any(one == place for one, _ in own_steps(topology))
