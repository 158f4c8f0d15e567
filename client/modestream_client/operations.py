"""The table of operations: the service's requests, one row each.

From it come the topics and permissions of commands, the AsyncAPI document, the gateway's routes with their OpenAPI, and
the requests of `HttpMemoryClient`. A new command is a row here, with its models, and the method of that name of an
agent (`streams/topology.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel

from modestream_client import arguments as given
from modestream_client.contexts import AnswerResult, AssembleResult, ContextBasis, Rated
from modestream_client.hits import ListResult, WholeMemory
from modestream_client.pipeline_edits import EditPipeline, GetPipeline, ListRevisions, RollbackPipeline
from modestream_client.records import build_record
from modestream_client.results import (
    CategorySuggestions,
    Consolidation,
    DeclaredModes,
    DefaultModes,
    DeletedMode,
    FileList,
    FileParts,
    FinishedJob,
    FinishedRefresh,
    Forgotten,
    MemoryMap,
    ModeSuggestions,
    ServiceHealth,
    ShownCategories,
    ShownCategory,
    ShownIntention,
    ShownMode,
)
from modestream_client.runs import RunList

ResultT = TypeVar("ResultT", bound=BaseModel)

Kind = Literal["turn", "question", "query", "command", "job", "trigger"]
"""`query`: a command that only reads; `job`: a command that is answered when its job has ended."""

TOPICS: Mapping[Kind, str] = {
    "turn": "turns",
    "question": "retrieve",
    # The records of `retrieve` are kept for a day, those of `commands` forever.
    "query": "retrieve",
    "command": "commands",
    "job": "commands",
    "trigger": "consolidate",
}
"""The topic of each kind, without its prefix."""

COMMAND = "command.v1"
"""The `schema` of commands."""

USER = "/v1/users/{user_id}"


class AnyResult(BaseModel, extra="allow"):
    """A result of the service, as the contract describes it."""


class Body(NamedTuple):
    """The body of an HTTP request in the OpenAPI document; by default described as the arguments are."""

    component: str
    example: dict[str, Any]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Http:
    """The gateway's address of an operation. Names in braces are arguments; the others go into the query or the body.

    Without a `tag` the gateway has its own route at that address.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    tag: str | None = None
    summary: str = ""
    body: Body | None = None
    id: str | None = None
    """The operation's name in the OpenAPI document, if different."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset(re.findall(r"{(\w+)}", self.path)) - {"user_id"}


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[ResultT]):
    """A row: `arguments` are None for an operation without any, or if `record` has its own model in `schemas`."""

    name: str
    kind: Kind
    permission: Literal["read", "write", "manage", "operate"]
    arguments: type[BaseModel] | None
    result: type[ResultT]
    http: Http | None = None
    record: str = COMMAND
    """The `schema` of its records."""
    fixed: Mapping[str, str | bool] = field(default_factory=dict)
    """Fields of its records that always have these values."""
    may_concern_user: bool = False
    """A command whose project may be `*`: then it concerns the user, above all projects."""

    @property
    def topic(self) -> str:
        """The topic of its records, without its prefix."""
        return TOPICS[self.kind]

    @property
    def runs_long(self) -> bool:
        """True if it may be answered later, at another address."""
        return self.kind in ("job", "trigger")

    @property
    def concerns_user(self) -> bool:
        """True if its records have a user's scope; others of operators are about the whole deployment."""
        return self.permission != "operate" or self.kind == "job"

    def record_of(self, scope: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """Build a record with these fields, or arguments. Raises ValueError for a time without a zone."""
        if self.record == COMMAND:
            return build_record(COMMAND, command=self.name, scope=scope, arguments=fields)
        return build_record(self.record, **{**fields, **self.fixed, "scope": scope})


def _list(what: str) -> Operation[ListResult]:
    http = Http("GET", f"{USER}/{what}", "reads", f"List {what}, page by page")
    return Operation(f"list_{what}", "question", "read", None, ListResult, http, "list.v1", {"what": what})


JOB_BODY = Body("JobBody", {"all_projects": True})


def _job(
    name: str,
    result: type[ResultT],
    arguments: type[BaseModel] = given.RunJob,
    body: Body = JOB_BODY,
    subject: str = "vectors",
) -> Operation[ResultT]:
    path, summary = f"{USER}/jobs/{name}", f"Run {name} over the user's {subject}"
    return Operation(
        name, "job", "manage", arguments, result, Http("POST", path, "jobs", summary, body, id=f"run_{name}")
    )


# fmt: off
ADD_TURN = Operation("add_turns", "turn", "write", None, AnyResult, Http("POST", f"{USER}/turns"), record="turn.v1")

SEARCH_MEMORIES = Operation(
    "search_memories", "question", "read", None, AnyResult,
    Http("POST", f"{USER}/memories/search", "reads", "Search memories, best first",
         Body("SearchBody", {"query": "where do we deploy?", "project_id": "*"})),
    record="retrieve.v1",
)
ASSEMBLE_CONTEXT = Operation(
    "assemble_context", "question", "read", None, AssembleResult,
    Http("POST", f"{USER}/contexts", "reads", "Assemble a prompt within a token budget",
         Body("ContextBody", {"query": "fix the login", "budget_tokens": 2000})),
    record="assemble.v1",
)
# The gateway also answers it in parts.
ANSWER = Operation(
    "answer", "question", "read", None, AnswerResult,
    Http("POST", f"{USER}/answers",
         body=Body("AnswerBody", {"query": "where is the spare key?", "conversation_id": "c1"})),
    record="answer.v1",
)
LIST_MEMORIES = _list("memories")
LIST_CONVERSATIONS = _list("conversations")
LIST_PROJECTS = _list("projects")
GET_MAP = Operation(
    "get_map", "question", "read", None, MemoryMap,
    Http("GET", f"{USER}/map", "reads", "Where memories lie in a plane, by vector space"),
    record="map.v1",
)

GET_MEMORY = Operation(
    "get_memory", "query", "read", given.GetMemory, WholeMemory, Http("GET", f"{USER}/memories/{{memory_id}}")
)
# The gateway answers it with the bytes.
GET_FILE = Operation("get_file", "query", "read", given.GetFile, AnyResult)
LIST_FILES = Operation(
    "list_files", "query", "read", given.ListFiles, FileList,
    Http("GET", f"{USER}/files", "reads", "List files with their status, newest first"),
)
GET_FILE_PARTS = Operation(
    "get_file_parts", "query", "read", given.GetFileParts, FileParts,
    Http("GET", f"{USER}/memories/{{memory_id}}/file", "reads", "The text of a turn's file, part by part"),
)
SET_MEMORY_MODE = Operation(
    "set_memory_mode", "command", "manage", given.SetMemoryMode, WholeMemory,
    Http("PATCH", f"{USER}/memories/{{memory_id}}"),
)
SET_MEMORY_VISIBILITY = Operation(
    "set_memory_visibility", "command", "manage", given.SetMemoryVisibility, WholeMemory,
    Http("PATCH", f"{USER}/memories/{{memory_id}}"),
)
SET_INTERACTION_MODE = Operation(
    "set_interaction_mode", "command", "manage", given.SetInteractionMode, WholeMemory,
    Http("PATCH", f"{USER}/memories/{{memory_id}}"),
)
# The gateway has four more addresses for it: of a memory, a conversation, a project and the user.
FORGET = Operation(
    "forget", "command", "manage", given.Forget, Forgotten,
    Http("POST", f"{USER}/forget", "memories", "Forget what is selected, or tell what that would be",
         Body("ForgetBody", {"filters": {"metadata": {"source": "mail"}}, "dry_run": True})),
)

GET_CONTEXT = Operation(
    "get_context", "query", "read", given.GetContext, ContextBasis,
    Http("GET", f"{USER}/contexts/{{context_id}}", "reads", "What a context or an answer was based on"),
)
RATE = Operation(
    "rate", "command", "write", given.Rate, Rated,
    Http("POST", f"{USER}/contexts/{{context_id}}/ratings", "memories", "Say which memories of a context were of use",
         Body("RatingBody", {"useful": ["4f6c1a1e-7a52-5d3b-9a39-6f1de0f1f1aa"]}), id="rate_memories"),
)

LIST_MODES = Operation(
    "list_modes", "query", "read", None, DeclaredModes, Http("GET", f"{USER}/modes", "modes", "List modes")
)
DECLARE_MODE = Operation(
    "declare_mode", "command", "manage", given.DeclareMode, ShownMode,
    Http("PUT", f"{USER}/modes/{{name}}", "modes", "Declare or update a mode",
         Body("ModeBody", {"embedder": "general"})),
)
RENAME_MODE = Operation(
    "rename_mode", "command", "manage", given.RenameMode, ShownMode,
    Http("POST", f"{USER}/modes/{{name}}/rename", "modes", "Rename a mode; its memories follow",
         Body("NewNameBody", {"new_name": "diary"}, "The new name of a mode.")),
)
DELETE_MODE = Operation(
    "delete_mode", "command", "manage", given.DeleteMode, DeletedMode,
    Http("DELETE", f"{USER}/modes/{{name}}", "modes", "Delete a mode; its memories are forgotten or moved"),
)
SET_DEFAULT_MODE = Operation(
    "set_default_mode", "command", "manage", given.SetDefaultMode, DefaultModes,
    Http("PUT", f"{USER}/default-mode", "modes", "Set or clear the default mode",
         Body("DefaultModeBody", {"name": "journal"})),
)
SUGGEST_MODES = Operation(
    "suggest_modes", "query", "read", None, ModeSuggestions,
    Http("GET", f"{USER}/mode-suggestions", "modes", "Groups of turns that fit no mode"),
)

LIST_CATEGORIES = Operation(
    "list_categories", "query", "read", given.ListCategories, ShownCategories,
    Http("GET", f"{USER}/categories", "layers", "List categories"),
)
GET_CATEGORY = Operation(
    "get_category", "query", "read", given.GetCategory, ShownCategory,
    Http("GET", f"{USER}/categories/{{name}}", "layers", "Show a category"),
)
DECLARE_CATEGORY = Operation(
    "declare_category", "command", "manage", given.DeclareCategory, ShownCategory,
    Http("PUT", f"{USER}/categories/{{name}}", "layers", "Declare a category",
         Body("CategoryBody", {"description": "servers and deploys"})),
)
RENAME_CATEGORY = Operation("rename_category", "command", "manage", given.RenameCategory, ShownCategory)
DELETE_CATEGORY = Operation(
    "delete_category", "command", "manage", given.DeleteCategory, ShownCategory,
    Http("DELETE", f"{USER}/categories/{{name}}", "layers", "Delete a category"),
)
SUGGEST_CATEGORIES = Operation(
    "suggest_categories", "query", "read", None, CategorySuggestions,
    Http("GET", f"{USER}/category-suggestions", "layers", "Groups of items in no category, and changes of categories"),
)
GET_INTENTION = Operation(
    "get_intention", "query", "read", None, ShownIntention,
    Http("GET", f"{USER}/intention", "layers", "Show the intention"),
    may_concern_user=True,
)
SET_INTENTION = Operation(
    "set_intention", "command", "manage", given.SetIntention, ShownIntention,
    Http("PUT", f"{USER}/intention", "layers", "Set goals or constraints",
         Body("IntentionBody", {"goals": ["ship the beta"]})),
    may_concern_user=True,
)
HEALTH = Operation(
    "health", "query", "read", None, ServiceHealth,
    Http("GET", f"{USER}/health", "layers", "Health of a user's part", id="get_health"),
)
LIST_RUNS = Operation(
    "list_runs", "query", "read", given.ListRuns, RunList,
    Http("GET", f"{USER}/runs", "runs", "How requests of a user went: the newest recorded runs"),
)

CONSOLIDATE = Operation(
    "consolidate", "trigger", "manage", None, Consolidation,
    Http("POST", f"{USER}/consolidations", "jobs", "Consolidate memories",
         Body("ConsolidationBody", {"mode": "journal"})),
    record="consolidate.v1",
)
BACKFILL = _job("backfill", FinishedJob)
REBUILD = _job("rebuild", FinishedJob)
RECONCILE = _job("reconcile", FinishedJob)
RETRY_FAILED = _job("retry_failed", FinishedJob)
COMPARE_EMBEDDERS = _job("compare_embedders", AnyResult)
REFRESH = _job("refresh", FinishedRefresh, given.RunRefresh, Body("RefreshBody", {"max_calls": 100}), "turns")
# A draft of the pipelines answers questions: as `edit_pipeline` it is for operators.
EVALUATE = Operation(
    "evaluate", "job", "operate", given.RunEvaluation, AnyResult,
    Http("POST", f"{USER}/jobs/evaluate", "jobs",
         "Measure recall on questions made from the user's own log, by one or two revisions of the pipelines",
         Body("EvaluationBody", {
             "all_projects": True,
             "edits": [{"op": "config", "step_id": "retrieve.rank", "config": {"candidates": 10}}],
         }), id="run_evaluate"),
)
VERIFY = Operation("verify", "job", "manage", given.RunJob, AnyResult)
GET_JOB = Operation("get_job", "query", "read", given.GetJob, AnyResult)

# An import outside of the worker reports its progress, so that any gateway can show it.
REPORT_IMPORT = Operation("report_import", "command", "write", given.ReportImport, AnyResult)

GET_PIPELINE = Operation("get_pipeline", "query", "operate", GetPipeline, AnyResult, Http("GET", "/v1/pipelines"))
LIST_REVISIONS = Operation(
    "list_revisions", "query", "operate", ListRevisions, AnyResult, Http("GET", "/v1/pipelines/revisions")
)
EDIT_PIPELINE = Operation(
    "edit_pipeline", "command", "operate", EditPipeline, AnyResult,
    Http("POST", "/v1/pipelines/edits", "pipelines",
         "Edit the pipelines: all edits are accepted, as a revision, or none",
         Body("PipelineEditsBody", {
             "edits": [{"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 10}}],
             "note": "fewer hits for the model",
         })),
)
ROLLBACK_PIPELINE = Operation(
    "rollback_pipeline", "command", "operate", RollbackPipeline, AnyResult,
    Http("POST", "/v1/pipelines/rollback", "pipelines", "Make an earlier revision count again",
         Body("PipelineRollbackBody", {"revision": 0})),
)
# fmt: on

OPERATIONS: tuple[Operation[Any], ...] = tuple(row for row in globals().values() if isinstance(row, Operation))
"""All rows, in their order above."""

COMMANDS: Mapping[str, Operation[Any]] = {row.name: row for row in OPERATIONS if row.record == COMMAND}
"""The commands by their names."""

READING_COMMANDS = frozenset(row.name for row in OPERATIONS if (row.kind, row.permission) == ("query", "read"))
"""Commands that change nothing a client can see: they need the permission `read`, all others `manage` or `operate`."""

QUERY_COMMANDS = frozenset(row.name for row in OPERATIONS if row.kind == "query")
"""Commands of the topic `retrieve`."""

OPERATING_COMMANDS = frozenset(row.name for row in OPERATIONS if row.permission == "operate")
"""Commands of operators, on the whole deployment: they need the permission `operate` for all users."""


def command_topic(command: str) -> str:
    """Return the topic, without its prefix, that a command is sent to.

    >>> command_topic("list_modes"), command_topic("declare_mode")
    ('retrieve', 'commands')
    """
    return COMMANDS[command].topic if command in COMMANDS else "commands"


def operation_of(record: Mapping[str, Any]) -> Operation[Any] | None:
    """Return the operation of a record; None if it has none."""
    if record["schema"] == COMMAND:
        return COMMANDS.get(record["command"])
    of_schema = (row for row in OPERATIONS if row.record == record["schema"])
    return next((row for row in of_schema if row.fixed.items() <= record.items()), None)
