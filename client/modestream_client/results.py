"""Results of calls: modes, categories and intentions, maps, jobs, health."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from modestream_client.hits import Evidence
from modestream_client.vocabulary import DEFAULT_DECAY, MemoryType, ModeDecay, PromptedStep, ResourceStatus


class ModeFields(BaseModel, frozen=True):
    """A mode's declaration.

    `project` is the only project that it is declared in, None for all. A prefix of None is the embedder's own. No
    search finds the memories of a mode that is not `searchable`; no language model reads those of a `private` one.
    `prompt_overrides`: texts added to the prompts of steps. Types that a `decay` by type does not name have
    `medium`. `created_at` is the time of the command that declared it first, ISO-8601; None for a mode that was never
    declared.
    """

    name: str
    embedder: str
    embedding_dim: int
    description: str = ""
    query_prefix: str | None = None
    passage_prefix: str | None = None
    extraction_hints: str = ""
    prompt_overrides: dict[PromptedStep, str] = Field(default_factory=dict)
    decay: ModeDecay = DEFAULT_DECAY
    created_at: str | None = None
    project: str | None = None
    searchable: bool = True
    private: bool = False


class EmbedderStatus(BaseModel, frozen=True):
    """Whether the model of an embedder can embed now.

    `unloaded`: nothing needs it now, the next turn or question loads it. `loading` has bytes while the model's files
    are fetched. `failed` has the reason and, after a fetch, a `code`: `not_found`, `not_allowed`, `too_large`,
    `too_many`, `disk_full`, `not_writable`, `damaged`, `offline` or `unavailable`. It is repeated after a while, and by
    another declaration.
    """

    state: Literal["ready", "loading", "failed", "unloaded", "unavailable"]
    error: str | None = None
    code: str | None = None
    fetched_bytes: int | None = None
    total_bytes: int | None = None


class ShownMode(ModeFields, frozen=True):
    """A declared mode; with `is_default`, turns of this project without a mode get it.

    `project` is the only project that it is declared in, None for all. A prefix of None is the embedder's own.
    `former_embedder`: the previous embedder, while its vectors are kept next to those of `embedder`; else None.
    `embedder_status`: the embedder's status in the worker that answers.
    """

    is_default: bool = False
    former_embedder: str | None = None
    embedder_status: EmbedderStatus | None = None


class DefaultModes(BaseModel, frozen=True):
    """Default modes of the user and of the project, which takes precedence. None: `general`."""

    user_default: str | None = None
    project_default: str | None = None


class AvailableEmbedder(BaseModel, frozen=True):
    """An embedder that a mode may name: vectors of `dim` numbers, from texts of up to `max_tokens`.

    `megabytes` is the size of its model. If unknown, `languages` is empty and `megabytes` None.
    """

    name: str
    dim: int
    languages: str = ""
    max_tokens: int | None = None
    megabytes: int | None = None


class DeclaredModes(DefaultModes, frozen=True):
    """The modes visible in a project, by name, the defaults, and the embedders that modes may name."""

    modes: tuple[ShownMode, ...]
    embedders: tuple[AvailableEmbedder, ...] = ()


class DeletedMode(BaseModel, frozen=True):
    """A deleted mode: the numbers of its moved and of its forgotten memories."""

    name: str
    moved: int = 0
    forgotten: int = 0


class SuggestedMode(BaseModel, frozen=True):
    """A group of `size` turns that fits no declared mode, with its distinctive words and example turns.

    `in_mode`: the present mode of its turns; `nearest`: the declared mode that is nearest in meaning.
    `memory_ids` are its turns, for `set_memory_mode`.
    """

    name: str
    size: int
    terms: tuple[str, ...] = ()
    in_mode: str | None = None
    nearest: dict[str, Any] | None = None
    examples: tuple[dict[str, Any], ...] = ()
    memory_ids: tuple[str, ...] = ()


class ModeSuggestions(BaseModel, frozen=True):
    """Suggested modes, and the number of turns examined."""

    suggestions: tuple[SuggestedMode, ...] = ()
    looked_at: int = 0


class CategoryItem(BaseModel, frozen=True):
    """An item of a category; `confidence` (0..1) that it belongs there."""

    memory_id: str
    type: MemoryType
    mode: str
    text: str
    confidence: float | None = None


class ShownCategory(BaseModel, frozen=True):
    """A category of `size` items; `declared` by a user, else by the deployment.

    `anchors` are its most typical items, `items` its latest 100; both are empty, and the summary None, unless
    requested.
    """

    name: str
    description: str = ""
    version: int
    size: int
    declared: bool = False
    summary: str | None = None
    anchors: tuple[CategoryItem, ...] = ()
    items: tuple[CategoryItem, ...] = ()


class ShownCategories(BaseModel, frozen=True):
    """The categories of a scope, and the number of uncategorized items."""

    categories: tuple[ShownCategory, ...]
    uncategorised: int = 0


class SuggestedCategory(BaseModel, frozen=True):
    """A group of `size` items with its telling words, examples, and a description to declare it with.

    `in_mode` is the mode of its items; None within a split.
    """

    name: str
    description: str = ""
    size: int
    in_mode: str | None = None
    terms: tuple[str, ...] = ()
    examples: tuple[dict[str, Any], ...] = ()
    memory_ids: tuple[str, ...] = ()


class CategoryChange(BaseModel, frozen=True):
    """A proposed change of categories: the sizes of those concerned before and after it, by their names.

    `into`: the proposed parts of a category to split.
    """

    op: Literal["merge_categories", "split_category"]
    before: dict[str, int]
    after: dict[str, int]
    into: tuple[SuggestedCategory, ...] = ()


class CategorySuggestions(BaseModel, frozen=True):
    """Suggested categories for uncategorized items, proposed changes of existing ones, number of items examined."""

    suggestions: tuple[SuggestedCategory, ...] = ()
    diff: tuple[CategoryChange, ...] = ()
    looked_at: int = 0


class IntentionItem(BaseModel, frozen=True):
    """A goal, constraint, blocking error or decision; `evidence` are its turns, empty if a command set it."""

    text: str
    state: Literal["open", "done"]
    source: str
    since: str
    item_id: str | None = None
    evidence: tuple[Evidence, ...] = ()
    of: str | None = None
    """The list that a resolved entry was in."""
    resolved_by: str | None = None
    """The memory that reports it done."""
    expired_at: str | None = None
    """When a consolidation found its own last day past."""


class UserIntention(BaseModel, frozen=True):
    """Entries set for the whole user, across all projects."""

    goals: tuple[IntentionItem, ...] = ()
    constraints: tuple[IntentionItem, ...] = ()


class ShownIntention(BaseModel, frozen=True):
    """The user's intention in a project: open entries by kind, and resolved ones.

    `whole_user` is the intention above all projects; None where this is that intention.
    """

    goals: tuple[IntentionItem, ...] = ()
    constraints: tuple[IntentionItem, ...] = ()
    blocking_errors: tuple[IntentionItem, ...] = ()
    decisions: tuple[IntentionItem, ...] = ()
    resolved: tuple[IntentionItem, ...] = ()
    categories: tuple[str, ...] = ()
    version: int
    whole_user: UserIntention | None = None


MapMethod = Literal["neighbour_graph", "principal_components"]
"""`neighbour_graph`: similar memories are close together; `principal_components`: quick, until that is ready."""


class PlacedMemory(BaseModel, frozen=True):
    """A memory at its place in a cloud; `x` and `y` are within -1..1, `text` is the beginning of its text."""

    memory_id: str
    x: float
    y: float
    conversation_id: str | None
    type: MemoryType
    occurred_at: str
    text: str


class MemoryCloud(BaseModel, frozen=True):
    """The memories of one vector space in a plane: similar memories are close together.

    `space` is the digest of the space, None while the mode's model was never loaded. `made_at` is the time of the
    layout, None without points. `settled` is False while a better layout is being made. `left_out` counts memories
    without a vector, and those beyond the limit.
    """

    mode: str
    space: str | None
    method: MapMethod
    made_at: str | None
    settled: bool
    points: tuple[PlacedMemory, ...]
    left_out: int


class MemoryMap(BaseModel, frozen=True):
    """A cloud for each vector space. Points of two clouds have no distance."""

    clouds: tuple[MemoryCloud, ...]


class ListedFile(BaseModel, frozen=True):
    """A file of a turn, with the turn and the result of reading it.

    `name` is the file's name; `code` and `error` say why reading failed; `parts` counts its document memories.
    """

    memory_id: str
    conversation_id: str | None
    scope: dict[str, str]
    mode: str
    occurred_at: str
    uri: str
    name: str
    media_type: str | None
    sha256: str | None
    bytes: int | None
    status: ResourceStatus
    code: str | None
    error: str | None
    reader: str | None
    characters: int | None
    pages: int | None
    seconds: float | None
    parts: int


class FileList(BaseModel, frozen=True):
    """Files, newest turns first. `total` counts the turns that match, `counts` all files by status."""

    files: tuple[ListedFile, ...]
    total: int
    counts: dict[ResourceStatus, int]


class FilePart(BaseModel, frozen=True):
    """A document memory of a file: `start` and `end` are code points in the file's whole text."""

    memory_id: str
    mode: str
    text: str
    start: int
    end: int
    page: int | None
    start_s: float | None
    end_s: float | None


