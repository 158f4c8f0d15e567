"""The boundary: the fields of a scope that say whose memories they are, and the Kafka key made of them. Pure.

All records of a boundary have the same key, so that they are in one partition. The default boundary is `user_id`; a
deployment may declare other fields, such as `organization_id` and `user_id`.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote


def boundary_key(values: Iterable[str]) -> str:
    """Join boundary values in declared order, each percent-encoded for `%` and `/`.

    >>> boundary_key(["a/b"])
    'a%2Fb'
    """
    return "/".join(value.replace("%", "%25").replace("/", "%2F") for value in values)


class BoundaryFields(tuple[str, ...]):
    """The boundary fields of a deployment, in declared order.

    A boundary has a key, its canonical string, and a name, used in paths, keys and arguments: of a single field the
    value, such as a user id; of several the key, such as `acme/u1`. Keys and names are unique.

    >>> fields = BoundaryFields(["organization_id", "user_id"])
    >>> fields.key({"organization_id": "a/b", "user_id": "u1", "project_id": "p"}), fields.values("a%2Fb/u1")
    ('a%2Fb/u1', {'organization_id': 'a/b', 'user_id': 'u1'})
    """

    __slots__ = ()

    def key(self, scope: Mapping[str, str]) -> str:
        """Return the key of a scope's boundary. Raises KeyError for a missing field."""
        return boundary_key([scope[field] for field in self])

    def name(self, scope: Mapping[str, str]) -> str:
        """Return the name of a scope's boundary. Raises KeyError for a missing field."""
        return scope[self[0]] if len(self) == 1 else self.key(scope)

    def values(self, name: str) -> dict[str, str]:
        """Return the values of a boundary by its name. Raises ValueError for an invalid name."""
        return {self[0]: name} if len(self) == 1 else self.values_of_key(name)

    def key_of(self, name: str) -> str:
        """Return the key of a boundary by its name. Raises ValueError for an invalid name."""
        return self.key(self.values(name))

    def values_of_key(self, key: str) -> dict[str, str]:
        """Return the values of a boundary by its key. Raises ValueError for an invalid key."""
        parts = [unquote(part) for part in key.split("/")]
        if len(parts) != len(self) or not all(parts) or boundary_key(parts) != key:
            raise ValueError(
                f"{key!r} names no {self}: give the values in this order, each percent-encoded for % and /, joined by /"
            )
        return dict(zip(self, parts, strict=True))

    def others(self, scope: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a scope other than boundary fields."""
        return {field: value for field, value in scope.items() if field not in self}

    def __str__(self) -> str:
        return "/".join(self)


USER_BOUNDARY = BoundaryFields(["user_id"])
"""The default boundary: `user_id` alone."""
