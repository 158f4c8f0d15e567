"""The JSON Schema of every value on the wire, each complete in itself, by the value's `schema`."""

from typing import Any

from pydantic.json_schema import models_json_schema

from streams.api_docs.payloads import Payload, WireSchema, build_payloads
from streams.channels import input_channels
from streams.settings import Settings
from streams.topics import topics_with_prefix

COMPONENTS = "#/components/schemas/{model}"
"""Where an AsyncAPI document has its schemas."""

Json = dict[str, Any]


def build_json_schemas(settings: Settings) -> Json:
    """Schemas of requests (`turn.v1`), of the reply to each (`turn.v1.reply`) and of any reply (`reply.v1`)."""
    return {one.name: _alone(one) for one in wire_payloads(settings)}


def wire_payloads(settings: Settings) -> list[Payload]:
    """What a deployment has on its public topics."""
    return build_payloads(input_channels(topics_with_prefix(settings.topic_prefix), settings.scope_model).public())


def components(some: list[Payload]) -> Json:
    """The same schemas and all that they name, beside each other."""
    models = [(one.model, one.mode) for one in some]
    _, schemas = models_json_schema(models, ref_template=COMPONENTS, schema_generator=WireSchema)
    found: Json = schemas["$defs"]
    return found | {one.component: {**found[one.component], "title": one.name} for one in some}


def _alone(one: Payload) -> Json:
    schema = one.model.model_json_schema(mode=one.mode, schema_generator=WireSchema)
    return {"$schema": WireSchema.schema_dialect, **schema, "title": one.name}
