"""Register the JSON Schemas of public topics with a Schema Registry, by Confluent's REST API.

The subject is `<topic>-value`, where Kafka Connect, ksqlDB, Flink and consoles look for it. Values stay plain JSON,
without the registry's five leading bytes.
"""

import asyncio

import httpx
import orjson
import structlog
from pydantic.json_schema import models_json_schema

from schemas.failures import Unavailable
from streams.api_docs.asyncapi import DEAD_LETTER, Json, build_channels, wire_payloads
from streams.api_docs.payloads import WireSchema
from streams.channels import input_channels
from streams.settings import Settings
from streams.topics import topics_with_prefix

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
REQUEST_TIMEOUT_S, RETRY_S = 10.0, 30.0
TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500

log = structlog.get_logger()


class RegistrationRefused(Exception):
    """The registry answered, and does not take a schema: an incompatible one, or a caller without rights."""


def topic_schemas(settings: Settings) -> dict[str, Json]:
    """Build a self-contained schema by topic: any of its messages. Dead letters hold any bytes and have none."""
    topics = topics_with_prefix(settings.topic_prefix)
    payloads = {payload.name: payload for payload in wire_payloads(settings)}
    schemas: dict[str, Json] = {}
    for channel in build_channels(settings, topics, input_channels(topics, settings.scope_model)).values():
        on_topic = [payloads[name] for name in channel["messages"] if name != DEAD_LETTER]
        if channel["address"] is None or not on_topic:
            continue
        references, described = models_json_schema(
            [(payload.model, payload.mode) for payload in on_topic], schema_generator=WireSchema
        )
        schemas[channel["address"]] = {
            "$schema": WireSchema.schema_dialect,
            "title": channel["address"],
            "oneOf": [references[payload.model, payload.mode] for payload in on_topic],
            "$defs": described["$defs"],
        }
    return schemas


async def register_schemas(address: str, schemas: dict[str, Json]) -> dict[str, int]:
    """Register schemas by topic; return the registry's ids by subject. The same schema again gets the same id.

    Raises Unavailable if the registry can't be reached or fails, RegistrationRefused if it refuses.
    """
    ids: dict[str, int] = {}
    async with httpx.AsyncClient(base_url=address, timeout=REQUEST_TIMEOUT_S) as client:
        for topic, schema in schemas.items():
            subject = f"{topic}-value"
            body = orjson.dumps({"schemaType": "JSON", "schema": orjson.dumps(schema).decode()})
            try:
                answer = await client.post(
                    f"/subjects/{subject}/versions", content=body, headers={"Content-Type": MEDIA_TYPE}
                )
            except httpx.HTTPError as problem:
                raise Unavailable(f"the Schema Registry does not answer: {problem!r}") from problem
            if answer.status_code == TOO_MANY_REQUESTS or answer.status_code >= SERVER_ERROR:
                raise Unavailable(f"the Schema Registry fails with status {answer.status_code}")
            if not answer.is_success:
                raise RegistrationRefused(f"{subject}: status {answer.status_code}: {answer.text[:500]}")
            ids[subject] = answer.json()["id"]
    return ids


async def register_at_start(address: str, settings: Settings) -> None:
    """Register the schemas of a worker that starts, once the registry answers; a refusal is logged."""
    schemas = await asyncio.to_thread(topic_schemas, settings)
    while True:
        try:
            ids = await register_schemas(address, schemas)
        except Unavailable as problem:
            # Not counted as a store that is away: memories don't need it.
            log.warning("schemas are not registered yet", problem=str(problem), again_s=RETRY_S)
            await asyncio.sleep(RETRY_S)
        except RegistrationRefused as problem:
            log.warning("the Schema Registry refuses a schema", problem=str(problem))
            return
        else:
            log.info("schemas registered", subjects=len(ids))
            return
