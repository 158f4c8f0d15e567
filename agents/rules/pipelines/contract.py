"""The contract of a step: what it needs of the state, what it gives, and which capabilities it uses. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

CAPABILITIES = frozenset({"language_model", "vector_search", "writes"})

OWN_CAPABILITIES = frozenset({"language_model"})
"""Capabilities that a deployment's own step can have: what it writes is what it returns."""

INITIAL_STATE: Mapping[str, frozenset[str]] = {
    "memorize": frozenset({"record"}),
    "retrieve": frozenset({"record"}),
    "evolve": frozenset({"scope"}),
}
"""What a pipeline begins with."""

SEAMS: Mapping[str, frozenset[str]] = {
    "turn": frozenset({"turn"}),
    "items": frozenset({"memory", "items"}),
    "understanding": frozenset({"memory", "understanding"}),
    "query": frozenset({"query"}),
    "hits": frozenset({"query", "hits"}),
    "turns": frozenset({"scope", "turns"}),
}
"""By what own steps may replace at a place, what they may have there."""


class NoConfig(BaseModel, extra="forbid", frozen=True):
    """A step without settings."""


@dataclass(frozen=True, slots=True)
class StepContract:
    """A step as its pipeline sees it.

    `role` selects the language model profile where none is configured. `optional` is used where it is there. `opens`
    names the part of the state that own steps after this one may replace; None: no own step runs between this step and
    the next. `is_fixed`: it can be neither switched off nor replaced, as acknowledgement and order depend on it.
    `is_off`: the pipelines of the release have it switched off.
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

    @property
    def pipeline(self) -> str:
        """The name of its pipeline."""
        return self.step_id.split(".", 1)[0]
