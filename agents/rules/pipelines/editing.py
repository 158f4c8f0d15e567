"""Apply edits to a topology; whether the result is valid is decided by `validation`. Pure."""

from collections.abc import Sequence
from functools import reduce

from modestream_client.pipeline_edits import ConfigureStep, Edit, InsertStep, RemoveStep, ReplaceStep

from agents.rules.pipelines.built_in import BUILT_IN
from agents.rules.pipelines.refusals import refuse
from schemas.state.pipelines import PlacedStep, Topology


def apply_edits(topology: Topology, edits: Sequence[Edit]) -> Topology:
    """Return the topology after all edits, in their order. Raises Rejected with the rule that one breaks."""
    return reduce(_apply, edits, topology)


def _apply(topology: Topology, edit: Edit) -> Topology:
    if isinstance(edit, InsertStep):
        return _inserted(topology, edit)
    step = _known(topology, edit.step_id)
    if isinstance(edit, ConfigureStep):
        return _with(topology, _configured(step, edit))
    if isinstance(edit, ReplaceStep):
        return _with(topology, _replaced(step, edit))
    return _removed(topology, step, edit)


def _known(topology: Topology, step_id: str) -> PlacedStep:
    step = topology.find(step_id)
    if step is None:
        names = ", ".join(one.step_id for one in topology.steps())
        raise refuse("unknown_step", f"there is no step {step_id!r}; there are: {names}")
    return step


def _with(topology: Topology, changed: PlacedStep) -> Topology:
    steps = topology.of(changed.pipeline)
    return topology.with_steps(changed.pipeline, [changed if one.step_id == changed.step_id else one for one in steps])


def _configured(step: PlacedStep, edit: ConfigureStep) -> PlacedStep:
    merged = {**step.config, **edit.config}
    config = {name: value for name, value in merged.items() if value is not None}
    enabled = step.enabled if edit.enabled is None else edit.enabled
    return step.model_copy(update={"config": config, "enabled": enabled})


def _replaced(step: PlacedStep, edit: ReplaceStep) -> PlacedStep:
    contract = BUILT_IN.get(step.step_id)
    if contract is not None and not contract.is_replaceable:
        replaceable = ", ".join(name for name, one in BUILT_IN.items() if one.is_replaceable)
        raise refuse(
            "not_replaceable",
            f"no class can take the place of {step.step_id}; these built-in steps can be replaced: {replaceable}",
        )
    return PlacedStep(step_id=step.step_id, implementation=edit.implementation, config=edit.config)


def _inserted(topology: Topology, edit: InsertStep) -> Topology:
    at = _known(topology, edit.at)
    if topology.find(edit.step_id) is not None or edit.step_id in BUILT_IN:
        raise refuse("duplicate_step", f"there is a step {edit.step_id!r} already; choose another name")
    inserted = PlacedStep(step_id=edit.step_id, implementation=edit.implementation, config=edit.config)
    if inserted.pipeline != at.pipeline:
        raise refuse("wrong_pipeline", f"a step beside {edit.at} is named {at.pipeline}.NAME, not {edit.step_id}")
    steps = list(topology.of(at.pipeline))
    place = steps.index(at) + (edit.op == "insert_after")
    return topology.with_steps(at.pipeline, [*steps[:place], inserted, *steps[place:]])


def _removed(topology: Topology, step: PlacedStep, edit: RemoveStep) -> Topology:
    if step.step_id not in BUILT_IN:
        steps = topology.of(step.pipeline)
        return topology.with_steps(step.pipeline, [one for one in steps if one.step_id != edit.step_id])
    if step.implementation is not None:
        return _with(topology, PlacedStep(step_id=step.step_id))
    return _with(topology, step.model_copy(update={"enabled": False}))
