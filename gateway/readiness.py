"""Whether the service answers: asked at most every few seconds, for any number of callers of `/ready`."""

import time
from collections.abc import Awaitable, Callable

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.failures import MemoryClientError, MemoryServiceError
from modestream_client.operations import COMMANDS

from gateway.service.calls import Backend

MAX_AGE_S = 2.0
"""Seconds for which an answer counts: `/ready` needs no key, so asking it often must cost the worker nothing."""

TIMEOUT_S = 3.0

PROBE = "list_modes"
"""A command that reads: its records are removed like those of questions."""

PROBE_USER_ID = "modestream-probe"
"""A user without memories, such as the first user of `up`."""


def probe_user(boundary_fields: BoundaryFields) -> str:
    """Return the name of a user without memories, in a deployment with these boundary fields."""
    return boundary_fields.name(dict.fromkeys(boundary_fields, PROBE_USER_ID))


def readiness_of(backend: Backend, boundary_fields: BoundaryFields = USER_BOUNDARY) -> Callable[[], Awaitable[bool]]:
    """Return a probe: true if a worker has answered a command lately, even with a refusal."""
    checked_at, was_ready = float("-inf"), False
    scope = {**dict.fromkeys(boundary_fields, PROBE_USER_ID), "project_id": "default"}
    probe = COMMANDS[PROBE]

    async def is_ready() -> bool:
        nonlocal checked_at, was_ready
        if time.monotonic() - checked_at > MAX_AGE_S:
            try:
                await backend.request(probe.topic, probe.record_of(scope, {}), principal=None, timeout=TIMEOUT_S)
                was_ready = True
            except MemoryServiceError as error:
                was_ready = error.code not in ("internal", "unavailable")
            except MemoryClientError:
                was_ready = False
            checked_at = time.monotonic()
        return was_ready

    return is_ready
