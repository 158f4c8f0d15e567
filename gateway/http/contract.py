"""All shapes of one deployment, made with the fields of its scope model; the components of the document."""

import inspect
from collections.abc import Collection
from typing import Any

from modestream_client.arguments import (
    DeclareCategory,
    DeclareMode,
    ListCategories,
    ListRuns,
    RunJob,
    RunRefresh,
    SetDefaultMode,
    SetIntention,
)
from modestream_client.pipeline_edits import EditPipeline, RollbackPipeline
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gateway.http.bodies import Confirmed, Export, MemoryChange, ModeRemoval, NewName
from gateway.http.shapes import BodyReader, QueryReader, admit_nulls, scope_fields_of, shape_of
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.messages.assemble import AssembleRequest
from schemas.messages.lists import ListRequest
from schemas.messages.maps import MapRequest
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import Turn
from schemas.scope_models import selector_of
from schemas.scopes import Scope, Selector


class Nothing(BaseModel):
    """No fields but those of the scope."""


EXAMPLE_CATEGORY = {"description": "servers and deploys"}

REF = "#/components/schemas/{model}"


class Shapes:
    """The bodies and queries of the HTTP door."""

    def __init__(self, scope: type[Scope]) -> None:
        self.scope_fields = scope_fields_of(scope)
        self._scope, self._selector = scope, selector_of(scope)
        self.turn = self._write("TurnBody", Turn, examples=[EXAMPLE_TURN])
        self.search = self._read("SearchBody", RetrieveRequest, [{"query": "where do we deploy?", "project_id": "*"}])
        self.context = self._read("ContextBody", AssembleRequest, [{"query": "fix the login", "budget_tokens": 2000}])
        self.memory_change = self._write("MemoryChangeBody", MemoryChange, examples=[{"mode": "journal"}])
        self.mode = self._write("ModeBody", DeclareMode, without=["name"], examples=[{"embedder": "general"}])
        self.new_name = self._write("NewNameBody", NewName, examples=[{"new_name": "diary"}])
        self.default_mode = self._write("DefaultModeBody", SetDefaultMode, examples=[{"name": "journal"}])
        self.category = self._write("CategoryBody", DeclareCategory, without=["name"], examples=[EXAMPLE_CATEGORY])
        self.intention = self._write("IntentionBody", SetIntention, examples=[{"goals": ["ship the beta"]}])
        self.consolidation = self._write("ConsolidationBody", ConsolidationTrigger, examples=[{"mode": "journal"}])
        self.job = self._write("JobBody", RunJob, examples=[{"all_projects": True}])
        self.refresh = self._write("RefreshBody", RunRefresh, examples=[{"max_calls": 100}])
        self.pipeline_edits = _own("PipelineEditsBody", EditPipeline, [EXAMPLE_EDITS])
        self.pipeline_rollback = _own("PipelineRollbackBody", RollbackPipeline, [{"revision": 0}])
        self.project = self._query("ProjectQuery", Nothing, scope)
        self.projects = self._query("ProjectsQuery", Nothing, self._selector)
        self.categories = self._query("CategoriesQuery", ListCategories, scope)
        self.runs = self._query("RunsQuery", ListRuns, scope)
        self.mode_removal = self._query("ModeRemovalQuery", ModeRemoval, scope)
        self.confirmed = self._query("ConfirmedQuery", Confirmed, scope)
        self.list = self._query("ListQuery", ListRequest, self._selector)
        self.map = self._query("MapQuery", MapRequest, self._selector)
        self.export = self._query("ExportQuery", Export, self._selector)

    def _write(self, name: str, record: type[BaseModel], *, without: Collection[str] = (), examples: Any) -> BodyReader:
        shape = shape_of(name, record, self._scope, inspect.getdoc(record) or "", without=without, examples=examples)
        return BodyReader(shape, self.scope_fields)

    def _read(self, name: str, record: type[BaseModel], examples: Any) -> BodyReader:
        shape = shape_of(name, record, self._selector, inspect.getdoc(record) or "", examples=examples)
        return BodyReader(shape, self.scope_fields)

    def _query(self, name: str, record: type[BaseModel], scope: type[Scope | Selector]) -> QueryReader:
        return QueryReader(shape_of(name, record, scope, inspect.getdoc(record) or ""), self.scope_fields)

    def components(self) -> dict[str, Any]:
        """Return the JSON Schemas of all bodies."""
        bodies = [one.shape for one in vars(self).values() if isinstance(one, BodyReader)]
        _, schema = models_json_schema([(one, "validation") for one in bodies], ref_template=REF)
        schemas = dict(schema.get("$defs", {}))
        for body in bodies:
            admit_nulls(schemas[body.__name__])
        return schemas


def _own(name: str, record: type[BaseModel], examples: Any) -> BodyReader:
    """Return the reader of a body without a scope."""
    shape = shape_of(name, record, None, inspect.getdoc(record) or "", examples=examples)
    return BodyReader(shape, frozenset())


EXAMPLE_EDITS = {
    "edits": [{"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 10}}],
    "note": "fewer hits for the model",
}

EXAMPLE_TURN = {
    "conversation_id": "c1",
    "role": "user",
    "speaker": "Ana",
    "content": "The deploy target is fly.io now.",
    "occurred_at": "2026-03-01T09:30:00Z",
}