class FileParts(BaseModel, frozen=True):
    """The text of a file, or of one of its pages: `parts` start after the `first` of `total`."""

    file: ListedFile
    parts: tuple[FilePart, ...]
    first: int
    total: int


class FinishedJob(BaseModel, frozen=True):
    """A finished job: memories re-embedded, skipped, and failed.

    `stale_cleared`: processed memories whose vector was missing or of another space; `orphans`: vectors removed.
    """

    job_id: str
    total: int = 0
    processed: int
    skipped: int
    failed: int
    stale_cleared: int = 0
    orphans: int = 0


class FinishedRefresh(BaseModel, frozen=True):
    """A finished refresh: turns understood again `by` a model's profile or by rules, and the resulting changes.

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


class ImportProblem(BaseModel, frozen=True):
    """A message of an export that is not a turn. `place` is the number of its line, from 1, or its id in the export."""

    place: int | str
    code: str
    message: str
    field: str | None = None


class Imported(BaseModel, frozen=True):
    """Outcome of the messages of an export: stored, there already, or refused; the first 100 refused ones by place.

    `forgotten` were forgotten earlier, and stay so. `read_after` is the place of the last turn; None without one.
    """

    read: int
    stored: int
    duplicate: int
    refused: int
    forgotten: int = 0
    problems: tuple[ImportProblem, ...] = ()
    read_after: str | None = None


class Forgotten(BaseModel, frozen=True, extra="allow"):
    """How many memories were forgotten; of a dry run how many would be, and some of them."""

    forgotten: int = 0
    would_forget: int | None = None
    examples: tuple[dict[str, Any], ...] = ()


class Consolidation(BaseModel, frozen=True):
    """A consolidation: ids of created and superseded memories, counts by mode, each change in `diff`.

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

    `former` is the mode's former embedder, while its `vectors` are kept, and whether it still `serves` questions; None
    without one.
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
