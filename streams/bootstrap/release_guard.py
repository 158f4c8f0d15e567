"""Guard a deployment's data against workers of a release that can't read it, or that writes unreadable data.

Enters: the numbers of this release, and the record in the topic `service`. Leaves: a record of this release, if it is
the highest so far; or the end of the process, with a code and what to do. Guaranteed: a refused worker has written
nothing. A running worker of the last release continues, and its start is refused by this record only if `OWN.oldest`
says so (for unknown kinds of records see `service_guard`).
"""

import sys
from collections.abc import Sequence
from typing import NoReturn

from schemas.internal.service import RELEASE_KEY, Release
from schemas.version import RELEASE
from streams.deployment_log import DeploymentLog, agree, readable

READS_FROM = max(1, RELEASE - 1)
"""The oldest release whose data this one reads: the one before; 1.0.0 has none."""

OWN = Release(number=RELEASE, oldest=READS_FROM)
"""This release. `oldest` is the first that can read its writes, by default the one before: workers are replaced singly.
"""


async def agree_on_release(records: DeploymentLog, own: Release = OWN, reads_from: int = READS_FROM) -> Release:
    """Return the deployment's numbers from now on. Ends the process if this release may not join it."""

    def merge(releases: Sequence[Release]) -> Release:
        _refuse_unreadable(releases, own, reads_from)
        return _highest([*releases, own])

    return await agree(records, RELEASE_KEY, own, merge)


async def check_release(records: DeploymentLog) -> None:
    """End the process if this release may not join the deployment; writes nothing."""
    if recorded := readable((await records.values()).get(RELEASE_KEY, ()), Release):
        _refuse_unreadable(recorded, OWN, READS_FROM)


def _refuse_unreadable(releases: Sequence[Release], own: Release, reads_from: int) -> None:
    made = _highest(releases)
    if own.number < made.oldest:
        writer = f"was written by release {made.number}, which takes workers from {made.oldest} on"
        _refuse("release_too_old", own, writer, made.oldest)
    if made.number < reads_from:
        reads = f"was last written by release {made.number}, and this one reads data from {reads_from} on"
        _refuse("data_too_old", own, reads, reads_from, f"once, and upgrade to {own.number} from there")


def _highest(releases: Sequence[Release]) -> Release:
    return Release(
        number=max(release.number for release in releases), oldest=max(release.oldest for release in releases)
    )


def _refuse(code: str, own: Release, why: str, needed: int, then: str = "or a later one") -> NoReturn:
    sys.exit(f"{code}: this worker is of release {own.number}; the deployment {why}: start release {needed} {then}")
