"""Guard a deployment's data against other settings than its original ones.

Enters: a worker's settings, and the compacted topic `service`. Leaves: the deployment's record, written at the first
start; or the end of the process, with both values and the way out, also for a replaced deployment. Guaranteed: if
several workers start first at once, with different settings, one worker's settings apply to all.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from schemas.failures import Rejected
from schemas.internal.service import SERVICE_KEY, ServiceRecord, Successor
from schemas.messages.decoding import decode
from streams.adapters.kafka.deployment_log import last_successor
from streams.bootstrap.scope_guard import MIGRATE
from streams.channels import input_channels
from streams.deployment_log import DeploymentLog, agree
from streams.flow.steps.embed import REMEMBERED_EVENTS
from streams.flow.steps.learned import LEARNED_EVENTS
from streams.flow.steps.remember import MEMORY_EVENTS
from streams.settings import Settings
from streams.topics import topics_with_prefix

REFUSALS = {
    "scope_fields": "setting MODESTREAM_SCOPE_MODEL: {deployment} was created with scopes of {made}, not {own}",
    "boundary": "setting MODESTREAM_SCOPE_MODEL: {deployment} was created with the boundary {made}, not {own}",
    "partitions": "setting MODESTREAM_PARTITIONS: {deployment} was created with {made} partitions, not {own}",
    "topic_prefix": "setting MODESTREAM_TOPIC_PREFIX: {deployment} was created with the prefix {made}, not {own}",
    "schemas": "{deployment} was written by a later release: its topics hold {made}, and this release reads {own}",
}
"""Why a worker does not start, by field of the record."""


def service_record(settings: Settings) -> ServiceRecord:
    """Return the record of a deployment with these settings."""
    inputs = input_channels(topics_with_prefix(settings.topic_prefix), settings.scope_model)
    # Kinds of questions may come and go: they are not stored.
    kept = (inputs.turns, inputs.commands, inputs.triggers, inputs.changes, inputs.jobs)
    kinds = (kind for channel in kept for kind in channel.kinds)
    schemas = (*kinds, *MEMORY_EVENTS, *REMEMBERED_EVENTS, *LEARNED_EVENTS)
    return ServiceRecord.of(settings.scope_model, settings.partitions, settings.topic_prefix, schemas)


async def agree_on_service(own: ServiceRecord, records: DeploymentLog) -> ServiceRecord:
    """Return the deployment's record; write `own` without one. Ends the process if `own` contradicts it."""
    refuse_replaced(records.topic, last_successor(await records.values()))

    def merge(services: Sequence[ServiceRecord]) -> ServiceRecord:
        # The first record counts, with the schemas of all, and those of a worker that may join.
        made = services[0].with_schemas(kind for service in services for kind in service.schemas)
        return made if made.conflicts(own) else made.with_schemas(own.schemas)

    def read(values: Iterable[bytes], _kind: type[ServiceRecord]) -> list[ServiceRecord]:
        try:
            return [decode(value, {"service.v1": ServiceRecord}) for value in values]
        except Rejected as problem:
            sys.exit(f"{records.topic} has a record that this release can't read, start a later one: {problem}")

    agreed = await agree(records, SERVICE_KEY, own, merge, read)
    if conflicts := agreed.conflicts(own):
        reasons = [
            REFUSALS[name].format(
                deployment=f"the deployment of {records.topic}",
                made=_text(getattr(agreed, name)),
                own=_text(getattr(own, name)),
            )
            for name in conflicts
        ]
        sys.exit("\n".join([*reasons, MIGRATE]))
    return agreed


def refuse_replaced(topic: str, successor: Successor | None) -> None:
    """End the process of a deployment whose topics were deleted: it would serve again, without memories."""
    if successor is not None and successor.state == "dropped":
        at = f" on {successor.broker}" if successor.broker else ""
        sys.exit(f"the deployment of {topic} was replaced: set MODESTREAM_TOPIC_PREFIX={successor.topic_prefix}{at}")


def _text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
