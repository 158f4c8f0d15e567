"""A store with its partition bound: what agents see of tables and lexical index."""

from functools import partial
from typing import Any


def at_partition(store: object, partition: int) -> Any:
    """Return a view of a store without the first argument of its methods, as the agents' ports have them."""
    return _PartitionView(store, partition)


class _PartitionView:
    """Binds a method at its first use and keeps it as an attribute: a call costs as much as one of the store itself."""

    def __init__(self, store: object, partition: int) -> None:
        self._store, self._partition = store, partition

    def __getattr__(self, name: str) -> Any:
        bound = partial(getattr(self._store, name), self._partition)
        setattr(self, name, bound)
        return bound
