"""The JSON Schema of every value on the wire, each self-contained, by the value's `schema`."""

from typing import Any

from modestream_client.runs import Run
from pydantic import create_model
from pydantic.json_schema import models_json_schema

from schemas.messages.boundaries import Boundary
from streams.api_docs.channels import BOUNDARY, RUN
from streams.api_docs.payloads import Payload, WireSchema, build_payloads, component_name
from streams.channels import input_channels
from streams.settings import Settings
from streams.topics import topics_with_prefix

COMPONENTS = "#/components/schemas/{model}"
"""The location of schemas in an AsyncAPI document."""

Json = dict[str, Any]


def build_json_schemas(settings: Settings) -> Json:
    """Build the schemas of requests (`turn.v1`), of the reply to each (`turn.v1.reply`), of any reply (`reply.v1`)."""
    return {one.name: _self_contained(one) for one in wire_payloads(settings)}


def wire_payloads(settings: Settings) -> list[Payload]:
    """Return the payloads on the public topics of a deployment."""
    inputs = input_channels(topics_with_prefix(settings.topic_prefix), settings.scope_model)
    boundary = create_model(component_name(BOUNDARY), __base__=Boundary, __doc__=Boundary.__doc__)
    run = create_model(component_name(RUN), __base__=Run, __doc__=Run.__doc__)
    # Its fields without a value are left out, as in what is read.
    told = [Payload(BOUNDARY, boundary, "serialization"), Payload(RUN, run, "validation")]
    return [*build_payloads(inputs.public()), *told]


def components(payloads: list[Payload]) -> Json:
    """Build the schemas of payloads and of all that they refer to, side by side."""
    models = [(one.model, one.mode) for one in payloads]
    _, schemas = models_json_schema(models, ref_template=COMPONENTS, schema_generator=WireSchema)
    components: Json = schemas["$defs"]
    return components | {one.component: {**components[one.component], "title": one.name} for one in payloads}


def _self_contained(one: Payload) -> Json:
    schema = one.model.model_json_schema(mode=one.mode, schema_generator=WireSchema)
    return {"$schema": WireSchema.schema_dialect, **schema, "title": one.name}
