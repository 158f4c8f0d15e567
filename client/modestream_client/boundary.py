"""The boundary key: the Kafka key of all records of a user, so that they are in one partition. Pure."""

from collections.abc import Iterable


def boundary_key(values: Iterable[str]) -> str:
    """Join boundary values in declared order, each percent-encoded for `%` and `/`.

    >>> boundary_key(["a/b"])
    'a%2Fb'
    """
    return "/".join(value.replace("%", "%25").replace("/", "%2F") for value in values)
