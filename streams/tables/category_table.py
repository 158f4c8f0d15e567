"""The table `categories`: the categories of each scope, as JSON under the scope's values (`user/project`).

What the deployment names is in every scope, also in those that the table has nothing of. Its changelog is for reading,
too.
"""

from collections.abc import Awaitable, Mapping

import faust

from agents.rules.categories.taxonomy import merge_deployment_categories
from schemas.categories import Taxonomy
from streams.runtime.awaited_table import AwaitableTable, drain_pending_writes, read_stored
from streams.tables.intention_table import scope_key
from streams.tables.parsed_values import ParsedValueCache

MAX_PARSED_TAXONOMIES = 1024
"""Taxonomies that are kept parsed: some megabytes."""


class CategoryTable:
    """Implements `agents.ports.categories.Categories`. Writes belong to the handling of an event of the partition."""

    def __init__(self, app: faust.App, deployment: Mapping[str, str]) -> None:
        """Take the app, and the descriptions of the deployment's categories by name."""
        self.table = AwaitableTable(app, name="categories", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)
        self._deployment = deployment
        self._everywhere = merge_deployment_categories(Taxonomy(), deployment)
        self._parsed = ParsedValueCache(self._read, MAX_PARSED_TAXONOMIES)

    def get(self, partition: int, scope: Mapping[str, str]) -> Taxonomy:
        """The categories of a scope. Every item asks."""
        value = read_stored(self.table, partition, scope_key(scope))
        return self._everywhere if value is None else self._parsed[value]

    def put(self, _partition: int, scope: Mapping[str, str], taxonomy: Taxonomy) -> None:
        """Write a scope's categories over what was."""
        self.table[scope_key(scope).encode()] = taxonomy.model_dump_json().encode()

    def pending_writes(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return drain_pending_writes(self.table)

    def _read(self, value: bytes) -> Taxonomy:
        return merge_deployment_categories(Taxonomy.model_validate_json(value), self._deployment)
