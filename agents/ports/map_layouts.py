"""Kept maps, and the thread in which they are laid out.

Maps are derived: one that is lost or damaged is made again, perhaps with other places.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from agents.rules.maps.layout import MapLayout, StopCondition

Result = TypeVar("Result")


class MapLayouts(Protocol):
    """Keeps maps by boundary and collection, beyond the life of the process. No call fails: it may lose maps."""

    def collections(self, boundary: str) -> Sequence[str]:
        """Return the collections of which a boundary has a map; cheap."""

    async def load(self, boundary: str, collection: str) -> MapLayout | None:
        """Return the map; None if there is none that can be read."""

    async def save(self, boundary: str, collection: str, layout: MapLayout) -> None:
        """Replace the map; one without points is removed."""


class LayoutThreads(Protocol):
    """Runs the arithmetic of maps off the event loop."""

    def turn_soon(self) -> AbstractAsyncContextManager[None]:
        """Wait for a turn at `run`: one at a time holds the vectors of its map."""

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run work of at most a second, which a request waits for."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for a turn at `run_long`, likewise."""

    async def run_long(self, work: Callable[[StopCondition], Result]) -> Result:
        """Run work of any length at low priority. It is told to stop when the process ends."""
