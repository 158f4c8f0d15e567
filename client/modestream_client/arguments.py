"""The arguments of each `command.v1` and their limits (docs/contract.md)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from modestream_client.pipeline_edits import MAX_EDITS, Edit
from modestream_client.runs import Pipeline
from modestream_client.vocabulary import (
    CategoryDescription,
    CategoryName,
    Identifier,
    InteractionMode,
    ModeDecay,
    Moment,
    PromptedStep,
    ResourceStatus,
    Role,
)


class _Arguments(BaseModel, extra="ignore", strict=True, frozen=True):
    """Arguments of a command; unknown ones are ignored."""


MemoryId = Annotated[str, Field(min_length=1)]
"""The id of a memory, as in replies."""


MAX_FILTER_VALUES = 1000
"""Maximum values of all filters, and again of metadata filters: each takes some microseconds of every search."""

MAX_FILTER_NAMES = 64
"""Maximum names in an object of filters: each unknown one would be a separate error."""

FilterValue = str | bool | int | float
"""Values that metadata is compared with: `true`, 1 and `"1"` differ, 7.0 and 7 do not."""


def _values(is_one: Callable[[object], bool], expected: str) -> BeforeValidator:
    """Return the validator of a filter: a value, or a list of values, as a tuple."""

    def validate(given: object) -> tuple[Any, ...]:
        values = given if isinstance(given, list | tuple) else [given]
        if not values:
            raise ValueError("an empty list matches nothing; leave the filter out to match everything")
        if not all(map(is_one, values)):
            raise ValueError(f"a filter is {expected}, or a list of these")
        return tuple(values)

    return BeforeValidator(validate, json_schema_input_type=_INPUT[expected])


_STRING, _ROLE, _SCALAR = "a string", f"a role ({', '.join(get_args(Role))})", "a string, a number or a boolean"
_INPUT = {
    _STRING: str | Annotated[list[str], Field(min_length=1, max_length=MAX_FILTER_VALUES)],
    _ROLE: Role | Annotated[list[Role], Field(min_length=1, max_length=MAX_FILTER_VALUES)],
    _SCALAR: FilterValue | Annotated[list[FilterValue], Field(min_length=1, max_length=MAX_FILTER_VALUES)],
}
_Strings = Annotated[tuple[str, ...], Field(strict=False), _values(lambda value: isinstance(value, str), _STRING)]
_Roles = Annotated[tuple[Role, ...], Field(strict=False), _values(lambda value: value in get_args(Role), _ROLE)]
_Scalars = Annotated[
    tuple[FilterValue, ...], Field(strict=False), _values(lambda value: isinstance(value, FilterValue), _SCALAR)
]


def _few(given: object) -> object:
    """Refuse an object with too many names or values before each of them is looked at."""
    lists = given.values() if isinstance(given, dict) else ()
    values = sum(len(some) if isinstance(some, list | tuple) else 1 for some in lists)
    if len(lists) > MAX_FILTER_NAMES or values > MAX_FILTER_VALUES:
        most = {"names": MAX_FILTER_NAMES, "values": MAX_FILTER_VALUES}
        raise PydanticCustomError("too_long", "there are more than {names} filters or {values} values", most)
    return given


class Filters(BaseModel, extra="forbid", strict=True, frozen=True):
    """Memories that match all of these filters; each takes a value, or a list of which any value matches.

    `metadata` compares top-level values of a turn's metadata that are strings, numbers or booleans. A memory derived
    from several turns matches where each of them does.
    """

    conversation_id: _Strings = Field(default_factory=tuple, exclude_if=lambda values: not values)
    speaker: _Strings = Field(default_factory=tuple, exclude_if=lambda values: not values)
    role: _Roles = Field(default_factory=tuple, exclude_if=lambda values: not values)
    metadata: Annotated[dict[str, _Scalars], BeforeValidator(_few)] = Field(
        default_factory=dict, exclude_if=lambda values: not values
    )


GivenFilters = Annotated[
    Filters | None,
    BeforeValidator(_few),
    AfterValidator(lambda filters: None if filters is None or filters == Filters() else filters),
]
"""The field of a request; an empty object is None."""


class GetMemory(_Arguments):
    """The arguments of `get_memory`; with `any_project` whichever scope of the user has the memory."""

    memory_id: MemoryId
    any_project: bool = False


class GetFile(_Arguments):
    """The arguments of `get_file`."""

    sha256: str = Field(max_length=64)


MAX_LISTED_FILES, MAX_FILE_PARTS = 200, 200


class ListFiles(_Arguments):
    """The arguments of `list_files`: turns with files that are read, newest first, `limit` of them after `skip`.

    `status`: only turns with such a file. `all_projects`: turns of all projects that the sender may read.
    """

    status: ResourceStatus | None = None
    conversation_id: str | None = None
    all_projects: bool = False
    skip: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED_FILES)] = 50


class GetFileParts(_Arguments):
    """The arguments of `get_file_parts`: the text of a turn's file, of one page, or of `limit` parts after `skip`.

    Without `uri` the turn's first file that is read. With `at` the parts begin with the one of this code point, or the
    next one.
    """

    memory_id: MemoryId
    uri: str | None = None
    page: Annotated[int, Field(ge=1)] | None = None
    at: Annotated[int, Field(ge=0)] | None = None
    skip: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_FILE_PARTS)] = 50


ModeName = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}\z")]
"""Lower-case letters, digits, `-` and `_` (docs/contract.md)."""

DescriptionText = Annotated[str, Field(max_length=4096)]
"""A description or hints; docs/contract.md sets no limit."""

EmbeddingPrefix = Annotated[str, Field(max_length=256)]
"""A prefix of embedded texts."""


PromptText = Annotated[str, Field(max_length=2000)]
"""A mode's addition to the prompt of a step; an empty text adds nothing."""


