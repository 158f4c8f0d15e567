"""The table `intentions`, of one partition: goals, constraints, decisions and errors of each scope."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from schemas.state.intention import Intention


class Intentions(Protocol):
    """Reads intentions by scope. `agents.intentions.intend.Intend` implements it with visible entries only."""

    def get(self, scope: Mapping[str, str]) -> Intention:
        """Return the intention of a scope; an empty one for a scope without any."""


class IntentionWriter(Intentions, Protocol):
    """Reads and writes the table itself; entries may rest on memories that are gone. For `agents.intentions` alone."""

    def put(self, scope: Mapping[str, str], intention: Intention) -> None:
        """Write the intention of a scope. Belongs to the handling of an event of the partition."""

    def scopes(self, boundary: str) -> Sequence[Mapping[str, str]]:
        """Return the scopes of a boundary that have an intention."""
