"""Categories: topics that the items of a scope are assigned to, declared by the deployment or by a user.

A category's summary and anchors derive from memories and must be filtered by `agents.rules.categories.taxonomy`
before they are shown.
"""

from collections.abc import Container
from typing import Annotated, Self

from modestream_client.vocabulary import CategoryDescription, CategoryName
from pydantic import BaseModel, Field, RootModel


class NamedCategories(RootModel[dict[CategoryName, CategoryDescription]], frozen=True):
    """The categories of a deployment: descriptions by name."""

    root: Annotated[dict[CategoryName, CategoryDescription], Field(max_length=256)] = Field(default_factory=dict)


class Category(BaseModel, frozen=True):
    """One category of a scope, as of its last declaration or refresh.

    `anchors` are the ids of its most representative members, best first. `rests_on` holds the ids and content hashes of
    all memories behind the summary and the anchors. `size` is the number of members at the last refresh; `version`
    counts names, descriptions and summaries. `profile` is the language model profile that wrote the summary, None for
    an extractive one. `declared`: by a user, in this scope. `formerly` holds earlier names, the latest last. `since` is
    the offset of the command that declared it, described it again or renamed it; -1 if that is unknown.
    """

    name: str
    description: str = ""
    summary: str | None = None
    anchors: tuple[str, ...] = ()
    rests_on: dict[str, str] = Field(default_factory=dict)
    version: int = 1
    size: int = 0
    profile: str | None = None
    declared: bool = False
    formerly: tuple[str, ...] = ()
    since: int = -1

    def without_former(self, names: Container[str]) -> Self:
        if not any(name in names for name in self.formerly):
            return self
        return self.model_copy(update={"formerly": tuple(name for name in self.formerly if name not in names)})


MAX_DELETED_NAMES = 1024
"""Deleted names that a scope remembers, the latest: about 60 kB of a table's record."""


class Taxonomy(BaseModel, frozen=True):
    """All categories of one scope, by name: the value of the table `categories`.

    `deleted` holds deleted and renamed names, with the offset of the command: a redelivered command is answered again,
    and a category of the deployment does not come back.
    """

    categories: dict[str, Category] = Field(default_factory=dict)
    deleted: dict[str, int] = Field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.categories)

    def find(self, name: str) -> Category | None:
        return self.categories.get(name)

    def find_current(self, name: str) -> Category | None:
        renamed = (category for category in self.categories.values() if name in category.formerly)
        return self.find(name) or next(renamed, None)

    def all(self) -> list[Category]:
        """Return all categories, sorted by name."""
        return [self.categories[name] for name in sorted(self.categories)]

    def with_categories(self, *changed: Category) -> Self:
        """Add these categories, replacing those of the same names; other categories lose these as former names."""
        added = {category.name: category for category in changed}
        deleted = {name: offset for name, offset in self.deleted.items() if name not in added}
        others = {name: category.without_former(added) for name, category in self.categories.items()}
        return self.model_copy(update={"categories": {**others, **added}, "deleted": deleted})

    def without(self, name: str, offset: int) -> Self:
        """Remove the category of this name; `offset` is the command's."""
        categories = {other: category for other, category in self.categories.items() if other != name}
        deleted = {other: at for other, at in self.deleted.items() if other != name} | {name: offset}
        latest = dict(list(deleted.items())[-MAX_DELETED_NAMES:])
        return self.model_copy(update={"categories": categories, "deleted": latest})


class CategorySummary(BaseModel, frozen=True, extra="ignore"):
    """A language model's answer to a request for a category's summary."""

    summary: Annotated[str, Field(max_length=2000)]