class DeclareMode(_Arguments):
    """The arguments of `declare_mode`. A field that is None keeps its declared value, or the default.

    `decay` and `prompt_overrides` replace the declared ones as a whole; empty overrides remove all of them.

    Without `keep_former` the former embedder's vectors are removed.
    """

    name: ModeName
    embedder: Annotated[str, Field(min_length=1, max_length=256)]
    description: DescriptionText | None = None
    query_prefix: EmbeddingPrefix | None = None
    passage_prefix: EmbeddingPrefix | None = None
    extraction_hints: DescriptionText | None = None
    prompt_overrides: dict[PromptedStep, PromptText] | None = None
    decay: ModeDecay | None = None
    searchable: bool | None = None
    private: bool | None = None
    is_default: bool = False
    for_project: bool = False
    keep_former: bool = True


class RenameMode(_Arguments):
    """The arguments of `rename_mode`."""

    name: ModeName
    new_name: ModeName


class DeleteMode(_Arguments):
    """The arguments of `delete_mode`; `memories` is `forget` or `move:<mode>`."""

    name: ModeName
    memories: Annotated[str, Field(pattern=r"^(forget|move:[a-z0-9_-]{1,64})\z")]

    @property
    def target_mode(self) -> str | None:
        """The mode that gets the memories; None if they are to be forgotten."""
        return None if self.memories == "forget" else self.memories.removeprefix("move:")


class SetDefaultMode(_Arguments):
    """The arguments of `set_default_mode`; a null name clears the default."""

    name: ModeName | None
    for_project: bool = False


MAX_MOVED_MEMORIES = 500
"""Maximum memories moved by one command (docs/contract.md)."""


MovedMemoryIds = Annotated[list[MemoryId], Field(fail_fast=True, min_length=1, max_length=MAX_MOVED_MEMORIES)]


class SetMemoryMode(_Arguments):
    """The arguments of `set_memory_mode`: one memory, or several."""

    memory_id: MemoryId | None = None
    memory_ids: MovedMemoryIds | None = None
    mode: ModeName


class SetMemoryVisibility(_Arguments):
    """The arguments of `set_memory_visibility`: one memory, or several. A flag that is None keeps its value."""

    memory_id: MemoryId | None = None
    memory_ids: MovedMemoryIds | None = None
    searchable: bool | None = None
    private: bool | None = None


class SetInteractionMode(_Arguments):
    """The arguments of `set_interaction_mode`."""

    memory_id: Annotated[str, Field(min_length=1)]
    interaction_mode: InteractionMode


class RunJob(_Arguments):
    """The arguments of `backfill`, `rebuild`, `reconcile`, `retry_failed`, `compare_embedders`. No mode: all modes."""

    mode: ModeName | None = None
    all_projects: bool = False


class RunRefresh(RunJob):
    """The arguments of `refresh`: which turns to understand again, and the maximum cost.

    `before_revision` includes turns understood by an earlier revision of the pipelines. The deployment's limits are
    upper bounds, and the defaults, of `max_calls` and `max_tokens`.
    """

    before_revision: Annotated[int, Field(ge=1, lt=2**53)] | None = None
    max_calls: Annotated[int, Field(ge=1, lt=2**53)] | None = None
    max_tokens: Annotated[int, Field(ge=1, lt=2**53)] | None = None


class GetJob(_Arguments):
    """The arguments of `get_job`."""

    job_id: Annotated[str, Field(min_length=1, max_length=128)]


MAX_LISTED_RUNS = 200


class ListRuns(_Arguments):
    """The arguments of `list_runs`: the newest `limit` runs that match. Absent fields do not restrict.

    `failed`: those with a failure, or those without one. `memory_id`: the runs of one turn.
    """

    pipeline: Pipeline | None = None
    failed: bool | None = None
    since: Moment | None = None
    memory_id: MemoryId | None = None
    run_id: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED_RUNS)] = 50


IntentionText = Annotated[str, Field(max_length=512, pattern=r"\S")]
"""A goal or a constraint: a sentence."""

IntentionTexts = Annotated[list[IntentionText], Field(fail_fast=True, max_length=50)]
"""Goals or constraints."""


class SetIntention(_Arguments):
    """The arguments of `set_intention`. An absent list stays unchanged."""

    goals: IntentionTexts | None = None
    constraints: IntentionTexts | None = None


