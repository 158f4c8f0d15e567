"""Bring a stored topology to this release: a release may add built-in steps, or take some away. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from agents.rules.pipelines.built_in import BUILT_IN, DEFAULT_TOPOLOGY
from schemas.state.pipelines import PIPELINE_NAMES, SHIPPED, PlacedStep, Revision, Topology

RELEASED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def shipped_revision() -> Revision:
    """Return revision 0: the pipelines of the release, as if no operator had ever changed them."""
    return Revision(
        number=SHIPPED,
        parent=None,
        hash=DEFAULT_TOPOLOGY.digest,
        created_at=RELEASED_AT,
        note="the pipelines of the release",
        topology=DEFAULT_TOPOLOGY,
    )


def in_this_release(topology: Topology) -> Topology:
    """Return a topology of another release with the built-in steps of this one, own steps where they were."""
    for name in PIPELINE_NAMES:
        topology = topology.with_steps(name, _merged(topology.of(name), DEFAULT_TOPOLOGY.of(name)))
    return topology


def _merged(stored: Sequence[PlacedStep], released: Sequence[PlacedStep]) -> list[PlacedStep]:
    """Return the released steps, each as stored and followed by the own steps that stood behind it."""
    behind: dict[str, list[PlacedStep]] = {}
    place = released[0].step_id
    for step in stored:
        if step.step_id in BUILT_IN:
            place = step.step_id
        elif step.implementation is not None:
            behind.setdefault(place, []).append(step)
    known = {one.step_id: one for one in stored}
    return [each for one in released for each in (known.get(one.step_id, one), *behind.get(one.step_id, ()))]
