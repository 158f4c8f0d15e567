"""Switch gateways to a new deployment, and delete the one it replaces.

Gateways are those of HTTP and `python -m streams mcp`. Other clients follow nothing: operators give them the prefix.
Guaranteed: between a gateway's last record to the former deployment and its first to the successor, everything is
copied and applied. If the command is killed, gateways wait for at most a minute and then send to the former deployment
again; the same command continues.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from schemas.internal.service import PAUSE_S, Successor, SuccessorState
from streams.adapters.kafka.clients import delete_topics, hosts_of_members, topics_of_deployment
from streams.adapters.kafka.deployment_log import read_successor, write_successor
from streams.settings import Settings
from streams.topics import group_id

GATEWAYS_PAUSED_S = 5.0
"""Seconds after which no gateway sends: they read the record within one, and records in flight may take two more."""

COPY_TIMEOUT_S = PAUSE_S - 15
"""Limit of the pause: gateways count it from the record's time, and wait longer."""

WORKERS_GONE_S = 20.0
"""Seconds to wait for the end of workers: Kafka keeps a stopped one until its session of 12 s ends."""

Copy = Callable[[], Awaitable[None]]
"""Copies the new records, and returns when they are applied."""


class NotSwitched(Exception):
    """The former deployment keeps serving, for this reason."""


async def switch(source: Settings, target: Settings, copy: Copy) -> None:
    """Pause the gateways, copy the rest, let them send to the target. Raises NotSwitched."""
    if set(source.scope_model.model_fields) != set(target.scope_model.model_fields):
        raise NotSwitched("gateways can't follow to other scope fields: restart them with the new settings")
    if (other := await read_successor(target)) is not None and other.serves:
        raise NotSwitched(
            f"{target.topic_prefix} was itself replaced by {other.topic_prefix}: migrate to another prefix"
        )
    await _tell(source, target, "pausing")
    try:
        async with asyncio.timeout(COPY_TIMEOUT_S):
            await asyncio.sleep(GATEWAYS_PAUSED_S)
            await copy()
    except BaseException as problem:
        await _tell(source, target, "withdrawn")
        if isinstance(problem, TimeoutError):
            raise NotSwitched("the rest took too long: the same command tries again") from problem
        raise
    await _tell(source, target, "serving")


async def is_replaced(source: Settings, target: Settings) -> bool:
    """True if gateways already send to the target. Raises NotSwitched if they send to another one, Unavailable."""
    return check_replaced(source, target, await read_successor(source))


def check_replaced(source: Settings, target: Settings, successor: Successor | None) -> bool:
    """Return whether gateways of a deployment with this successor send to the target.

    Raises NotSwitched if they send to another deployment, also to one with the same prefix on another broker.
    """
    if successor is None or not successor.serves:
        return False
    serving = source.model_copy(
        update={"topic_prefix": successor.topic_prefix, "broker": successor.broker or source.broker}
    )
    if (serving.topic_prefix, serving.bootstrap_servers) != (target.topic_prefix, target.bootstrap_servers):
        raise NotSwitched(
            f"{source.topic_prefix} was replaced by {serving.topic_prefix} on {serving.broker}: name that one with --to"
            " and --to-broker, or migrate it"
        )
    return True


async def drop(source: Settings, target: Settings, copy: Copy) -> int:
    """Copy the new records, and delete all topics of a replaced deployment except the one that names its successor.

    Return their number. Raises NotSwitched if a worker of it runs, and errors of `copy`: then nothing is deleted.
    """
    await _until_without_workers(source)
    successor = await read_successor(source)
    # An earlier deletion may have removed some logs.
    if successor is None or successor.state != "dropped":
        await copy()
    # First: a worker that starts now would create the topics again.
    await _tell(source, target, "dropped")
    deleted = await delete_topics(source, await topics_of_deployment(source))
    sys.stdout.write(f"deleted {deleted} topics of {source.topic_prefix}; its data directory may go too\n")
    return deleted


async def _until_without_workers(source: Settings) -> None:
    """Wait until no worker is left. Raises NotSwitched if one keeps running."""
    try:
        async with asyncio.timeout(WORKERS_GONE_S):
            while await hosts_of_members(source, group_id(source)):  # noqa: ASYNC110 - Kafka tells of no end
                await asyncio.sleep(1)
    except TimeoutError:
        raise NotSwitched(f"a worker of {source.topic_prefix} runs: stop it") from None


async def _tell(source: Settings, target: Settings, state: SuccessorState) -> None:
    broker = target.broker if target.broker != source.broker else None
    await write_successor(source, Successor(state=state, topic_prefix=target.topic_prefix, broker=broker))
