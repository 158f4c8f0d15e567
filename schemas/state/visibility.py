"""Whether searches find a memory, and whether a language model may read it."""

from typing import Self

from pydantic import BaseModel, Field


class Visibility(BaseModel, frozen=True):
    """Two hard filters.

    Not `searchable`: found by no search, in no context, and without a vector. `private`: no language model reads it.
    """

    searchable: bool = Field(default=True, exclude_if=lambda searchable: searchable)
    private: bool = Field(default=False, exclude_if=lambda private: not private)

    def limited_by(self, other: "Visibility") -> "Visibility":
        """Return what both allow."""
        if other in (EVERYWHERE, self):
            return self
        return Visibility(searchable=self.searchable and other.searchable, private=self.private or other.private)

    def changed(self, *, searchable: bool | None, private: bool | None) -> Self:
        """Return it with the given values; None keeps one."""
        given = {"searchable": searchable, "private": private}
        return self.model_copy(update={name: value for name, value in given.items() if value is not None})


EVERYWHERE = Visibility()
"""Of a memory without a filter."""


def is_everywhere(visibility: Visibility) -> bool:
    """True if nothing is filtered."""
    return visibility is EVERYWHERE or (visibility.searchable and not visibility.private)
