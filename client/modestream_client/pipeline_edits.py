"""The edits of a pipeline, and the arguments of the commands that edit and show it (docs/contract.md)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from modestream_client.vocabulary import StepId

MAX_EDITS = 50

DottedPath = Annotated[str, Field(pattern=r"^[A-Za-z_][\w]*(\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*\z", max_length=256)]
"""The path of a class, such as `acme.steps.RedactCards`."""

Config = dict[str, Any]

Note = Annotated[str, Field(max_length=512)]


class _Strict(BaseModel, extra="forbid", strict=True, frozen=True):
    """An edit with an unknown field is refused by name: a misspelt field must not pass as no change."""


class ConfigureStep(_Strict):
    """Change a step's configuration: a null value restores its default. `enabled` switches the step on or off."""

    op: Literal["config"]
    step_id: StepId
    config: Config = Field(default_factory=dict)
    enabled: bool | None = None


class InsertStep(_Strict):
    """Insert a class of the deployment after or before the step `at`, with its own name."""

    op: Literal["insert_after", "insert_before"]
    at: StepId
    step_id: StepId
    implementation: DottedPath
    config: Config = Field(default_factory=dict)


class ReplaceStep(_Strict):
    """Replace a step by a class of the deployment, under the same name."""

    op: Literal["replace"]
    step_id: StepId
    implementation: DottedPath
    config: Config = Field(default_factory=dict)


class RemoveStep(_Strict):
    """Remove a custom step; if it replaced a built-in step, that returns. A built-in step is switched off."""

    op: Literal["remove"]
    step_id: StepId


Edit = Annotated[ConfigureStep | InsertStep | ReplaceStep | RemoveStep, Field(discriminator="op")]


class EditPipeline(BaseModel, extra="ignore", strict=True, frozen=True):
    """The arguments of `edit_pipeline`. `expected_revision`: refuse the edits unless they change this revision.

    `dry_run`: validate, and change nothing. With it `compare_last` compares both revisions on so many recorded requests
    of a user: over HTTP and by hand `compare_user`, over Kafka that of the command's scope.
    """

    edits: Annotated[list[Edit], Field(min_length=1, max_length=MAX_EDITS)]
    expected_revision: Annotated[int, Field(ge=0)] | None = None
    note: Note = ""
    dry_run: bool = False
    compare_last: Annotated[int, Field(ge=1, le=100)] | None = None
    compare_user: Annotated[str, Field(min_length=1, max_length=256)] | None = None


class RollbackPipeline(BaseModel, extra="ignore", strict=True, frozen=True):
    """The arguments of `rollback_pipeline`: restore `revision`, as a new revision."""

    revision: Annotated[int, Field(ge=0)]
    expected_revision: Annotated[int, Field(ge=0)] | None = None
    note: Note = ""


class GetPipeline(BaseModel, extra="ignore", strict=True, frozen=True):
    """The arguments of `get_pipeline`: a revision, None for the current one."""

    revision: Annotated[int, Field(ge=0)] | None = None


class ListRevisions(BaseModel, extra="ignore", strict=True, frozen=True):
    """The arguments of `list_revisions`, latest first."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50
