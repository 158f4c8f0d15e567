"""Classes of own steps, found by their dotted paths among what the deployment has installed."""

import importlib
from typing import Any

from pydantic import BaseModel

from agents.ports.pipelines import OwnStep, StepPorts
from agents.rules.pipelines.contract import StepContract
from agents.rules.pipelines.own_contract import own_contract
from agents.rules.pipelines.refusals import refuse
from schemas.state.pipelines import PlacedStep


class PythonSteps:
    """Implements `agents.ports.pipelines.InstalledSteps` over Python's own modules."""

    def contract(self, step: PlacedStep) -> StepContract:
        return own_contract(step.step_id, step.implementation or "", _load(step.implementation or ""))

    def build(self, step: PlacedStep, config: BaseModel, ports: StepPorts) -> OwnStep:
        try:
            made: OwnStep = _load(step.implementation or "")(config, ports)
        # A constructor of the deployment may raise anything.
        except Exception as problem:
            message = f"{step.implementation} can't be constructed: {type(problem).__name__}: {problem}"
            raise refuse("unknown_class", message) from problem
        return made


def _load(path: str) -> Any:
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    # The import of a module may raise anything.
    except Exception as problem:
        message = f"{path} can't be imported: {type(problem).__name__}: {problem}"
        raise refuse("unknown_class", message) from problem
