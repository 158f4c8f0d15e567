"""The door to the categories of each scope: the table `categories`, with what the deployment names in every scope."""

from collections.abc import Mapping
from typing import Protocol

from schemas.categories import Taxonomy


class Categories(Protocol):
    """The categories by scope. `categorize` alone writes."""

    def get(self, partition: int, scope: Mapping[str, str]) -> Taxonomy:
        """The categories of a scope, those of the deployment among them; empty where there are none. Cheap.

        A summary may rest on memories that are gone since: `agents.rules.categories.visibility.visible_category` before it is
        shown.
        """
        ...

    def put(self, partition: int, scope: Mapping[str, str], taxonomy: Taxonomy) -> None:
        """Write a scope's categories over what was. Only while an event of that partition is being handled."""
        ...
