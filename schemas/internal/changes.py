"""`change.v1`: a command's change to existing memories; `job.v1`: long-running work on a boundary's vectors.

The commands agent writes both; `Remember` applies changes, `Maintain` executes jobs. Their records carry the headers of
the command, so that the command is answered when they are done.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from modestream_client.arguments import Filters, RunEvaluation
from modestream_client.vocabulary import InteractionMode
from pydantic import BaseModel, Field
from pydantic_core import to_json

from schemas.messages.published import Asked
from schemas.scopes import Scope
from schemas.state.memories import CategoryAssignment
from schemas.state.modes import ForgottenBefore

EntryT = TypeVar("EntryT")


UnknownArguments = Annotated[tuple[str, ...], Field(exclude_if=lambda names: not names)]
"""Unknown arguments of the command, for the warning of its answer."""


class Change(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """Memories of a boundary to change, and the change.

    Selected is the memory of an id, or the memories of `memory_ids`; or those in `mode`, of `project` or, if that is
    None, of all projects except `except_projects`; or those of a conversation of the scope, or the turns of the scope
    that `filters`, `since` and `until` admit; or with `whole` those of the scope's project or of the boundary. `move`
    moves them to the mode `to`, `forget` deletes them, `preview` tells what that would delete, `stale` has them
    re-embedded, `release` has their former embedder's vectors removed, `assign` replaces the categories of the items in
    `assigned`, by memory id. `refile` files the items of the scope that are in `categories` under the current names of
    these, except deleted ones. `correct` sets the `interaction_mode` and counts as a correction at the time `at`.
    `filter` sets `searchable` and `private` of memories by their ids, as far as they are given; to a mode's memories it
    applies the mode's declaration, as `stale` does. `result` is the command's result, its `moved`, `forgotten` or
    `changed` replaced by the number of memories; None: the result is the memory.

    `turns_before` is the end offset of the partition's turns when the command arrived: earlier turns are applied before
    the change. Turns from there up to `turns_until` were published after the command, which does not forget them; a
    memory with a later offset is of an earlier log, and was there before.
    """

    schema_: Literal["change.v1"] = Field(default="change.v1", alias="schema")
    scope: Scope
    action: Literal["move", "forget", "preview", "stale", "release", "filter", "assign", "refile", "correct"]
    memory_id: str | None = None
    memory_ids: tuple[str, ...] = ()
    mode: str | None = None
    project: str | None = None
    except_projects: tuple[str, ...] = ()
    conversation_id: str | None = None
    filters: Filters | None = Field(default=None, exclude_if=lambda filters: filters is None)
    since: datetime | None = Field(default=None, exclude_if=lambda since: since is None)
    until: datetime | None = Field(default=None, exclude_if=lambda until: until is None)
    whole: Literal["project", "user"] | None = None
    asked: Asked | None = Field(default=None, exclude_if=lambda asked: asked is None)
    turns_before: int | None = None
    turns_until: int | None = None
    to: str | None = None
    result: dict[str, Any] | None = None
    assigned: dict[str, tuple[CategoryAssignment, ...]] = Field(default_factory=dict)
    interaction_mode: InteractionMode | None = None
    at: datetime | None = None
    categories: tuple[str, ...] = ()
    searchable: bool | None = None
    private: bool | None = None
    unknown_arguments: UnknownArguments = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The memories that it selects by their ids."""
        return self.memory_ids if self.memory_id is None else (self.memory_id,)

    def pages(self) -> Iterator[Self]:
        """Yield it as changes of at most `MAX_PAGE_ITEMS` assigned items; the last has the result of the command."""
        items = list(self.assigned.items())
        starts = range(0, len(items), MAX_PAGE_ITEMS)
        for start in starts[:-1]:
            yield self.model_copy(update={"assigned": dict(items[start : start + MAX_PAGE_ITEMS]), "result": {}})
        yield self.model_copy(update={"assigned": dict(items[starts[-1] :] if items else ())})


MAX_PAGE_ITEMS = 500
"""Assigned items of one `Change`: 100 kB, 1.5 MB with the longest names of eight categories each."""

