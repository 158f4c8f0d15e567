"""Whether an ending worker should leave its group at once: if other workers can open its partitions' files.

A worker that is restarted within its session gets its partitions back, with their files. So it stays a member, unless
all other workers are of the same data directory: these take over within seconds, without rebuilding anything.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import orjson
import structlog

from schemas.failures import Unavailable
from streams.settings import WORKER_RUN_PREFIX

MEMBER_FILE = "member.json"
"""In the directory of a worker's run files."""


LOOK_TIMEOUT_S = 2.0
"""Time limit for an ending worker to look for others."""

log = structlog.get_logger()


async def has_other_directories(hosts: Callable[[], Awaitable[Mapping[str, str]]], run: Path) -> bool:
    """True if the group has members that are not workers of the data directory with these run files.

    False if that can't be determined now.
    """
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            return not (await hosts()).keys() <= _members_of(run)
    except (Unavailable, TimeoutError):
        return False


async def should_leave(hosts: Callable[[], Awaitable[Mapping[str, str]]], run: Path) -> bool:
    """True if the group has other members, all of them workers of the data directory with these run files."""
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            members = (await hosts()).keys()
    except (Unavailable, TimeoutError) as problem:
        log.warning("the group could not be looked at, the worker remains its member", problem=repr(problem))
        return False
    return len(members) > 1 and members <= _members_of(run)


def _members_of(run: Path) -> set[str]:
    """Return the last member of each worker."""
    return {_member_in(file) for file in (run / MEMBER_FILE, *run.glob(f"{WORKER_RUN_PREFIX}*/{MEMBER_FILE}"))}


def _member_in(file: Path) -> str:
    try:
        stored = orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return ""
    return str(stored.get("member")) if isinstance(stored, dict) else ""
