"""The shapes of bodies and query parameters: the models of the contract, with the scope's fields in place of `scope`.

Enters: an HTTP body or query. Leaves: scope fields without the user, and the other fields, as they were sent.
Guaranteed: what a shape admits the service's own model admits; unknown fields are refused.
"""

import asyncio
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import Request
from modestream_client.arguments import ModeName
from modestream_client.operations import Body, Operation
from modestream_client.vocabulary import InteractionMode
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import models_json_schema

from gateway.http.limits import SMALL_BODY_BYTES
from gateway.http.problems import refused_of
from gateway.service.backend import Json
from gateway.service.failures import Refused
from schemas.failures import Rejected
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.messages.assemble import AssembleRequest
from schemas.messages.decoding import decode_object, to_rejected
from schemas.messages.lists import ListRequest, MapRequest
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import MAX_CONTENT_LENGTH, Turn
from schemas.scope_models import selector_of
from schemas.scopes import Scope, Selector

POSITION = (
    str | None,
    Field(None, description="Answer after this write: what it answered as `read_after`.", examples=["2:17"]),
)
"""`read_after` over HTTP, in place of the offset on the wire."""

ParsedT = TypeVar("ParsedT")

WIRE_ONLY = frozenset({"scope", "what"})
"""Fields of records that have another form over HTTP."""


class Sent(NamedTuple):
    """Scope fields without the user, and the other fields, as they were sent."""

    scope: Json
    fields: Json


def shape_of(
    name: str,
    record: type[BaseModel],
    scope: type[Scope | Selector] | None,
    description: str,
    *,
    without: Collection[str] = (),
    examples: Sequence[Json] = (),
) -> type[BaseModel]:
    """Return the model of a body: a record's fields, and the fields of the scope, if it has one, beside them."""
    fields = {
        field_name: field
        for field_name, field in record.model_fields.items()
        if field_name not in WIRE_ONLY and field_name not in without
    }
    if scope is not None:
        fields |= scope.boundary_fields.others(scope.model_fields)
    definitions: dict[str, Any] = {field_name: _copied(field) for field_name, field in fields.items()}
    if "read_after" in definitions:
        definitions["read_after"] = POSITION
    extra: Any = {"examples": list(examples)} if examples else None
    config = ConfigDict(extra="forbid", strict=True, json_schema_extra=extra)
    return create_model(name, __config__=config, __doc__=description, **definitions)


async def parsed(body: bytes, parse: Callable[[bytes], ParsedT]) -> ParsedT:
    """Parse a body; a large one in a thread: other requests go on between its steps. Raises what `parse` does."""
    if len(body) <= SMALL_BODY_BYTES:
        return parse(body)
    return await asyncio.to_thread(parse, body)


class BodyReader:
    """Reads bodies of one shape."""

    def __init__(self, shape: type[BaseModel], scope_fields: frozenset[str], *, is_optional: bool = False) -> None:
        self.shape = shape
        self._scope_fields = scope_fields
        self._is_optional = is_optional

    async def read(self, request: Request) -> Sent:
        """Read and check the body; an optional one may be empty. Raises Refused."""
        body = await request.body()
        return await parsed(b"{}" if self._is_optional and not body else body, self.parse)

    def parse(self, body: bytes) -> Sent:
        """Check a body. Raises Refused."""
        try:
            _, message = decode_object(body, self.shape)
        except Rejected as error:
            raise self._refused(error) from None
        return self.split(message)

    def split(self, message: Mapping[str, Any]) -> Sent:
        """Part the fields of the scope from the others."""
        scope = {name: value for name, value in message.items() if name in self._scope_fields and value is not None}
        return Sent(scope, {name: value for name, value in message.items() if name not in self._scope_fields})

    def openapi(self) -> Json:
        """Return what the document says of the body."""
        return body_of(self.shape.__name__, is_optional=self._is_optional)

    def _refused(self, error: Rejected) -> Refused:
        refused = refused_of(error)
        name = (refused.field or "").partition(".")[0]
        if name in self._scope_fields:
            # A single value is checked as a list of one.
            refused.field = name
        if refused.code == "unknown_scope_field" or (refused.code == "too_large" and name in self._scope_fields):
            refused.code = "invalid_value"
        return refused


class QueryReader:
    """Reads query parameters of one shape; a repeated one is a list."""

    def __init__(self, shape: type[BaseModel], scope_fields: frozenset[str]) -> None:
        self.shape = shape
        self._scope_fields = scope_fields
        properties = shape.model_json_schema()["properties"]
        self._lists = frozenset(name for name, schema in properties.items() if _is_list(schema))

    def read(self, request: Request) -> Sent:
        """Check the query and convert its texts. Raises Refused."""
        given: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            given.setdefault(name, []).append(value)
        sent = {
            name: values[0] if len(values) == 1 and name not in self._lists else values
            for name, values in given.items()
        }
        converted = self._converted(sent)
        scope = {name: value for name, value in sent.items() if name in self._scope_fields}
        return Sent(scope, converted)

    def openapi(self) -> Json:
        """Return what the document says of the parameters."""
        schema = self.shape.model_json_schema(ref_template="#/components/schemas/{model}")
        required = schema.get("required", ())
        return {
            "parameters": [
                {"name": name, "in": "query", "required": name in required, "schema": _without_title(field)}
                | ({"description": field["description"]} if "description" in field else {})
                for name, field in schema["properties"].items()
            ]
        }

    def _converted(self, sent: dict[str, Any]) -> Json:
        try:
            model = self.shape.model_validate(sent, strict=False)
        except ValidationError as problem:
            refused = refused_of(to_rejected(problem))
            refused.code = "invalid_value" if refused.code == "too_large" else refused.code
            raise refused from None
        return model.model_dump(mode="json", exclude_unset=True, exclude=set(self._scope_fields))


def admit_nulls(schema: Json) -> None:
    """Say of a body what its reader does: the null of an optional field means that it is left out."""
    for name, field in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or {"type": "null"} in field.get("anyOf", ()):
            continue
        about = {key: field.pop(key) for key in ("default", "description", "examples", "title") if key in field}
        schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **about}


def body_of(component: str, *, is_optional: bool = False) -> Json:
    """Return the `requestBody` of an operation, by the name of its component."""
    schema = {"$ref": f"#/components/schemas/{component}"}
    return {"requestBody": {"required": not is_optional, "content": {"application/json": {"schema": schema}}}}


def scope_fields_of(scope: type[Scope]) -> frozenset[str]:
    """Return the fields of a scope that stand in bodies and queries: all but those of the boundary."""
    return frozenset(scope.model_fields) - {*scope.boundary_fields}


def _copied(field: FieldInfo) -> tuple[Any, FieldInfo]:
    return field.annotation, copy(field)


def _without_title(schema: Json) -> Json:
    return {name: value for name, value in schema.items() if name not in ("title", "description")}


def _is_list(schema: Json) -> bool:
    """True if a single value of a parameter must be sent as a list of one."""
    kinds = {option.get("type") for option in schema.get("anyOf", [schema])}
    return "array" in kinds and "string" not in kinds


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
    """The bodies and queries over HTTP."""

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
