"""Imports that no garbage collection visits."""

import gc
from collections.abc import Iterator

import pytest

from streams.importing import exempt_from_collection


@pytest.fixture(autouse=True)
def _collected_again() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


def test_nothing_is_collected_inside_and_what_was_made_is_left_out_later() -> None:
    with exempt_from_collection():
        assert not gc.isenabled()
        made: list[object] = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert not {id(created) for created in made} & {id(created) for created in gc.get_objects()}


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    with exempt_from_collection():
        pass
    assert not gc.isenabled()


def test_failed_import_leaves_collection_on() -> None:
    with pytest.raises(ImportError), exempt_from_collection():
        raise ImportError
    assert gc.isenabled()
