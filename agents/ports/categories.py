"""The table `categories`, of one partition: the taxonomy of each scope, deployment-wide categories included."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from schemas.state.categories import Taxonomy


class Categories(Protocol):
    """Reads the categories by scope."""

    def get(self, scope: Mapping[str, str]) -> Taxonomy:
        """Return the taxonomy of a scope; cheap.

        A summary may rest on memories that are gone: pass it through `visible_category` before it is shown.
        """


class CategoryWriter(Categories, Protocol):
    """Reads and writes the categories. For `agents.categories` alone."""

    def put(self, scope: Mapping[str, str], taxonomy: Taxonomy) -> None:
        """Write the taxonomy of a scope; an empty one leaves no row. Belongs to the handling of a partition's event."""

    def scopes(self, boundary: str) -> Sequence[Mapping[str, str]]:
        """Return the scopes of a boundary that have a row."""
