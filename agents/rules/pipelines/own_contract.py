"""The contract of a class that a deployment has installed, and the settings that every own step has. Pure."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from agents.rules.pipelines.contract import CAPABILITIES, StepContract
from agents.rules.pipelines.refusals import refuse

OnFailure = Literal["reject", "skip"]
"""`reject`: the turn or the request gets an error, a turn is a dead letter too. `skip`: as without the step."""

DEFAULT_TIMEOUT_S = 5.0
MAX_TIMEOUT_S = 60.0


class OwnStepConfig(BaseModel, extra="forbid", strict=True, frozen=True):
    """Settings of every own step: its time limit in seconds, and what happens when it fails (None: as its place says).

    What changes a turn before it is stored, or its items, must not be skipped by chance; a search can do without.
    """

    timeout_s: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S)] = DEFAULT_TIMEOUT_S
    on_failure: OnFailure | None = None


REJECTING_PLACES = frozenset({"turn", "items"})


def on_failure_of(config: OwnStepConfig, produces: str) -> OnFailure:
    """Return what happens when a step fails that produces this."""
    return config.on_failure or ("reject" if produces in REJECTING_PLACES else "skip")


def own_contract(step_id: str, implementation: str, found: Any) -> StepContract:
    """Return the contract that a class states. Raises Rejected with the rule `unknown_class` if it states none."""
    stated = {name: getattr(found, name, None) for name in ("role", "requires", "produces", "capabilities")}
    role = stated.pop("role")
    if not isinstance(role, str) or not callable(getattr(found, "__call__", None)):  # noqa: B004 - of its instances
        raise refuse("unknown_class", f"{implementation} has no `role`, or its instances can't be called")
    for name, value in stated.items():
        if not isinstance(value, tuple | frozenset) or not all(isinstance(one, str) for one in value):
            raise refuse("unknown_class", f"{implementation}: `{name}` is a tuple of names")
    if unknown := set(stated["capabilities"] or ()) - CAPABILITIES:
        raise refuse("unknown_class", f"{implementation}: no capability is called {', '.join(sorted(unknown))}")
    return StepContract(
        step_id,
        role,
        frozenset(stated["requires"] or ()),
        frozenset(stated["produces"] or ()),
        frozenset(stated["capabilities"] or ()),
        config=_config_of(implementation, found),
    )


def _config_of(implementation: str, found: Any) -> type[BaseModel]:
    """Return the settings of a class, its own `Config` and those of every step."""
    own = getattr(found, "Config", None)
    if own is None:
        return OwnStepConfig
    if not (isinstance(own, type) and issubclass(own, BaseModel)):
        raise refuse("unknown_class", f"{implementation}: `Config` is a Pydantic model")
    if taken := sorted(set(own.model_fields) & set(OwnStepConfig.model_fields)):
        raise refuse("unknown_class", f"{implementation}: `Config` has {taken[0]}, which every step has")
    return create_model("Config", __base__=(OwnStepConfig, own))
