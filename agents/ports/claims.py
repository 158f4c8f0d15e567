"""The door to the claims: which items say something of the same thing."""

from typing import Protocol

from schemas.claims import Claim


class Claims(Protocol):
    """What is said of each claim, by partition and key: the table `claims`. `remember` alone writes."""

    def get(self, partition: int, key: str) -> Claim:
        """What is said of it; nothing of one that is not known."""
        ...

    def put(self, partition: int, key: str, claim: Claim) -> None:
        """Write it over what was; an empty one leaves nothing. Only while an event of that partition is handled."""
        ...
