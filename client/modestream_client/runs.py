"""`run.v1`: how one request went through its pipeline, on the topic `runs` (docs/topics.md)."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

Pipeline = Literal["memorize", "retrieve", "evolve"]

RunPart = Literal["accept", "index", "understand", "intend", "categorize", "answer", "consolidate"]
"""The work of the run. A turn's is in parts, each a run: the turn is accepted, embedded, understood by a language
model, and intention and categories are derived from it."""


class RunRevision(BaseModel, frozen=True):
    """The revision of the pipelines that a run had; 0 is the release's."""

    number: int = 0
    hash: str = ""


class RunRequest(BaseModel, frozen=True):
    """The record that asked for a run."""

    topic: str
    partition: int
    offset: int
    bytes: int
    request_id: str | None = None


class RunStep(BaseModel, frozen=True):
    """A step, `<pipeline>.<step>`. `at_ms` is since the run began; steps may overlap, and occur several times."""

    step: str
    at_ms: float
    ms: float


class RunModelCall(BaseModel, frozen=True):
    """A question to a language model. `failure` is `timeout`, `unavailable` or `unanswerable`; None if it answered.

    `cost_usd` is None if the price is unknown.
    """

    step: str
    at_ms: float
    ms: float
    profile: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    failure: str | None = None


class RunFailure(BaseModel, frozen=True):
    """Why a run has no outcome: the code of its error reply or dead letter, or `expired` for a passed deadline.

    `message` only where the deployment allows texts in runs.
    """

    code: str
    field: str | None = None
    is_dead_letter: bool = False
    message: str | None = None


class Run(BaseModel, frozen=True, populate_by_name=True):
    """One run. `input` and `outcome` have ids, lengths and counts, and no texts unless the deployment allows them.

    `scope` is empty for an unreadable record. `memory_id` links the runs of one turn.
    """

    schema_: Literal["run.v1"] = Field(default="run.v1", alias="schema")
    run_id: str
    pipeline: Pipeline
    part: RunPart
    kind: str | None = None
    """The `schema` of the request, such as `retrieve.v1`."""
    at: datetime
    ms: float
    scope: dict[str, Any] = Field(default_factory=dict)
    memory_id: str | None = None
    revision: RunRevision = RunRevision()
    request: RunRequest | None = None
    input: dict[str, Any] = Field(default_factory=dict)
    steps: tuple[RunStep, ...] = ()
    models: tuple[RunModelCall, ...] = ()
    omitted: int = 0
    """Steps and model calls beyond the first hundred of each."""
    warnings: tuple[str, ...] = ()
    """The codes of the answer's warnings."""
    outcome: dict[str, Any] | None = None
    failure: RunFailure | None = None


class RunList(BaseModel, frozen=True):
    """The newest runs of a user, newest first. `is_complete` is False if the log goes back further than was read."""

    runs: tuple[Run, ...]
    is_complete: bool = True
