"""Jobs, consolidations and health, as commands and triggers answer them."""

from typing import Any

from pydantic import BaseModel


class FinishedJob(BaseModel, frozen=True):
    """A finished job: memories embedded again, left as they were, and failed.

    `stale_cleared` of the processed had a vector of another space or none; `orphans` are vectors that were removed.
    """

    job_id: str
    total: int = 0
    processed: int
    skipped: int
    failed: int
    stale_cleared: int = 0
    orphans: int = 0


class FinishedRefresh(BaseModel, frozen=True):
    """A finished refresh: turns understood again `by` a model's profile or by rules, and what that has changed.

    `remaining` turns are left for the next one. `added`, `removed` and `changed` are ids of items, at most 500 each.
    """

    job_id: str
    by: str
    total: int
    processed: int
    skipped: int
    failed: int
    remaining: int
    calls: int
    tokens: int
    items_added: int
    items_removed: int
    items_changed: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Forgotten(BaseModel):
    """How many memories were forgotten."""

    forgotten: int


class Consolidation(BaseModel, frozen=True):
    """A consolidation: ids of the memories that it created and superseded, counts by mode, each change in `diff`.

    `refreshed` counts the turns that were understood again; None where the pipelines have no such step.
    """

    run: str | None = None
    created: tuple[str, ...]
    superseded: tuple[str, ...]
    modes: dict[str, dict[str, Any]] = {}
    refreshed: dict[str, int] | None = None
    diff: tuple[dict[str, Any], ...] = ()


class ModeHealth(BaseModel, frozen=True):
    """Memories of a mode by the state of their vectors; `eligible` is the sum. `error` says why none can be made.

    `former` is the embedder that the mode had before, while its `vectors` are kept, and whether it still `serves`
    questions; None: there is none.
    """

    eligible: int
    pending: int
    ready: int
    stale: int
    failed: int
    fingerprint: str | None = None
    last_backfill: str | None = None
    error: dict[str, Any] | None = None
    former: dict[str, Any] | None = None


class ServiceHealth(BaseModel, extra="allow"):
    """The health of a user's memories by mode, and of the deployment. Further fields are in `model_extra`."""

    modes: dict[str, ModeHealth]
    jobs: tuple[dict[str, Any], ...] = ()
    lag: Any = None
    language_model: Any = None
    vector_index: Any = None
