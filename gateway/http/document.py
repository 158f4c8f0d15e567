"""The OpenAPI document: the framework's, with the shapes of bodies and answers, links, problems and keys.

Answers are sent as the service gives them, and may grow; a test checks them against the models here.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from modestream_client.contexts import AnswerResult, AssembleResult
from modestream_client.hits import Hit, ListedConversation, ListedMemory, ListedProject, WholeMemory
from modestream_client.operations import COMMANDS, AnyResult
from modestream_client.results import Forgotten, MemoryMap
from modestream_client.vocabulary import Strategy
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.http.identity import OPEN_PATHS
from gateway.http.problems import MEDIA_TYPE
from gateway.http.shapes import REF, Shapes
from schemas.messages.published import Boundary
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
    """Limitations of the answer, such as `not_caught_up`, `degraded`, `other_modes`, `forgotten`."""

    code: str
    message: str


class WithWarnings(BaseModel):
    """An answer to a question."""

    warnings: list[Warning]


class StoredTurn(TurnAccepted):
    """A turn that is durable. `read_after` goes into reads that must see it."""

    warnings: list[Warning]
    read_after: str | None = None


class FileResource(BaseModel):
    """A file as its turn has it; `status` is null where the turn was forgotten."""

    uri: str
    media_type: str
    sha256: str
    bytes: int
    status: str | None


class StoredFile(StoredTurn):
    """A turn that is durable, and its file."""

    resource: FileResource


class TurnError(BaseModel):
    """Why one turn of several was refused."""

    code: str
    message: str
    field: str | None


class RefusedTurn(BaseModel):
    """In the place of a refused turn."""

    error: TurnError


class StoredTurns(BaseModel):
    """Outcome of several turns, in their order."""

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


class ModelAnswer(AnswerResult, WithWarnings):
    """A language model's answer from memory."""


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
    """A running job; the counts are an import's."""

    job_id: str
    state: str
    read: int | None = None
    stored: int | None = None
    duplicate: int | None = None
    refused: int | None = None


OPEN = frozenset({"delete_category", "get_intention", "set_intention"})
"""Commands whose answers the document leaves open, as for long work."""

