"""Imports without garbage collection: what they make lives as long as the process, and a collection finds nothing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exempt_from_collection() -> Iterator[None]:
    """Collect no garbage inside, and leave the objects that are there at its end out of every later collection.

    For imports: the third of a million objects of a large library would block an event loop for 0.25 s at each full
    collection, and collections while they are made take a sixth of the processor time of the start of a worker.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
