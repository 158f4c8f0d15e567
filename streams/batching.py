"""Batches of an iterable."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size`, read lazily from `items`."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
