"""The header `Prefer` of RFC 7240: `wait=SECONDS` and `respond-async`. What can't be read is ignored, as it says."""

import re

from gateway.service.calls import DEFAULT_WAIT_S

MIN_WAIT_S, MAX_WAIT_S = 0.1, 60.0
"""Seconds that a caller may wait (docs/contract.md)."""

WAIT = re.compile(r"\s*wait\s*=\s*\"?(\d{1,6}(?:\.\d{1,6})?)\"?\s*\Z", re.IGNORECASE)


def wait_of(prefer: str | None) -> float:
    """Return the seconds that an answer may take, within the limits.

    >>> wait_of("respond-async, wait=0.5")
    0.5
    """
    for part in (prefer or "").split(","):
        if found := WAIT.match(part):
            return min(MAX_WAIT_S, max(MIN_WAIT_S, float(found[1])))
    return DEFAULT_WAIT_S


def is_async(prefer: str | None) -> bool:
    """True if the caller asks to be answered before the work is done."""
    return any(part.strip().lower() == "respond-async" for part in (prefer or "").split(","))
