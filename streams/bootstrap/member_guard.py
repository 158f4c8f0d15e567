"""Refuse to start a worker under the id of a running one.

Kafka would give it the running worker's place in the group, and both would work until that one notices. A member with
the id is this data directory's last process, which has ended, so that the worker starts at once; or a process that has
ended elsewhere, which the group drops after its session; or a running worker.
"""

import asyncio
import fcntl
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import structlog

from schemas.failures import Unavailable
from streams.runtime.fence import SESSION_TIMEOUT_S
from streams.settings import WORKER_RUN_PREFIX

# Whether an ending worker should leave its group at once: if other workers can open its partitions' files.
#
# A worker that is restarted within its session gets its partitions back, with their files. So it stays a member, unless
# all other workers are of the same data directory: these take over within seconds, without rebuilding anything.

MEMBER_FILE = "member.json"
"""In the directory of a worker's run files."""

LOOK_TIMEOUT_S = 2.0
"""Time limit for an ending worker to look for others."""


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


# The last group member of a data directory's worker, in a file that is locked while the worker runs.
#
# Guaranteed: one process at a time is a worker of a data directory, by its id, and the process of a `former` member has
# ended. The file of a copied directory does not vouch for its content, on this machine or another one: the original's
# worker may be alive.

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Identifies the running kernel: locks under another one are not visible here."""


class MemberFile:
    former: str | None
    """The member id of the worker's last process; None without one, or if it may be alive."""

    def __init__(self, path: Path) -> None:
        """Lock the file until `close` or the end of the process. Ends the process if another one has it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = self._read().get("pid", "unknown")
            self.close()
            sys.exit(
                f"setting MODESTREAM_WORKER_ID: {path.parent} is in use by another worker, process {process}\n"
                "Give each worker its own id; those of one data directory share its partitions"
            )
        self._place = _place(self._file.fileno())
        stored = self._read()
        is_original = self._place["boot"] != "" and self._place.items() <= stored.items()
        self.former = stored.get("member") if is_original else None
        self.note(self.former)

    def note(self, member_id: str | None) -> None:
        # In place: a new file would not be locked. A torn write counts as missing.
        self._file.truncate(0)
        self._file.write(orjson.dumps({**self._place, "pid": os.getpid(), "member": member_id}).decode())
        self._file.flush()

    def close(self) -> None:
        """Unlock the file: nothing else of the directory may be open."""
        self._file.close()

    def _read(self) -> dict[str, Any]:
        self._file.seek(0)
        try:
            stored = orjson.loads(self._file.read())
        except ValueError:
            return {}
        return stored if isinstance(stored, dict) else {}


PATIENCE_S = SESSION_TIMEOUT_S + 3.0
"""Time that a member is observed: an ended one is dropped a session after its last heartbeat."""

POLL_INTERVAL_S = 0.25

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


def _place(descriptor: int) -> dict[str, Any]:
    """Return an identity of the file that a copy does not share."""
    status = os.fstat(descriptor)
    boot = BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else ""
    return {"boot": boot, "device": status.st_dev, "inode": status.st_ino}


def _members_of(run: Path) -> set[str]:
    """Return the last member of each worker."""
    return {_member_in(file) for file in (run / MEMBER_FILE, *run.glob(f"{WORKER_RUN_PREFIX}*/{MEMBER_FILE}"))}


def _member_in(file: Path) -> str:
    try:
        stored = orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return ""
    return str(stored.get("member")) if isinstance(stored, dict) else ""
