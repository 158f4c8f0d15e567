"""The shapes of bodies and query parameters: the models of the contract, with the scope's fields in place of `scope`.

Enters: an HTTP body or query. Leaves: scope fields without the user, and the other fields, as they were sent.
Guaranteed: the service's own model admits everything that a shape admits; unknown fields are refused.
"""

import asyncio
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy, deepcopy
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from fastapi import Request
from modestream_client.arguments import ModeName
from modestream_client.imports import FORMATS
from modestream_client.operations import ANSWER, Body, Operation
from modestream_client.vocabulary import Identifier, InteractionMode, Moment
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import models_json_schema
from pydantic_core import from_json

from gateway.http.limits import SMALL_BODY_BYTES
from gateway.http.problems import refused_of
from gateway.service.calls import Json, Refused
from schemas.failures import Rejected
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.messages.assemble import AnswerRequest, AssembleRequest
from schemas.messages.decoding import decode_object, to_rejected
from schemas.messages.retrieval import ListRequest, MapRequest, RetrieveRequest
from schemas.messages.turns import MAX_CONTENT_LENGTH, Turn
from schemas.scope_models import selector_of
from schemas.scopes import PROJECT_FIELD, Scope, ScopeValue, Selector

POSITION = (str | None, Field(None, description="Answer after this write: its `read_after`.", examples=["2:17"]))
"""`read_after` over HTTP, in place of the offset in the record."""

PROJECT_OR_USER: Any = (ScopeValue | Literal["*"], Field("default", description="`*`: the user, above all projects."))
"""The project of operations that may concern the whole user."""

ParsedT = TypeVar("ParsedT")

RECORD_ONLY = frozenset({"scope", "what", "for_model", "already_shown"})
"""Fields of records that have another form over HTTP, or are for OpenAI's address alone."""


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
    """Return the model of a body: the fields of a record and of its scope, if it has one, on one level."""
    fields = {
        field_name: field
        for field_name, field in record.model_fields.items()
        if field_name not in RECORD_ONLY and field_name not in without
    }
    if scope is not None:
        fields |= scope.boundary_fields.others(scope.model_fields)
    definitions: dict[str, Any] = {name: (field.annotation, copy(field)) for name, field in fields.items()}
    if "read_after" in definitions:
        definitions["read_after"] = POSITION
    extra: Any = {"examples": list(examples)} if examples else None
    config = ConfigDict(extra="forbid", strict=True, json_schema_extra=extra)
    return create_model(name, __config__=config, __doc__=description, **definitions)


async def parsed(body: bytes, parse: Callable[[bytes], ParsedT]) -> ParsedT:
    """Parse a body; a large one in a thread, so that other requests continue. Raises the errors of `parse`."""
    if len(body) <= SMALL_BODY_BYTES:
        return parse(body)
    return await asyncio.to_thread(parse, body)


class BodyReader:
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
            refused = refused_of(error)
            name = (refused.field or "").partition(".")[0]
            if name in self._scope_fields:
                # A single value is checked as a list of one.
                refused.field = name
            if refused.code == "unknown_scope_field" or (refused.code == "too_large" and name in self._scope_fields):
                refused.code = "invalid_value"
            raise refused from None
        scope = {name: value for name, value in message.items() if name in self._scope_fields and value is not None}
        return Sent(scope, {name: value for name, value in message.items() if name not in self._scope_fields})

    def openapi(self) -> Json:
        """Return the `requestBody` of the operation in the document."""
        schema = {"$ref": f"#/components/schemas/{self.shape.__name__}"}
        return {"requestBody": {"required": not self._is_optional, "content": {"application/json": {"schema": schema}}}}


class QueryReader:
    """Reads query parameters of one shape; a repeated one is a list, and an object is JSON."""

    def __init__(self, shape: type[BaseModel], scope_fields: frozenset[str]) -> None:
        self.shape = shape
        self._scope_fields = scope_fields
        self._lists: set[str] = set()
        """Parameters whose single value is sent as a list of one."""
        self._objects: set[str] = set()
        for name, field in shape.model_json_schema()["properties"].items():
            options = field.get("anyOf", [field])
            kinds = {option.get("type") for option in options}
            if "array" in kinds and "string" not in kinds:
                self._lists.add(name)
            if any("$ref" in option for option in options):
                self._objects.add(name)

    def read(self, request: Request) -> Sent:
        """Check the query and convert its texts. Raises Refused."""
        repeated: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            repeated.setdefault(name, []).append(value)
        sent: Json = {
            name: values[0] if len(values) == 1 and name not in self._lists else values
            for name, values in repeated.items()
        }
        for name in self._objects & sent.keys():
            try:
                sent[name] = from_json(sent[name], allow_inf_nan=False)
            except (TypeError, ValueError):
                raise Refused("invalid_value", "give this parameter once, as JSON", name) from None
        try:
            model = self.shape.model_validate(sent, strict=False)
        except ValidationError as problem:
            refused = refused_of(to_rejected(problem, self.shape))
            refused.code = "invalid_value" if refused.code == "too_large" else refused.code
            raise refused from None
        scope = {name: value for name, value in sent.items() if name in self._scope_fields}
        return Sent(scope, model.model_dump(mode="json", exclude_unset=True, exclude=set(self._scope_fields)))

    @cached_property
    def _parameters(self) -> list[Json]:
        schema = self.shape.model_json_schema(ref_template="#/components/schemas/{model}")
        parameters = []
        for name, field in schema["properties"].items():
            about = {"description": field["description"]} if "description" in field else {}
            value = {key: part for key, part in field.items() if key not in ("title", "description")}
            required = name in schema.get("required", ())
            shown = {"content": {"application/json": {"schema": value}}} if name in self._objects else {"schema": value}
            parameters.append({"name": name, "in": "query", "required": required} | shown | about)
        return parameters

    def openapi(self) -> Json:
        """Return the `parameters` of the operation in the document."""
        return {"parameters": deepcopy(self._parameters)}


