"""Work on memories in slices: between two of them other events may be handled.

A generator that yields nothing at each place to pause, and returns its result. Whatever it changes after a pause it has
read after that pause.
"""

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")

Slices = Generator[None, None, Result]


def finish(slices: Slices[Result]) -> Result:
    """Do all slices at a stretch; return the result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result
