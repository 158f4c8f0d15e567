"""Apply edits to a topology, and bring a stored one to this release. Pure.

`agents.rules.pipelines.validation` decides whether the result is valid.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import reduce

from modestream_client.arguments import ConfigureStep, Edit, InsertStep, ReplaceStep

from agents.rules.pipelines.built_in import BUILT_IN, DEFAULT_TOPOLOGY, not_replaceable
from agents.rules.pipelines.contract import refuse
from schemas.state.pipelines import PIPELINE_NAMES, SHIPPED, PlacedStep, Revision, Topology


def apply_edits(topology: Topology, edits: Sequence[Edit]) -> Topology:
    """Return the topology after all edits, in their order. Raises Rejected with the rule that one breaks."""
    return reduce(_apply, edits, topology)


def _apply(topology: Topology, edit: Edit) -> Topology:
    if isinstance(edit, InsertStep):
        at = _known(topology, edit.at)
        if topology.find(edit.step_id) is not None or edit.step_id in BUILT_IN:
            raise refuse("duplicate_step", f"there is a step {edit.step_id!r} already; choose another name")
        inserted = PlacedStep(step_id=edit.step_id, implementation=edit.implementation, config=edit.config)
        if inserted.pipeline != at.pipeline:
            raise refuse("wrong_pipeline", f"a step beside {edit.at} is named {at.pipeline}.NAME, not {edit.step_id}")
        placed = list(topology.of(at.pipeline))
        position = placed.index(at) + (edit.op == "insert_after")
        return topology.with_steps(at.pipeline, [*placed[:position], inserted, *placed[position:]])
    step = _known(topology, edit.step_id)
    if isinstance(edit, ConfigureStep):
        config = {name: value for name, value in {**step.config, **edit.config}.items() if value is not None}
        enabled = step.enabled if edit.enabled is None else edit.enabled
        return _with(topology, step.model_copy(update={"config": config, "enabled": enabled}))
    if isinstance(edit, ReplaceStep):
        contract = BUILT_IN.get(step.step_id)
        if contract is not None and not contract.is_replaceable:
            raise not_replaceable(contract)
        return _with(topology, PlacedStep(step_id=step.step_id, implementation=edit.implementation, config=edit.config))
    if step.step_id not in BUILT_IN:
        steps = topology.of(step.pipeline)
        return topology.with_steps(step.pipeline, [other for other in steps if other.step_id != edit.step_id])
    if step.implementation is not None:
        return _with(topology, PlacedStep(step_id=step.step_id))
    return _with(topology, step.model_copy(update={"enabled": False}))


def _known(topology: Topology, step_id: str) -> PlacedStep:
    step = topology.find(step_id)
    if step is None:
        names = ", ".join(step.step_id for step in topology.steps())
        raise refuse("unknown_step", f"there is no step {step_id!r}; there are: {names}")
    return step


def _with(topology: Topology, changed: PlacedStep) -> Topology:
    steps = topology.of(changed.pipeline)
    return topology.with_steps(
        changed.pipeline, [changed if step.step_id == changed.step_id else step for step in steps]
    )


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
    """Return a topology of another release with the built-in steps of this one, custom steps where they were."""
    for name in PIPELINE_NAMES:
        # The released steps, each as stored and followed by the custom steps that stood behind it.
        stored, released = topology.of(name), DEFAULT_TOPOLOGY.of(name)
        behind: dict[str, list[PlacedStep]] = {}
        anchor = released[0].step_id
        for step in stored:
            if (built_in := BUILT_IN.get(step.step_id)) is not None:
                # Behind a step that opens nothing no custom step runs in this release: it stays behind the one before.
                anchor = step.step_id if built_in.opens else anchor
            elif step.implementation is not None:
                behind.setdefault(anchor, []).append(step)
        stored_steps = {step.step_id: step for step in stored}
        steps: list[PlacedStep] = []
        for step in released:
            steps += [stored_steps.get(step.step_id, step), *behind.get(step.step_id, ())]
        topology = topology.with_steps(name, steps)
    return topology
