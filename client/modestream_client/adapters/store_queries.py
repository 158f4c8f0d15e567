"""Namespaces of LangGraph's store as projects, its filters and its conditions. Pure."""

import operator
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from langgraph.store.base import MatchCondition

ROOT = "store/"
"""What the projects of stores begin with, so that others are not taken for namespaces."""

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def project_of(namespace: tuple[str, ...]) -> str:
    """Return the project of a namespace.

    >>> project_of(("users", "a/b"))
    'store/users/a%2Fb'
    """
    return ROOT + "/".join(quote(part, safe=" ") for part in namespace)


def namespace_of(project_id: str) -> tuple[str, ...] | None:
    """Return the namespace of a project, None for a project that is none.

    >>> namespace_of("store/users/a%2Fb")
    ('users', 'a/b')
    """
    if not project_id.startswith(ROOT):
        return None
    return tuple(unquote(part) for part in project_id.removeprefix(ROOT).split("/"))


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """True if every field is equal, or compares as its operators say. Raises ValueError for an unknown operator."""
    return all(_compares(value.get(name), condition) for name, condition in (wanted or {}).items())


def is_match(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """True if the namespace begins or ends with the path; `*` is any part."""
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", found) for wanted, found in zip(path, part, strict=True))


def _compares(found: Any, condition: Any) -> bool:
    if not isinstance(condition, Mapping) or not any(str(name).startswith("$") for name in condition):
        return bool(found == condition)
    if unknown := set(condition) - set(COMPARISONS):
        raise ValueError(f"{sorted(unknown)} are no operators; there are {sorted(COMPARISONS)}")
    try:
        return all(COMPARISONS[name](found, wanted) for name, wanted in condition.items())
    except TypeError:
        return False
