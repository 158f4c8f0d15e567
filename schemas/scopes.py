"""Who a memory belongs to: the full scope of a write, the selector of a read, and the boundary key of both.

The boundary key is the Kafka key of every event of that boundary, so all of it lives in one partition.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_VALUE_LENGTH = 256
"""Characters of one scope value (CONTRACT §3)."""

ANY = "*"
"""In a selector: any value of that field. Never a value of a scope."""


def _plain(value: str) -> str:
    if value == ANY:
        raise ValueError(f"{ANY!r} is not a value; it selects any value in a retrieve request")
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in value):
        raise ValueError("control characters are not allowed")
    return value


ScopeValue = Annotated[str, Field(min_length=1, max_length=MAX_VALUE_LENGTH), AfterValidator(_plain)]


class Scope(BaseModel):
    """The full scope of a write."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    user_id: ScopeValue
    project_id: ScopeValue = "default"

    @property
    def boundary(self) -> str:
        """The canonical boundary string, such as `u1`."""
        return boundary_key([self.user_id])


class Selector(BaseModel):
    """The scopes that a read asks for: a boundary is exact; other fields are exact, a list of values, or `*`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    user_id: ScopeValue
    project_id: ScopeValue | Literal["*"] = "default"

    @property
    def boundary(self) -> str:
        """The canonical boundary string of the one boundary that is read."""
        return boundary_key([self.user_id])

    def fields(self) -> dict[str, tuple[str, ...] | None]:
        """Per scope field the values that match, None for any."""
        return {
            "user_id": (self.user_id,),
            "project_id": None if self.project_id == ANY else (self.project_id,),
        }


def boundary_key(values: Iterable[str]) -> str:
    """Join boundary values in declared order, each percent-encoded for `%` and `/` (CONTRACT §1)."""
    return "/".join(value.replace("%", "%25").replace("/", "%2F") for value in values)
