"""The doors to intentions: for those who read what somebody is after, and for the one who keeps it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from schemas.intention import Intention


class Intentions(Protocol):
    """What somebody is after, by partition and scope. `agents.intentions.intend.Intend` gives what may be shown."""

    def get(self, partition: int, scope: Mapping[str, str]) -> Intention:
        """The intention of a scope; an empty one for a scope that has none."""
        ...


class StoredIntentions(Intentions, Protocol):
    """The table `intentions`. `intend` alone writes. What `get` gives here is not checked against the memories."""

    def put(self, partition: int, scope: Mapping[str, str], intention: Intention) -> None:
        """Write an intention over the one before. Only while an event of that partition is being handled."""
        ...

    def scopes(self, partition: int, boundary: str) -> Sequence[Mapping[str, str]]:
        """The scopes of a boundary that have an intention."""
        ...
