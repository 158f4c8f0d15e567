"""The models of answers, for the OpenAPI document: results of the wire, with what HTTP adds to them.

Answers are sent as the service gives them, and may grow; a test holds them against these models.
"""

from collections.abc import Mapping
from typing import Any

from modestream_client.hits import Hit, ListedConversation, ListedMemory, ListedProject, WholeMemory
from modestream_client.operations import COMMANDS, AnyResult
from modestream_client.results import AssembleResult, Forgotten, MemoryMap
from modestream_client.vocabulary import Strategy
from pydantic import BaseModel

from schemas.messages.boundaries import Boundary
from schemas.messages.turns import TurnAccepted


class Problem(BaseModel):
    """An error, by RFC 9457. `code` is for programs, `detail` for people, `request_id` for the operator's log."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None
    request_id: str


class Warning(BaseModel):  # noqa: A001 - its name on the wire
    """What an answer lacks, such as `not_caught_up`, `degraded`, `other_modes`, `forgotten`."""

    code: str
    message: str


class WithWarnings(BaseModel):
    """An answer to a question."""

    warnings: list[Warning]


class StoredTurn(TurnAccepted):
    """A turn that is durable. `read_after` goes into reads that must see it."""

    warnings: list[Warning]
    read_after: str | None = None


class TurnError(BaseModel):
    """Why one turn of several was refused."""

    code: str
    message: str
    field: str | None


class RefusedTurn(BaseModel):
    """In the place of a turn that was refused."""

    error: TurnError


class StoredTurns(BaseModel):
    """What became of several turns, in their order."""

    results: list[StoredTurn | RefusedTurn]
    read_after: str | None


class SearchAnswer(WithWarnings):
    """Hits, best first."""

    hits: list[Hit]
    modes: list[str]
    strategy: Strategy
    intention: dict[str, Any] | None = None
    categories: list[dict[str, Any]] = []
    diagnostics: dict[str, Any] = {}


class ContextAnswer(AssembleResult, WithWarnings):
    """A prompt within its budget."""


class _Page(WithWarnings):
    next: str | None
    total: int


class MemoryPage(_Page):
    """A page of memories."""

    items: list[ListedMemory]


class ConversationPage(_Page):
    """A page of conversations."""

    items: list[ListedConversation]


class ProjectPage(_Page):
    """A page of projects."""

    items: list[ListedProject]


class MapAnswer(MemoryMap, WithWarnings):
    """A cloud for each vector space."""


class UserPage(BaseModel):
    """A page of users."""

    items: list[Boundary]
    next: str | None


class Deployment(BaseModel, extra="allow"):
    """Totals over the users that the caller may see, and the state of the deployment."""

    boundaries: int
    projects: int
    conversations: int
    memories: int
    embedding: dict[str, int]
    modes: dict[str, int]
    lag: Any
    versions: dict[str, str | None]


class Me(BaseModel):
    """The caller. `grants` of null: everything."""

    name: str
    principal: str | None
    user_id: str | None
    grants: list[dict[str, Any]] | None


class Status(BaseModel):
    """The state of the gateway."""

    status: str


class RunningJob(BaseModel):
    """A job that runs."""

    job_id: str
    state: str


OPEN = frozenset({"delete_category", "get_intention", "set_intention"})
"""Commands whose answers the document leaves open, as those of long work."""

OWN_ANSWERS: dict[str, type[BaseModel]] = {
    "live": Status,
    "ready": Status,
    "get_me": Me,
    "search_memories": SearchAnswer,
    "assemble_context": ContextAnswer,
    "list_memories": MemoryPage,
    "list_conversations": ConversationPage,
    "list_projects": ProjectPage,
    "get_map": MapAnswer,
    "get_memory": WholeMemory,
    "change_memory": WholeMemory,
    "forget_memory": Forgotten,
    "forget_conversation": Forgotten,
    "forget_project": Forgotten,
    "forget_user": Forgotten,
    "list_users": UserPage,
    "get_deployment": Deployment,
}
"""Answers of the gateway's own routes, and those of questions, which have warnings besides."""

ANSWERS: Mapping[str, type[BaseModel]] = OWN_ANSWERS | {
    row.http.id or row.name: row.result
    for row in COMMANDS.values()
    if row.http is not None and row.http.tag and not row.runs_long and row.name not in OPEN
}
"""The model of the answer with status 200, by operation; others are `AnyResult`."""

FURTHER: tuple[type[BaseModel], ...] = (Problem, StoredTurn, StoredTurns, RunningJob, AnyResult)
"""Models that the document names beside those."""
