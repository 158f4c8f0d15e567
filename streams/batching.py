"""Cuts what is many into what is handled in one go."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most `size`, taken from `items` one at a time."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