MAX_ISSUED = 64
"""Changes, and answers, stored per boundary: more than its commands between two offset commits."""

MAX_ISSUED_BYTES = 512 * 1024
"""Serialised bytes of the changes, and of the answers, stored per boundary; 64 usual ones have 30 kB."""


class IssuedCommands(BaseModel, frozen=True):
    """The last commands of a boundary, by partition and offset of their records, for redelivery after a crash.

    `changes` are the changes that commands issued: a redelivered command issues the same one, whatever was said since.
    A change's assigned items are not stored but matched again, as there may be 20,000. `answered` are results of
    commands without a change: executed twice, a declaration would restore names changed or deleted since. `forgotten`
    are the commands from before the user was forgotten: their results are not kept, and they never run again.
    """

    changes: dict[str, Change] = Field(default_factory=dict)
    answered: dict[str, dict[str, Any]] = Field(default_factory=dict)
    forgotten: ForgottenBefore | None = Field(default=None, exclude_if=lambda forgotten: forgotten is None)

    def without_forgotten(self, offset: int, timestamp_ms: int) -> Self:
        """Drop all commands up to this one, which forgets the user: their results contain the user's declarations."""
        # The clocks of producers differ: the latest time covers every command that was executed before.
        times = [int(position.partition("@")[2]) for position in (*self.changes, *self.answered)]
        forgotten = ForgottenBefore(offset=offset + 1, at_ms=max(timestamp_ms, *times, 0))
        return self.model_copy(update={"changes": {}, "answered": {}, "forgotten": forgotten})

    def with_change(self, position: str, change: Change) -> Self:
        """Add a change without its assigned items; drop the oldest beyond `MAX_ISSUED` and `MAX_ISSUED_BYTES`."""
        change = change.model_copy(update={"assigned": {}})
        return self.model_copy(update={"changes": _latest({**self.changes, position: change})})

    def with_answer(self, position: str, result: dict[str, Any]) -> Self:
        """Add a result; drop the oldest beyond `MAX_ISSUED` and `MAX_ISSUED_BYTES`."""
        return self.model_copy(update={"answered": _latest({**self.answered, position: result})})


def _latest(entries: dict[str, EntryT]) -> dict[str, EntryT]:
    """Return the latest entries within the limits, the last one in any case."""
    latest = list(entries.items())[-MAX_ISSUED:]
    sizes = accumulate(len(to_json(entry)) for _, entry in reversed(latest))
    fitting = sum(size <= MAX_ISSUED_BYTES for size in sizes)
    return dict(latest[-max(fitting, 1) :])


JobKind = Literal[
    "backfill", "rebuild", "reconcile", "retry_failed", "verify", "compare_embedders", "refresh", "evaluate"
]

JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
"""The commands that start a job."""


class Job(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """One job. Vectors built since `started_at` count as its work, also before an interruption and redelivery.

    It covers the memories of its scope, or with `all_projects` those of its boundary, as a record without this field.
    `before_revision`, `max_calls` and `max_tokens` are those of `refresh`: turns of earlier revisions are understood
    again, up to these limits.
    """

    schema_: Literal["job.v1"] = Field(default="job.v1", alias="schema")
    scope: Scope
    job_id: str
    kind: JobKind | Literal["consolidate"]
    mode: str | None = None
    all_projects: bool = True
    started_at: datetime
    before_revision: int | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    evaluation: RunEvaluation | None = Field(default=None, exclude_if=lambda evaluation: evaluation is None)
    """The arguments of `evaluate`."""
    unknown_arguments: UnknownArguments = ()


@dataclass(slots=True)
class JobProgress:
    """A job's progress: of `total` memories, those that got a vector, needed none, or failed.

    `stale_cleared` counts those of `processed` with a vector of another space or a missing one before; `orphans` counts
    vectors without a memory.
    """

    job: Job
    total: int = 0
    processed: int = 0
    skipped: int = 0
    failed: int = 0
    stale_cleared: int = 0
    orphans: int = 0
