"""The cache that are kept between reads."""

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.index.vocabulary import Vocabulary
from streams.adapters.lexical.columns_cache import MemoryColumnsCache
from tests.builders.memories import made


def columns_of(memories: int) -> MemoryColumns:
    rows = [
        MemoryRow(number, f"m{number}", 1, 0, 0, 1, 0.5, superseded=False, space=None) for number in range(memories)
    ]
    return MemoryColumns(rows, {1: Trait.of(made("a"))})


def kept(cache: MemoryColumnsCache, *boundaries: int) -> list[bool]:
    return [cache.get(boundary) is not None for boundary in boundaries]


def test_the_least_recently_read_is_given_up() -> None:
    cache = MemoryColumnsCache(max_memories=20)
    cache.put(1, columns_of(10))
    cache.put(2, columns_of(10))
    cache.get(1)
    cache.put(3, columns_of(10))
    assert kept(cache, 1, 2, 3) == [True, False, True]


def test_the_last_one_is_kept_however_large() -> None:
    cache = MemoryColumnsCache(max_memories=20)
    cache.put(1, columns_of(10))
    cache.put(2, columns_of(100))
    assert kept(cache, 1, 2) == [False, True]


def test_a_dropped_one_makes_room() -> None:
    cache = MemoryColumnsCache(max_memories=20)
    cache.put(1, columns_of(10))
    cache.put(2, columns_of(10))
    cache.drop(1)
    cache.drop(1)
    cache.put(3, columns_of(10))
    assert kept(cache, 1, 2, 3) == [False, True, True]


def test_one_that_grows_counts_as_what_it_has_become() -> None:
    cache = MemoryColumnsCache(max_memories=20)
    cache.put(1, columns_of(10))
    trait = Trait.of(made("a"))
    for number in range(10, 20):
        cache.written(1, MemoryRow(number, f"m{number}", 1, 0, 0, 1, 0.5, superseded=False, space=None), trait)
    cache.put(2, columns_of(1))
    assert kept(cache, 1, 2) == [False, True]


def test_a_vocabulary_is_kept_as_long_as_its_roster_and_its_words() -> None:
    read: list[int] = []

    def vocabulary(boundary: int) -> Vocabulary:
        read.append(boundary)
        return Vocabulary(["violin"])

    cache = MemoryColumnsCache(max_memories=20)
    cache.put(1, columns_of(10))
    first = cache.vocabulary(1, vocabulary)
    cache.add_terms(1, ["harbour"])
    cache.add_terms(2, ["tram"])
    assert cache.vocabulary(1, vocabulary) is first
    assert (len(first), read) == (2, [1])
    cache.drop_vocabulary(1)
    cache.vocabulary(1, vocabulary)
    cache.put(2, columns_of(20))
    cache.vocabulary(1, vocabulary)
    cache.vocabulary(1, vocabulary)
    assert read == [1, 1, 1, 1], "what no roster is kept of is read each time"
