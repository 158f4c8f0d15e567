"""Categories: the topics that the items of a scope are put under, declared by a deployment or by a scope's user.

A category's summary and anchors are texts and ids of memories. Whoever shows them checks first that all they rest on is
still there (`agents.rules.categories.visibility`).
"""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel

MAX_CATEGORY_NAME_CHARS = 64
"""Characters of a category's name: ours, the contract sets no limit."""

INVISIBLE_CATEGORIES = ("Cc", "Zl", "Zp", "Cs")
"""Unicode's control characters, line ends and halves of characters: a name stands in one line of a list."""


def _printable(value: str) -> str:
    if not value.strip() or len(value) > MAX_CATEGORY_NAME_CHARS:
        raise ValueError(f"a name has 1 to {MAX_CATEGORY_NAME_CHARS} characters, and one that can be seen")
    if any(unicodedata.category(character) in INVISIBLE_CATEGORIES for character in value):
        raise ValueError("control characters are not allowed")
    return value


CategoryName = Annotated[str, AfterValidator(_printable)]
"""Letters of any script, spaces and signs; compared as they are written."""

CategoryDescription = Annotated[str, Field(max_length=4096)]
"""What belongs to a category, in its user's words."""


class NamedCategories(RootModel[dict[CategoryName, CategoryDescription]]):
    """The categories of a deployment: descriptions by name."""

    model_config = ConfigDict(frozen=True)

    root: Annotated[dict[CategoryName, CategoryDescription], Field(max_length=256)] = Field(default_factory=dict)


class Category(BaseModel):
    """One category of a scope, as it was when it was last declared or refreshed.

    `anchors` are ids of its most representative members, the best first; `rests_on` names every memory that went into
    the summary or is an anchor, with the hash of its content then. `size` is how many members it had when it was last
    refreshed, `version` counts its descriptions and its summaries. `profile` is the language model profile that wrote
    the summary, None for one made of the members' own words. `declared`: by a user, in this scope.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    description: str = ""
    summary: str | None = None
    anchors: tuple[str, ...] = ()
    rests_on: dict[str, str] = Field(default_factory=dict)
    version: int = 1
    size: int = 0
    profile: str | None = None
    declared: bool = False


class Taxonomy(BaseModel):
    """All categories of one scope, by name: the value of the table `categories`. Usually there are none."""

    model_config = ConfigDict(frozen=True)

    categories: dict[str, Category] = Field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.categories)

    def find(self, name: str) -> Category | None:
        """The category of that name."""
        return self.categories.get(name)

    def all(self) -> list[Category]:
        """Every category, by name."""
        return [self.categories[name] for name in sorted(self.categories)]

    def with_categories(self, *changed: Category) -> "Taxonomy":
        """The same with these categories in place of those of their names."""
        return Taxonomy(categories={**self.categories, **{one.name: one for one in changed}})


class CategorySummary(BaseModel):
    """What a language model answers when it is asked for a category's summary."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    summary: Annotated[str, Field(max_length=2000)]