GATEWAY_ANSWERS: dict[str, type[BaseModel]] = {
    "live": Status,
    "ready": Status,
    "get_me": Me,
    "search_memories": SearchAnswer,
    "assemble_context": ContextAnswer,
    "answer": ModelAnswer,
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
"""Answers of routes outside the table of operations, and of questions, which have warnings."""

ANSWERS: Mapping[str, type[BaseModel]] = GATEWAY_ANSWERS | {
    row.http.id or row.name: row.result
    for row in COMMANDS.values()
    if row.http is not None and row.http.tag and not row.runs_long and row.name not in OPEN
}
"""The model of the answer with status 200, by operation; others are `AnyResult`."""

FURTHER: tuple[type[BaseModel], ...] = (Problem, StoredFile, StoredTurn, StoredTurns, RunningJob, AnyResult)
"""Further models in the document."""


USER = {"user_id": "$request.path.user_id"}


class Link(NamedTuple):
    """From an answer to an operation: the sources of its parameters."""

    operation: str
    status: str
    target: str
    parameters: dict[str, str]


def _links(operation: str, status: str, parameters: dict[str, str], *targets: str) -> list[Link]:
    return [Link(operation, status, target, USER | parameters) for target in targets]


STORED = {"memory_id": "$response.body#/memory_id"}
FIRST_HIT = {"memory_id": "$response.body#/hits/0/memory_id"}
FIRST_LISTED = {"memory_id": "$response.body#/items/0/memory_id"}
NAMED = {"name": "$request.path.name"}
JOB = {"job_id": "$response.body#/job_id"}
OF_MEMORY = ("get_memory", "change_memory", "forget_memory")

LINKS = (
    *_links("add_turns", "201", STORED, *OF_MEMORY),
    *_links("add_turns", "201", {"read_after": "$response.body#/read_after"}, "list_memories"),
    *_links("search_memories", "200", FIRST_HIT, *OF_MEMORY),
    *_links("list_memories", "200", FIRST_LISTED, *OF_MEMORY),
    *_links("list_memories", "200", {"cursor": "$response.body#/next"}, "list_memories"),
    *_links("forget_memory", "200", {"memory_id": "$request.path.memory_id"}, "get_memory"),
    *_links("declare_mode", "200", NAMED, "rename_mode", "delete_mode"),
    *_links("declare_category", "200", NAMED, "get_category", "delete_category"),
    *_links("delete_category", "200", NAMED, "get_category"),
    *(link for name in ("backfill", "rebuild", "reconcile", "retry_failed", "refresh", "evaluate")
      for link in _links(f"run_{name}", "202", JOB, "get_job")),
    *_links("consolidate", "202", JOB, "get_job"),
    *_links("import_export", "202", JOB, "get_job"),
)  # fmt: skip
"""In the order of the document."""


STREAMED = {
    "listen_to_events": "text/event-stream",
    "export_turns": "application/x-ndjson",
    "get_file": "application/octet-stream",
}
"""Operations whose answers are not JSON objects."""

WRITES: Mapping[str, tuple[type[BaseModel], ...]] = {
    "add_turns": (StoredTurn, StoredTurns),
    "upload_file": (StoredFile,),
}
"""The response to writes of turns: 201 if something new was stored."""

ALWAYS_LATER = ("import_export",)
"""Operations that are never answered with their result."""

DOCUMENT_PATH = "/openapi.json"

DESCRIPTION = """\
Conversation memory: remember turns, search them, list them, assemble contexts for a model.

A write answers when it is durable and can be found. Errors are `application/problem+json`; `code` is for programs.
Names in paths are percent-encoded once. Send a turn again with the same `turn_id` after a 503 or 504: it is one turn.
"""


def document_app(app: FastAPI, shapes: Shapes, bodies: Sequence[type[BaseModel]] = ()) -> None:
    """Serve the document, built and encoded once, at the first request for it; `bodies` are those of further routes."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, shapes, bodies)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    # The framework's own route encodes it for every request, 2.5 ms, and it is served without a key.
    encoded = cache(lambda: JSONResponse(app.openapi()).body)

    async def answer(_: Request) -> Response:
        return Response(encoded(), media_type="application/json")

    app.add_route(DOCUMENT_PATH, answer, include_in_schema=False)


def _build(app: FastAPI, shapes: Shapes, bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, summary=app.summary, description=DESCRIPTION, routes=app.routes
    )
    components = document.setdefault("components", {})
    schemas = shapes.components() | _schemas({*ANSWERS.values(), *FURTHER}) | _schemas(bodies)
    components["schemas"] = _portable(schemas)
    components["responses"] = {"Problem": {"description": "An error.", "content": {MEDIA_TYPE: _schema("Problem")}}}
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A key, `ms_…`; none on a keyless gateway."},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    document["security"] = [{"bearer": []}, {"key": []}, {}]
    for path, item in document["paths"].items():
        for operation in item.values():
            operation["parameters"] = _portable(operation.get("parameters", []))
            _describe(operation, is_open=path in OPEN_PATHS)
    return document


def _portable(schema: Any) -> Any:
    """Return a schema with patterns that every reader of JSON Schema knows: the end of a text is `$`."""
    if isinstance(schema, dict):
        return {
            name: value.replace(r"\z", "$") if name == "pattern" and isinstance(value, str) else _portable(value)
            for name, value in schema.items()
        }
    return [_portable(part) for part in schema] if isinstance(schema, list) else schema


def _describe(operation: dict[str, Any], *, is_open: bool) -> None:
    name, responses = operation["operationId"], operation["responses"]
    if "default" in responses:
        # It describes its own answers.
        return
    responses.pop("422", None)
    if "202" in responses:
        responses["202"]["content"] = {"application/json": _schema("RunningJob")}
    if name in WRITES:
        some = [_schema(model.__name__)["schema"] for model in WRITES[name]]
        stored = {"schema": {"anyOf": some} if len(some) > 1 else some[0]}
        responses["201"] = _answer("Stored.", stored)
        responses["200"] = _answer("Nothing new was stored.", stored)
    elif name in STREAMED:
        responses["200"] = {"description": "A stream.", "content": {STREAMED[name]: {"schema": {"type": "string"}}}}
    elif name not in ALWAYS_LATER:
        responses["200"] = _answer("The result.", _schema(ANSWERS.get(name, AnyResult).__name__))
    if name == "answer":
        responses["200"]["content"] |= {"text/event-stream": {"schema": {"type": "string"}}}
    for link in LINKS:
        if link.operation == name:
            links = responses[link.status].setdefault("links", {})
            links[link.target] = {"operationId": link.target, "parameters": link.parameters}
    responses["default"] = {"$ref": "#/components/responses/Problem"}
    if is_open:
        operation["security"] = []


def _schemas(models: Collection[type[BaseModel]]) -> dict[str, Any]:
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schema = models_json_schema([(model, "validation") for model in ordered], ref_template=REF)
    return dict(schema.get("$defs", {}))


def _schema(component: str) -> dict[str, Any]:
    return {"schema": {"$ref": REF.format(model=component)}}


def _answer(description: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": content}}
