"""Guard a deployment's data against workers of a release that can't read it, or that writes what others can't read.

Enters: the numbers of this release, and the record in the topic `service`. Leaves: a record of this release, where it
is the highest so far; or the end of the process, with a code and what to do. Guaranteed: a refused worker has written
nothing. A worker of the last release that runs goes on beside this one, and its start is refused by this record only
where `OWN.oldest` says so (by the kinds of records that it does not know: `service_guard`).
"""

import sys
from typing import NoReturn, Protocol

import structlog

from schemas.internal.release import Release
from schemas.version import RELEASE

READS_FROM = max(1, RELEASE - 1)
"""The oldest release whose data this one reads: the one before; 1.0.0 has none."""

OWN = Release(number=RELEASE, oldest=READS_FROM)
"""This release. `oldest` is the first that can read what it writes, by default the one before, as workers are replaced
one by one."""

log = structlog.get_logger()


class ReleaseLog(Protocol):
    """The record in the topic `service`."""

    async def read(self) -> list[Release]:
        """Return all records."""

    async def write(self, release: Release) -> None:
        """Write a record."""


async def agree_on_release(records: ReleaseLog, own: Release = OWN, reads_from: int = READS_FROM) -> Release:
    """Return what counts for the deployment from now on. Ends the process where this release may not join it."""
    recorded = await check_release(records, own, reads_from)
    agreed = own
    if recorded is not None:
        agreed = Release(number=max(recorded.number, own.number), oldest=max(recorded.oldest, own.oldest))
    if agreed != recorded:
        await records.write(agreed)
        log.info("release recorded", number=agreed.number, oldest=agreed.oldest)
    return agreed


async def check_release(records: ReleaseLog, own: Release = OWN, reads_from: int = READS_FROM) -> Release | None:
    """Return what counts for the deployment, None for a new one; writes nothing.

    Ends the process where this release may not join.
    """
    releases = await records.read()
    if not releases:
        return None
    number = max(release.number for release in releases)
    oldest = max(release.oldest for release in releases)
    if own.number < oldest:
        writer = f"was written by release {number}, which takes workers from {oldest} on"
        _refuse("release_too_old", own, writer, oldest)
    if number < reads_from:
        reads = f"was last written by release {number}, and this one reads data from {reads_from} on"
        _refuse("data_too_old", own, reads, reads_from, f"once, and upgrade to {own.number} from there")
    return Release(number=number, oldest=oldest)


def _refuse(code: str, own: Release, why: str, needed: int, then: str = "or a later one") -> NoReturn:
    sys.exit(f"{code}: this worker is of release {own.number}; the deployment {why}: start release {needed} {then}")
