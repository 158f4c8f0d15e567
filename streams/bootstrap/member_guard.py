"""Refuse to start a worker under the id of a running one.

Kafka would give it the running worker's place in the group, and both would work until that one notices. A member with
the id is this data directory's last process, which has ended, so that the worker starts at once; or a process that has
ended elsewhere, which the group drops after its session; or a running worker.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping

import structlog

from streams.runtime.fence import SESSION_TIMEOUT_S

PATIENCE_S = SESSION_TIMEOUT_S + 3.0
"""Time that a member is observed: an ended one is dropped a session after its last heartbeat."""

POLL_INTERVAL_S = 0.25
"""Interval between checks."""

log = structlog.get_logger()

Hosts = Callable[[], Awaitable[Mapping[str, str]]]
"""Returns the address of each member of the group by its member id."""


async def check_member(name: str, former: str | None, hosts: Hosts, patience_s: float = PATIENCE_S) -> None:
    """End the process if a running worker is the static member `name`; `former` is the member id of an ended process.

    Waits up to `patience_s`, for a member that may have ended. Raises the errors of `hosts`: start over then, as a
    broker that was away has restarted all sessions.
    """
    if (host := running_on(await hosts(), name, former)) is None:
        return
    log.warning("the group has a member with this worker's id, waiting for its end", member=name, host=host)
    deadline = asyncio.get_running_loop().time() + patience_s
    while host is not None:
        if asyncio.get_running_loop().time() >= deadline:
            sys.exit(
                f"setting MODESTREAM_WORKER_ID: another worker with this id is running on {host}, as the group member"
                f" {name}\nGive this worker its own id; in a copied data directory, delete the file worker.id"
            )
        await asyncio.sleep(POLL_INTERVAL_S)
        host = running_on(await hosts(), name, former)


def running_on(hosts: Mapping[str, str], name: str, former: str | None) -> str | None:
    """Return the address of the static member `name`; None if the group has none but `former`."""
    # Kafka makes the member id of a static member from its name and a random UUID.
    return next((host for member, host in hosts.items() if member.startswith(f"{name}-") and member != former), None)
