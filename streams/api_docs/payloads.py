"""Complete Pydantic models of every value on the wire, with its `schema` and with replies by kind of request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union

from modestream_client.arguments import Forget
from modestream_client.contexts import AnswerResult, AssembleResult
from modestream_client.hits import ListResult
from modestream_client.operations import COMMANDS
from modestream_client.results import MemoryMap
from pydantic import BaseModel, Field, RootModel, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from schemas.failures import ErrorCode
from schemas.internal.consolidation import Difference, ModeCounts
from schemas.messages.commands import Command
from schemas.messages.replies import ReplyWarning
from schemas.messages.retrieval import RetrieveResult
from schemas.messages.turns import TurnAccepted
from streams.flow.requests.channel import Channel


def command_union(name: str, command: type[Command]) -> type[BaseModel]:
    """Create the model `name`, the union of all commands with their arguments."""
    each = [_with_arguments(name, command, known) for known in sorted(COMMANDS)]
    union: Any = Union[tuple(each)]  # noqa: UP007 - their number is not fixed
    parent: Any = RootModel[union]
    made: type[BaseModel] = create_model(name, __base__=parent, __doc__=Command.__doc__)
    return made


def _with_arguments(name: str, command: type[Command], known: str) -> type[BaseModel]:
    model = COMMANDS[known].arguments
    fields: dict[str, Any] = {"command": (Literal[known], ...)}
    if model is not None:
        is_needed = any(field.is_required() for field in model.model_fields.values()) or model is Forget
        fields["arguments"] = (model, ... if is_needed else Field(default_factory=model))
    return create_model(f"{name}_{known}", __base__=command, __doc__=f"The command `{known}`.", **fields)


REPLY_SCHEMA = "reply.v1"


class Consolidation(BaseModel):
    """The result of a consolidation: the changes of a run."""

    run: str
    created: list[str]
    superseded: list[str]
    modes: dict[str, ModeCounts]
    diff: list[Difference]


class WireError(BaseModel):
    """An error; `field` is the dotted path of the invalid field, or null."""

    code: ErrorCode
    message: str
    field: str | None


class Delta(BaseModel):
    """The next piece of an answer."""

    text: str


RESULTS: Mapping[str, Any] = {
    "turn.v1": TurnAccepted,
    "retrieve.v1": RetrieveResult,
    "assemble.v1": AssembleResult,
    "answer.v1": AnswerResult,
    "list.v1": ListResult,
    "map.v1": MemoryMap,
    "command.v1": dict[str, Any],
    "consolidate.v1": Consolidation,
}
"""The result of a request by its `schema`. Each command has a result of its own."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A value on the wire; `mode` tells whether the worker reads or writes it."""

    name: str
    model: type[BaseModel]
    mode: JsonSchemaMode

    @property
    def component(self) -> str:
        return component_name(self.name)


class WireSchema(GenerateJsonSchema):
    """JSON Schemas with portable patterns: the end of a text is `$`."""

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        described = super().str_schema(schema)
        if "pattern" in described:
            described["pattern"] = described["pattern"].replace(r"\z", "$")
        return described


def component_name(name: str) -> str:
    """Return a name without dots, at which Pydantic would cut it."""
    return name.replace(".", "_")


def reply_name(kind: str) -> str:
    return f"{kind}.reply"


def build_payloads(channels: Iterable[Channel]) -> list[Payload]:
    """Build the payloads of requests and of their replies, and `reply.v1`, the union of all replies."""
    kinds = {kind: model for channel in channels for kind, model in channel.kinds.items()}
    requests = [Payload(kind, _request(kind, model), "validation") for kind, model in kinds.items()]
    failed = create_model("error_reply", __base__=_reply("error"), error=(WireError, ...))
    partial = create_model("partial_reply", __base__=_reply("partial"), seq=(int, ...), delta=(Delta, ...))
    replies: dict[str, type[BaseModel]] = {}
    for kind in kinds:
        name, result = component_name(f"{kind}.result"), (RESULTS[kind], ...)
        done = create_model(name, __base__=_reply("ok"), result=result, warnings=(list[ReplyWarning], ...))
        replies[kind] = _any_of(reply_name(kind), [done, failed, *([partial] if kind == "answer.v1" else ())])
    answers = [Payload(reply_name(kind), model, "serialization") for kind, model in replies.items()]
    return [*requests, *answers, Payload(REPLY_SCHEMA, _any_of(REPLY_SCHEMA, [*replies.values()]), "serialization")]


def _request(kind: str, model: type[BaseModel]) -> type[BaseModel]:
    if issubclass(model, Command):
        return command_union(component_name(kind), create_model("command", __base__=model, **_schema(kind)))
    return create_model(component_name(kind), __base__=model, __doc__=model.__doc__, **_schema(kind))


def _reply(status: str) -> type[BaseModel]:
    literal: Any = Literal[status]
    return create_model("Reply", status=(literal, ...), **_schema(REPLY_SCHEMA))


def _schema(name: str) -> dict[str, Any]:
    return {"schema_": (Literal[name], Field(alias="schema"))}


def _any_of(name: str, models: list[type[BaseModel]]) -> type[BaseModel]:
    union: Any = models[0]
    for model in models[1:]:
        union |= model
    parent: Any = RootModel[union]
    made: type[BaseModel] = create_model(component_name(name), __base__=parent)
    return made
