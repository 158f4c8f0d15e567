from agents.rules.index.memory_columns import MemoryColumns, MemoryRow, Trait
from agents.rules.index.vocabulary import Vocabulary
from streams.adapters.lexical.columns_cache import COLUMNS_BYTES, FEATURE_BYTES, MEMORY_BYTES, MemoryColumnsCache
from tests.builders.memories import made

MAX_BYTES = 2 * (COLUMNS_BYTES + 10 * (MEMORY_BYTES + FEATURE_BYTES)) + COLUMNS_BYTES
"""Room for two boundaries of ten memories and the vocabulary of one."""


def columns_of(memories: int) -> MemoryColumns:
    rows = [
        MemoryRow(number, f"m{number}", 1, 0, 0, 1, 0.5, superseded=False, space=None) for number in range(memories)
    ]
    return MemoryColumns(rows, {1: Trait.of(made("a"))})


def are_cached(cache: MemoryColumnsCache, *boundaries: int) -> list[bool]:
    return [cache.get(boundary) is not None for boundary in boundaries]


def test_least_recently_read_columns_are_evicted() -> None:
    cache = MemoryColumnsCache(max_bytes=MAX_BYTES, at_least=1)
    cache.put(1, columns_of(10))
    cache.put(2, columns_of(10))
    cache.get(1)
    cache.put(3, columns_of(10))
    assert are_cached(cache, 1, 2, 3) == [True, False, True]


def test_last_columns_are_cached_at_any_size() -> None:
    cache = MemoryColumnsCache(max_bytes=MAX_BYTES, at_least=1)
    cache.put(1, columns_of(10))
    cache.put(2, columns_of(100))
    assert are_cached(cache, 1, 2) == [False, True]


def test_the_indexes_of_one_large_user_do_not_evict_each_other() -> None:
    cache = MemoryColumnsCache(max_bytes=MAX_BYTES)
    for index in range(1, 5):
        cache.put(index, columns_of(100))
    assert are_cached(cache, 1, 2, 3, 4) == [True, True, True, True]


def test_dropped_columns_free_their_room() -> None:
    cache = MemoryColumnsCache(max_bytes=MAX_BYTES, at_least=1)
    cache.put(1, columns_of(10))
    cache.put(2, columns_of(10))
    cache.drop(1)
    cache.drop(1)
    cache.put(3, columns_of(10))
    assert are_cached(cache, 1, 2, 3) == [False, True, True]


def test_grown_columns_count_with_their_new_size() -> None:
    cache = MemoryColumnsCache(max_bytes=MAX_BYTES, at_least=1)
    cache.put(1, columns_of(10))
    trait = Trait.of(made("a"))
    for number in range(10, 30):
        cache.written(1, MemoryRow(number, f"m{number}", 1, 0, 0, 1, 0.5, superseded=False, space=None), trait)
    cache.put(2, columns_of(20))
    assert are_cached(cache, 1, 2) == [False, True]


def test_written_rows_are_in_the_columns_that_are_read_next() -> None:
    cache, trait = MemoryColumnsCache(), Trait.of(made("a"))
    cache.put(1, columns_of(2))
    for number, space in ((2, None), (3, None), (2, "s1")):
        cache.written(1, MemoryRow(number, f"m{number}", 1, number, 0, 1, 0.5, superseded=False, space=space), trait)
    columns = cache.get(1)
    assert columns is not None
    assert columns.documents == 4
    assert columns.embedded("s1").nonzero()[0].tolist() == [2]


def test_memory_that_was_moved_in_time_is_remembered_when_its_columns_are_dropped() -> None:
    cache, trait = MemoryColumnsCache(), Trait.of(made("a"))
    cache.put(1, columns_of(2))
    cache.written(1, MemoryRow(0, "m0", 1, 7, 0, 1, 0.5, superseded=False, space=None), trait)
    cache.drop(1)
    assert [(memory_id, before) for _, memory_id, before in cache.history(1).moved] == [("m0", 0)]


def test_vocabulary_is_cached_as_long_as_its_columns() -> None:
    read: list[int] = []

    def vocabulary(boundary: int) -> Vocabulary:
        read.append(boundary)
        return Vocabulary(["violin"])

    cache = MemoryColumnsCache(max_bytes=MAX_BYTES, at_least=1)
    cache.put(1, columns_of(10))
    first = cache.vocabulary(1, vocabulary)
    cache.add_terms(1, ["harbour"])
    cache.add_terms(2, ["tram"])
    assert cache.vocabulary(1, vocabulary) is first
    assert len(first) == 2
    assert read == [1]
    cache.drop_vocabulary(1)
    cache.vocabulary(1, vocabulary)
    cache.put(2, columns_of(40))
    cache.vocabulary(1, vocabulary)
    cache.vocabulary(1, vocabulary)
    assert read == [1, 1, 1, 1], "a vocabulary without cached columns is read each time"
