"""Pipelines as commands show them: each step with its contract, settings and defaults. Pure."""

from collections.abc import Callable
from typing import Any

from agents.rules.pipelines.contract import StepContract
from agents.rules.pipelines.validation import contract_of
from schemas.failures import Rejected
from schemas.state.pipelines import PIPELINE_NAMES, PlacedStep, Revision


def build_pipeline_view(revision: Revision, own_contract: Callable[[PlacedStep], StepContract]) -> dict[str, Any]:
    """Return a revision with all of its steps. A class that is not installed any more has no contract."""
    pipelines = {name: [_step_view(one, own_contract) for one in revision.topology.of(name)] for name in PIPELINE_NAMES}
    return {**revision.summary(), "revision": revision.number, "pipelines": pipelines}


def _step_view(step: PlacedStep, own_contract: Callable[[PlacedStep], StepContract]) -> dict[str, Any]:
    shown: dict[str, Any] = {**step.model_dump(mode="json"), "built_in": step.implementation is None}
    try:
        contract = contract_of(step, own_contract)
    except Rejected:
        return {**shown, "installed": False}
    return {
        **shown,
        "role": contract.role,
        "requires": sorted(contract.requires),
        "produces": sorted(contract.produces),
        "capabilities": sorted(contract.capabilities),
        "can_be_switched_off": not contract.is_fixed,
        "can_be_replaced": contract.is_replaceable or step.implementation is not None,
        "own_steps_may_follow": contract.opens,
        "settings": sorted(contract.config.model_fields),
    }
