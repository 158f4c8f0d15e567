"""The contract of a step, built in or installed: its inputs and outputs, capabilities and settings. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from schemas.failures import Rejected
from schemas.messages.turns import Turn
from schemas.state.memories import Memory

Rule = Literal[
    "unknown_step", "duplicate_step", "wrong_pipeline", "wrong_order", "step_is_fixed", "not_replaceable", "no_place",
    "missing_requirement", "undeclared_product", "unknown_profile", "unknown_template", "capability_unavailable",
    "unknown_class", "unlisted_package", "invalid_config",
]  # fmt: skip
"""The rules; `docs/pipelines.md` explains each."""


def refuse(rule: Rule, message: str) -> Rejected:
    return Rejected("invalid_value", f"rule {rule}: {message}", "arguments.edits")


CAPABILITIES = frozenset({"language_model", "vector_search", "writes"})

WRITING_PLACES = frozenset({"turn", "file_text", "items", "understanding", "turns"})
"""Values whose custom steps may write memories; in questions no step may."""

INITIAL_STATE: Mapping[str, frozenset[str]] = {
    "memorize": frozenset({"record", "file"}),
    "retrieve": frozenset({"record"}),
    "evolve": frozenset({"scope"}),
}
"""The values that a pipeline begins with."""

SEAMS: Mapping[str, frozenset[str]] = {
    "turn": frozenset({"turn"}),
    "file_text": frozenset({"memory", "file", "file_text"}),
    "items": frozenset({"memory", "items"}),
    "understanding": frozenset({"memory", "understanding"}),
    "query": frozenset({"query"}),
    "hits": frozenset({"query", "hits"}),
    "turns": frozenset({"scope", "turns"}),
}
"""The capabilities that custom steps may have, by the value they may replace."""


class NoConfig(BaseModel, extra="forbid", frozen=True):
    """A step without settings."""


@dataclass(frozen=True, slots=True)
class StepContract:
    """A step as its pipeline sees it.

    `role` selects the language model profile where none is configured. `optional` is used where it is there. `opens`
    names the part of the state that custom steps after this one may replace; None: no custom step runs between this
    step and the next. `is_fixed`: it can be neither switched off nor replaced. `promise` is what depends on a step that
    is fixed, or that no class can replace; a refusal says it. `is_off`: the pipelines of the release have it switched
    off.
    """

    step_id: str
    role: str
    requires: frozenset[str]
    produces: frozenset[str]
    capabilities: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    config: type[BaseModel] = NoConfig
    opens: str | None = None
    is_fixed: bool = False
    is_replaceable: bool = False
    is_off: bool = False
    promise: str = ""

    @property
    def pipeline(self) -> str:
        return self.step_id.split(".", 1)[0]


OnFailure = Literal["reject", "skip"]
"""`reject`: the turn or the request gets an error, a turn is a dead letter too. `skip`: as without the step."""

DEFAULT_TIMEOUT_S = 5.0
MAX_TIMEOUT_S = 60.0
MAX_RETRIES = 5


class CustomStepConfig(BaseModel, extra="forbid", strict=True, frozen=True):
    """Settings of every custom step.

    `timeout_s`: of each attempt. `retries`: attempts after the first one that failed. `concurrency`: calls at a time in
    a worker, None for no limit. `on_failure`: None as its place says: what changes a turn before it is stored, or its
    items, must not be skipped by chance; a search can do without.
    """

    timeout_s: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S)] = DEFAULT_TIMEOUT_S
    retries: Annotated[int, Field(ge=0, le=MAX_RETRIES)] = 0
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    on_failure: OnFailure | None = None


REJECTING_PLACES = frozenset({"turn", "file_text", "items"})


def on_failure_of(config: CustomStepConfig, produces: str) -> OnFailure:
    return config.on_failure or ("reject" if produces in REJECTING_PLACES else "skip")


def custom_contract(step_id: str, implementation: str, installed: Any) -> StepContract:
    """Return the contract that a class states. Raises Rejected with the rule `unknown_class` if it states none."""
    stated = {name: getattr(installed, name, None) for name in ("role", "requires", "produces", "capabilities")}
    role = stated.pop("role")
    if not isinstance(role, str) or not callable(getattr(installed, "__call__", None)):  # noqa: B004 - of its instances
        raise refuse("unknown_class", f"{implementation} has no `role`, or its instances can't be called")
    for name, value in stated.items():
        if not isinstance(value, tuple | frozenset) or not all(isinstance(name, str) for name in value):
            raise refuse("unknown_class", f"{implementation}: `{name}` is a tuple of names")
    if unknown := set(stated["capabilities"] or ()) - CAPABILITIES:
        raise refuse("unknown_class", f"{implementation}: no capability is called {', '.join(sorted(unknown))}")
    return StepContract(
        step_id,
        role,
        frozenset(stated["requires"] or ()),
        frozenset(stated["produces"] or ()),
        frozenset(stated["capabilities"] or ()),
        config=_config_of(implementation, installed),
    )


def _config_of(implementation: str, installed: Any) -> type[BaseModel]:
    """Return the settings of a class, its own `Config` and those of every step."""
    config = getattr(installed, "Config", None)
    if config is None:
        return CustomStepConfig
    if not (isinstance(config, type) and issubclass(config, BaseModel)):
        raise refuse("unknown_class", f"{implementation}: `Config` is a Pydantic model")
    if taken := sorted(set(config.model_fields) & set(CustomStepConfig.model_fields)):
        raise refuse("unknown_class", f"{implementation}: `Config` has {taken[0]}, which every step has")
    return create_model("Config", __base__=(CustomStepConfig, config))


def is_private(state: Mapping[str, Any]) -> bool:
    """True if the state has a private turn, memory or hit, which no language model reads."""
    turn, memory = state.get("turn"), state.get("memory")
    if isinstance(turn, Turn) and turn.private:
        return True
    if isinstance(memory, Memory) and memory.visibility.private:
        return True
    if any(hit.private for hit in state.get("hits", ())):
        return True
    return any(source.visibility.private for source in state.get("turns", ()))
