"""The table `categories` over a dict."""

import asyncio
from collections.abc import Awaitable, Mapping

from agents.rules.categories.taxonomy import declare_category, merge_deployment_categories
from schemas.state.categories import Taxonomy


class FakeCategories:
    """Implements `streams.flow.stores.tables.Table` for categories in memory; `writes` counts the writes.

    While `held` is set writes are not safe yet.
    """

    def __init__(self, deployment: Mapping[str, str] | None = None) -> None:
        """Take the descriptions of the deployment's categories by name."""
        self.writes = 0
        self.held = False
        self._unsafe = 0
        self.deployment = dict(deployment or {})
        self.stored: dict[tuple[int, tuple[tuple[str, str], ...]], str] = {}

    def get(self, partition: int, scope: Mapping[str, str]) -> Taxonomy:
        """Return the categories of a scope, including those of the deployment."""
        stored = self.stored.get((partition, tuple(sorted(scope.items()))), "{}")
        return merge_deployment_categories(Taxonomy.model_validate_json(stored), self.deployment)

    def put(self, partition: int, scope: Mapping[str, str], taxonomy: Taxonomy) -> None:
        """Replace the categories of a scope."""
        self.writes += 1
        self._unsafe += 1
        self.stored[partition, tuple(sorted(scope.items()))] = taxonomy.model_dump_json()

    def declare(self, name: str, description: str, scope: Mapping[str, str], partition: int = 0) -> None:
        """Declare a category."""
        self.put(partition, scope, declare_category(self.get(partition, scope), name, description))

    def pending_writes(self) -> list[Awaitable[None]]:
        """Return awaitables of the writes since the last call."""
        written, self._unsafe = self._unsafe, 0
        return [self._safe() for _ in range(written)]

    async def _safe(self) -> None:
        while self.held:
            await asyncio.sleep(0)
