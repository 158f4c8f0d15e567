"""The table `categories` over a dict."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields

from agents.rules.categories.taxonomy import declare_category, merge_deployment_categories
from schemas.state.categories import Taxonomy


class FakeCategories:
    """Implements `streams.flow.stores.ScopeStore` for categories in memory; `writes` counts the writes.

    While `held` is set writes are not safe yet.
    """

    def __init__(
        self, deployment: Mapping[str, str] | None = None, boundary_fields: BoundaryFields = USER_BOUNDARY
    ) -> None:
        """Take the descriptions of the deployment's categories by name."""
        self._boundary_fields = boundary_fields
        self.writes = 0
        self.held = False
        self._unsafe = 0
        self.deployment = dict(deployment or {})
        self.stored: dict[tuple[int, tuple[tuple[str, str], ...]], str] = {}

    def get(self, partition: int, scope: Mapping[str, str]) -> Taxonomy:
        stored = self.stored.get((partition, tuple(sorted(scope.items()))), "{}")
        return merge_deployment_categories(Taxonomy.model_validate_json(stored), self.deployment)

    def put(self, partition: int, scope: Mapping[str, str], taxonomy: Taxonomy) -> None:
        """Replace the categories of a scope; an empty taxonomy leaves no row."""
        key = partition, tuple(sorted(scope.items()))
        if not len(taxonomy) and not taxonomy.deleted and key not in self.stored:
            return
        self.writes += 1
        self._unsafe += 1
        if len(taxonomy) or taxonomy.deleted:
            self.stored[key] = taxonomy.model_dump_json()
        else:
            del self.stored[key]

    def scopes(self, partition: int, boundary: str) -> Sequence[Mapping[str, str]]:
        here = [dict(scope) for where, scope in self.stored if where == partition]
        return [scope for scope in here if self._boundary_fields.key(scope) == boundary]

    def declare(self, name: str, description: str, scope: Mapping[str, str], partition: int = 0) -> None:
        self.put(partition, scope, declare_category(self.get(partition, scope), name, description))

    def pending_writes(self) -> list[Awaitable[None]]:
        written, self._unsafe = self._unsafe, 0
        return [self._safe() for _ in range(written)]

    async def _safe(self) -> None:
        while self.held:
            await asyncio.sleep(0)
