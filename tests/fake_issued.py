"""What commands have asked for, in a dict: what the table `issued` is in a worker."""

from collections.abc import Awaitable

from schemas.changes import Issued


class FakeIssued:
    """Implements `streams.flow.surroundings.KeptIssued` in memory."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], str] = {}

    def get(self, partition: int, boundary: str) -> Issued:
        """What the commands of a boundary have asked for."""
        value = self._kept.get((partition, boundary))
        return Issued() if value is None else Issued.model_validate_json(value)

    def put(self, partition: int, boundary: str, issued: Issued) -> None:
        """Write it over what was."""
        self._kept[partition, boundary] = issued.model_dump_json(by_alias=True)

    def unwritten(self) -> list[Awaitable[None]]:
        """Nothing: a dict is written at once."""
        return []
