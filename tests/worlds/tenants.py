"""A deployment whose boundary has two fields, organization and user, over topics in memory."""

import json
from pathlib import Path
from typing import Any

from modestream_client import MemoryCalls

from schemas.messages.records import Headers
from schemas.scope_models import deployed_scope
from schemas.scopes import Scope
from tests.builders.boundary_scopes import TenantScope
from tests.worlds.in_memory_client import client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]

TENANTS = deployed_scope(TenantScope)
"""The scopes of the deployment."""


def tenant(organization: str, user: str) -> Json:
    return {"organization_id": organization, "user_id": user}


def pipeline_of(directory: Path, scope: type[Scope] = TENANTS, **how: Any) -> InMemoryPipeline:
    return InMemoryPipeline(directory, scope_model=scope, **how)


def member(pipeline: InMemoryPipeline, organization: str, user: str) -> MemoryCalls:
    return client_of(pipeline, user_id=tenant(organization, user), boundary=pipeline.scope_model.boundary_fields)


async def sent(pipeline: InMemoryPipeline, topic: str, message: Json, headers: Headers = (), **how: Any) -> Json:
    """Publish a request, keyed by its boundary unless `how` overrides the key, and return its reply."""
    values = [message["scope"].get(field) for field in pipeline.scope_model.boundary_fields]
    key = json.dumps(values).encode()
    if all(isinstance(value, str) for value in values):
        key = pipeline.scope_model.boundary_fields.key(message["scope"]).encode()
    return await pipeline.ask(topic, message, headers, **{"key": key, **how})
