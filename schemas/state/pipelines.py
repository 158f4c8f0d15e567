"""A deployment's pipelines: revisions of `memorize`, `retrieve` and `evolve`, on the topic `pipelines`.

A revision holds the whole topology and configuration, so that each can be read, compared and restored independently.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, Self

from modestream_client.vocabulary import StepId
from pydantic import BaseModel, Field
from pydantic_core import to_json

PipelineName = Literal["memorize", "retrieve", "evolve"]
PIPELINE_NAMES: tuple[PipelineName, ...] = ("memorize", "retrieve", "evolve")

SHIPPED = 0
"""The number of the release's own revision; a deployment's begin with 1."""


class PlacedStep(BaseModel, frozen=True, extra="forbid"):
    """One step in its place. `implementation` is the dotted path of a class of the deployment; None: a built-in step.

    `config` has only values that differ from the step's defaults.
    """

    step_id: StepId
    implementation: str | None = Field(default=None, max_length=256)
    enabled: bool = True
    config: dict[str, Any] = Field(default_factory=dict)

    @property
    def pipeline(self) -> str:
        return self.step_id.split(".", 1)[0]


class Topology(BaseModel, frozen=True, extra="forbid"):
    """The steps of the three pipelines, each in the order in which they run."""

    memorize: tuple[PlacedStep, ...]
    retrieve: tuple[PlacedStep, ...]
    evolve: tuple[PlacedStep, ...]

    def of(self, pipeline: str) -> tuple[PlacedStep, ...]:
        steps: tuple[PlacedStep, ...] = getattr(self, pipeline)
        return steps

    def steps(self) -> list[PlacedStep]:
        return [*self.memorize, *self.retrieve, *self.evolve]

    def find(self, step_id: str) -> PlacedStep | None:
        return next((step for step in self.steps() if step.step_id == step_id), None)

    def with_steps(self, pipeline: str, steps: Iterable[PlacedStep]) -> Self:
        return self.model_copy(update={pipeline: tuple(steps)})

    @property
    def digest(self) -> str:
        """The SHA-256 of topology and configuration, in hexadecimal."""
        canonical = to_json(self.model_dump(mode="json"))
        return hashlib.sha256(canonical).hexdigest()


class Revision(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """One accepted change. `parent` is the revision that it changes, `restores` the one that a rollback restores.

    `request` identifies the command, which may be delivered twice.
    """

    schema_: Literal["pipeline.v1"] = Field(default="pipeline.v1", alias="schema")
    number: int = Field(ge=0)
    parent: int | None
    hash: str
    author: str | None = None
    created_at: datetime
    note: str = ""
    restores: int | None = None
    request: str = ""
    topology: Topology

    def summary(self) -> dict[str, Any]:
        """Return everything but the topology, for lists."""
        return self.model_dump(mode="json", exclude={"topology", "request", "schema_"})