class DeclareCategory(_Arguments):
    """The arguments of `declare_category`. A declared category keeps its description if none is given."""

    name: CategoryName
    description: CategoryDescription | None = None


class ListCategories(_Arguments):
    """The arguments of `list_categories`."""

    include_summary: bool = False
    include_items: bool = False


class GetCategory(_Arguments):
    """The arguments of `get_category`."""

    name: CategoryName


class RenameCategory(_Arguments):
    """The arguments of `rename_category`."""

    name: CategoryName
    new_name: CategoryName


class DeleteCategory(_Arguments):
    """The arguments of `delete_category`."""

    name: CategoryName


FORGET_SELECTORS = (
    ("memory_id",), ("conversation_id", "turn_id"), ("conversation_id",), ("project",), ("user",),
    ("filters",), ("filters", "since"), ("filters", "until"), ("filters", "since", "until"),
)  # fmt: skip
"""The allowed combinations of arguments of `forget` (docs/contract.md)."""


def _only_true(value: object) -> object:
    """Refuse 1, which equals True: deleting everything needs an explicit `true`."""
    if value is not True and value is not None:
        raise ValueError("to forget everything here, give exactly true")
    return value


ExplicitTrue = Annotated[Literal[True], BeforeValidator(_only_true)]
"""Selects a whole project, or everything of a user."""


def _selecting(filters: Filters) -> Filters:
    if filters == Filters():
        raise ValueError("empty filters match everything: to forget everything here, give project: true or user: true")
    return filters


class Forget(_Arguments):
    """The arguments of `forget`: a memory, a turn of a conversation, a conversation, the project, the user, or filters.

    All but `user`, which covers all projects, are of the command's scope. `filters` may come with `since` and `until`.
    `dry_run` reports the memories that would be forgotten, and forgets none.
    """

    memory_id: MemoryId | None = None
    turn_id: Identifier | None = None
    conversation_id: Identifier | None = None
    project: ExplicitTrue | None = None
    user: ExplicitTrue | None = None
    filters: Annotated[Filters, BeforeValidator(_few), AfterValidator(_selecting)] | None = None
    since: Moment | None = None
    until: Moment | None = None
    dry_run: bool = False

    @model_validator(mode="after")
    def _has_one_selector(self) -> Self:
        names = (name for name in type(self).model_fields if name != "dry_run")
        given = tuple(sorted(name for name in names if getattr(self, name) is not None))
        if given not in FORGET_SELECTORS:
            raise ValueError(
                "give one of: memory_id; turn_id with conversation_id; conversation_id; project: true; user: true;"
                " filters, with since and until where they are to limit it"
            )
        return self


ContextId = Annotated[str, Field(min_length=1, max_length=128)]
"""The id of a context, as its result has it."""

MAX_RATED_MEMORIES = 1000

RatedIds = Annotated[list[MemoryId], Field(fail_fast=True, max_length=MAX_RATED_MEMORIES)]


class GetContext(_Arguments):
    """The arguments of `get_context`."""

    context_id: ContextId


class Rate(_Arguments):
    """The arguments of `rate`: which references of a context were of use, and which were not."""

    context_id: ContextId
    useful: RatedIds = Field(default_factory=list)
    not_useful: RatedIds = Field(default_factory=list)


Count = Annotated[int, Field(ge=0)]


class ImportFailure(BaseModel, extra="ignore", strict=True, frozen=True):
    """Why an import has ended before its last message."""

    code: Annotated[str, Field(max_length=64)]
    message: Annotated[str, Field(max_length=1024)]
    field: Annotated[str, Field(max_length=256)] | None = None


class ReportImport(_Arguments):
    """The arguments of `report_import`: the progress of an import. With a `result` or an `error` it has ended.

    `all_projects`: its turns may be of any project, so that seeing it needs a grant for all of them.
    """

    job_id: Annotated[str, Field(pattern=r"^import-[0-9a-f]{32}\z")]
    read: Count
    stored: Count
    duplicate: Count
    refused: Count
    all_projects: bool = False
    result: dict[str, Any] | None = None
    error: ImportFailure | None = None


MAX_EVALUATED_QUESTIONS = 1000
"""Questions of one user: by two revisions about half a minute."""


class RunEvaluation(RunJob):
    """The arguments of `evaluate`: how much of the evidence of questions, made from the user's own log, is found.

    The current pipelines are compared with `edits` of them, or with an earlier `revision`. `by_model` has a
    language model word the questions; by default one does that has the role `evaluate`. `budget_tokens` are those of a
    context.
    """

    limit: Annotated[int, Field(ge=1, le=MAX_EVALUATED_QUESTIONS)] = 200
    budget_tokens: Annotated[int, Field(ge=300, le=200_000)] = 2000
    by_model: bool | None = None
    revision: Annotated[int, Field(ge=0)] | None = None
    edits: Annotated[list[Edit], Field(min_length=1, max_length=MAX_EDITS)] | None = None

    @model_validator(mode="after")
    def _has_one_other(self) -> Self:
        if self.revision is not None and self.edits is not None:
            raise ValueError("compare with a revision or with edits, not with both")
        return self
