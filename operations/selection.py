"""Which users an operator's command is about, and how many of them at the same time."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """`users` None: all of the deployment; `project` None: all of each user. `principal` names the caller."""

    users: frozenset[str] | None
    project: str | None = None
    at_once: int = 4
    principal: str | None = None


def named_scope(*parts: str | None) -> str:
    """Return a short name of a combination of options, the same each time, fit for a file name."""
    return hashlib.sha256("\0".join(part or "" for part in parts).encode()).hexdigest()[:12]
