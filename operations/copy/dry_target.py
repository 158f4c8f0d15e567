"""A target that takes everything and writes nothing, to count what would be copied."""

from collections.abc import Collection, Mapping

from operations.copy.logs import CopiedRecord, Entry, Positions
from schemas.messages.records import Record


class DryTarget:
    """Implements `LogTarget`."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    async def ends(self) -> Positions:
        """Return no place: nothing is written."""
        return {}

    async def copied_since(self, _since: Positions) -> frozenset[CopiedRecord]:
        """Return none."""
        return frozenset()

    async def write(self, entry: Entry) -> int:
        """Take a record."""
        return entry.origin[2]

    async def carry_out(self, _entry: Entry) -> str | None:
        """Take a command or trigger."""
        return None

    async def wait_applied(self, scope: Mapping[str, str], offset: int) -> None:
        """Return at once."""

    async def wait_embedded(self, scope: Mapping[str, str]) -> None:
        """Return at once."""

    async def keep_distilled(self, _scope: Mapping[str, str], _kept: Collection[str]) -> int:
        """Forget nothing."""
        return 0

    async def wait_settled(self, *, turns: bool = False) -> None:
        """Return at once."""

    async def revision_keys(self) -> frozenset[bytes | None]:
        """Return none."""
        return frozenset()

    async def set_revision(self, _revision: Record) -> None:
        """Take a revision."""