def admit_nulls(schema: Json) -> None:
    """Describe a body as it is read: the null of an optional field means absent."""
    for name, field in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or {"type": "null"} in field.get("anyOf", ()):
            continue
        about = {key: field.pop(key) for key in ("default", "description", "examples", "title") if key in field}
        schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **about}


def scope_fields_of(scope: type[Scope]) -> frozenset[str]:
    """Return the fields of a scope in bodies and queries: all but those of the boundary."""
    return frozenset(scope.model_fields) - {*scope.boundary_fields}


RECORDS: Mapping[str, type[BaseModel]] = {
    "retrieve.v1": RetrieveRequest,
    "assemble.v1": AssembleRequest,
    "list.v1": ListRequest,
    "map.v1": MapRequest,
    "consolidate.v1": ConsolidationTrigger,
}
"""Records other than commands, by their `schema`."""


class AnswerBody(AnswerRequest):
    """A question for the language model; with `stream` the answer comes in parts, as server-sent events.

    Question and answer become turns of the conversation unless `store` is false.
    """

    stream: bool = False


class Nothing(BaseModel):
    """The fields of the scope only."""


class MemoryChange(BaseModel):
    """One change of a memory: `mode` moves it, `text` edits its turn, `interaction_mode` corrects its purpose.

    `searchable` and `private`, or one of them, say whether searches find it, and whether a language model may read it.
    """

    mode: ModeName | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_LENGTH)] | None = None
    interaction_mode: InteractionMode | None = None
    searchable: bool | None = None
    private: bool | None = None


class Confirmed(BaseModel):
    """The repeated name of the data to forget."""

    confirm: Annotated[str, Field(description="The same name again.")]


class Import(BaseModel):
    """A chat export: its format, and the scope and mode of its messages."""

    format: Annotated[str, Field(max_length=32, description=f"What the body is: {', '.join(FORMATS)}.")]
    zone: Annotated[str | None, Field(description="The time zone of times without one, such as `Europe/Berlin`.")] = (
        None
    )
    mode: Annotated[ModeName | None, Field(description="The mode of all messages.")] = None
    mode_for: Annotated[
        list[str] | None,
        Field(max_length=100, description="The mode of a part: `project:NAME=MODE`, `conversation:NAME=MODE`."),
    ] = None


class UploadForm(BaseModel):
    """The turn of a file; without `content` it is the file's name. `metadata` is a JSON object."""

    conversation_id: Identifier
    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_LENGTH)] | None = None
    mode: ModeName | None = None
    occurred_at: Moment | None = None
    metadata: dict[str, Any] = {}


class Export(BaseModel):
    """Filters of an export: by default all projects."""

    read_after: int | None = None


REF = "#/components/schemas/{model}"


class Shapes:
    """The bodies and queries over HTTP."""

    def __init__(self, scope: type[Scope]) -> None:
        self.scope_fields = scope_fields_of(scope)
        self._scope, self._selector = scope, selector_of(scope)
        self._of_user = create_model("ScopeOrUser", __base__=scope, **{PROJECT_FIELD: PROJECT_OR_USER})
        self._bodies: dict[str, BodyReader] = {}
        self._queries: dict[str, QueryReader] = {}
        self.turn = self._body(Body("TurnBody", EXAMPLE_TURN), Turn, scope)
        assert ANSWER.http is not None
        assert ANSWER.http.body is not None
        self.answer = self._body(ANSWER.http.body, AnswerBody, self._selector)
        self.memory_change = self._body(Body("MemoryChangeBody", {"mode": "journal"}), MemoryChange, scope)
        self.project = self._query(Nothing, scope)
        self.projects = self._query(Nothing, self._selector)
        self.confirmed = self._query(Confirmed, scope)
        self.export = self._query(Export, self._selector)
        self.imported = self._query(Import, scope)
        self.upload = self._body(Body("UploadForm", {"conversation_id": "c1"}), UploadForm, scope)

    def of(self, operation: Operation[Any]) -> BodyReader | QueryReader:
        assert operation.http is not None
        record = operation.arguments or RECORDS.get(operation.record, Nothing)
        scope = self._selector if operation.kind == "question" else self._scope
        if operation.may_concern_user:
            scope = self._of_user
        own = scope if operation.concerns_user else None
        body, names = operation.http.body, operation.http.names
        if body is None:
            if operation.name not in self._queries:
                self._queries[operation.name] = self._query(record, own, names)
            return self._queries[operation.name]
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
