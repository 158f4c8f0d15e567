"""All shapes of one deployment, made with the fields of its scope model; the components of the document."""

import inspect
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from modestream_client.arguments import ModeName
from modestream_client.operations import Body, Operation
from modestream_client.vocabulary import InteractionMode
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from gateway.http.shapes import BodyReader, QueryReader, admit_nulls, scope_fields_of, shape_of
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.messages.assemble import AssembleRequest
from schemas.messages.lists import ListRequest, MapRequest
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import MAX_CONTENT_LENGTH, Turn
from schemas.scope_models import selector_of
from schemas.scopes import Scope, Selector

RECORDS: Mapping[str, type[BaseModel]] = {
    "retrieve.v1": RetrieveRequest,
    "assemble.v1": AssembleRequest,
    "list.v1": ListRequest,
    "map.v1": MapRequest,
    "consolidate.v1": ConsolidationTrigger,
}
"""Records that are no commands, by their `schema`."""


class Nothing(BaseModel):
    """No fields but those of the scope."""


class MemoryChange(BaseModel):
    """One change of a memory: `mode` moves it, `text` edits its turn, `interaction_mode` corrects what it is for.

    `searchable` and `private`, or one of them, say whether searches find it, and whether a language model may read it.
    """

    mode: ModeName | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_LENGTH)] | None = None
    interaction_mode: InteractionMode | None = None
    searchable: bool | None = None
    private: bool | None = None


class Confirmed(BaseModel):
    """The name again, of what is to be forgotten."""

    confirm: Annotated[str, Field(description="The same name again.")]


class Export(BaseModel):
    """What to export: by default all projects."""

    read_after: int | None = None


REF = "#/components/schemas/{model}"


class Shapes:
    """The bodies and queries of the HTTP door."""

    def __init__(self, scope: type[Scope]) -> None:
        self.scope_fields = scope_fields_of(scope)
        self._scope, self._selector = scope, selector_of(scope)
        self._bodies: dict[str, BodyReader] = {}
        self.turn = self._body(Body("TurnBody", EXAMPLE_TURN), Turn, scope)
        self.memory_change = self._body(Body("MemoryChangeBody", {"mode": "journal"}), MemoryChange, scope)
        self.project = self._query(Nothing, scope)
        self.projects = self._query(Nothing, self._selector)
        self.confirmed = self._query(Confirmed, scope)
        self.export = self._query(Export, self._selector)

    def of(self, operation: Operation[Any]) -> BodyReader | QueryReader:
        """Return the reader of an operation's body or query."""
        assert operation.http is not None
        record = operation.arguments or RECORDS.get(operation.record, Nothing)
        scope = self._selector if operation.kind == "question" else self._scope
        own = None if operation.permission == "operate" else scope
        body, names = operation.http.body, operation.http.names
        if body is None:
            return self._query(record, own, names)
        return self._body(body, record, own, names, is_optional=operation.runs_long)

    def components(self) -> dict[str, Any]:
        """Return the JSON Schemas of all bodies."""
        bodies = [(reader.shape, "validation") for reader in self._bodies.values()]
        _, schema = models_json_schema(bodies, ref_template=REF)  # type: ignore[arg-type]
        schemas = dict(schema.get("$defs", {}))
        for component in self._bodies:
            admit_nulls(schemas[component])
        return schemas

    def _body(
        self,
        body: Body,
        record: type[BaseModel],
        scope: type[Scope | Selector] | None,
        without: Collection[str] = (),
        *,
        is_optional: bool = False,
    ) -> BodyReader:
        """Return the reader of a body; operations with the same component share it."""
        if body.component not in self._bodies:
            description = body.description or inspect.getdoc(record) or ""
            shape = shape_of(body.component, record, scope, description, without=without, examples=[body.example])
            fields = frozenset() if scope is None else self.scope_fields
            self._bodies[body.component] = BodyReader(shape, fields, is_optional=is_optional)
        return self._bodies[body.component]

    def _query(
        self, record: type[BaseModel], scope: type[Scope | Selector] | None, without: Collection[str] = ()
    ) -> QueryReader:
        shape = shape_of(f"{record.__name__}Query", record, scope, "", without=without)
        return QueryReader(shape, self.scope_fields)


EXAMPLE_TURN = {
    "conversation_id": "c1",
    "role": "user",
    "speaker": "Ana",
    "content": "The deploy target is fly.io now.",
    "occurred_at": "2026-03-01T09:30:00Z",
}
