"""The rosters that are kept between reads."""

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.index.vocabulary import Vocabulary
from streams.adapters.lexical.columns_cache import MemoryColumnsCache
from tests.builders.memories import made


def roster_of(memories: int) -> MemoryColumns:
    rows = [
        MemoryRow(number, f"m{number}", 1, 0, 0, 1, 0.5, superseded=False, space=None) for number in range(memories)
    ]
    return MemoryColumns(rows, {1: Trait.of(made("a"))})


def kept(rosters: MemoryColumnsCache, *boundaries: int) -> list[bool]:
    return [rosters.get(boundary) is not None for boundary in boundaries]


def test_the_least_recently_read_is_given_up() -> None:
    rosters = MemoryColumnsCache(most_memories=20)
    rosters.keep(1, roster_of(10))
    rosters.keep(2, roster_of(10))
    rosters.get(1)
    rosters.keep(3, roster_of(10))
    assert kept(rosters, 1, 2, 3) == [True, False, True]


def test_the_last_one_is_kept_however_large() -> None:
    rosters = MemoryColumnsCache(most_memories=20)
    rosters.keep(1, roster_of(10))
    rosters.keep(2, roster_of(100))
    assert kept(rosters, 1, 2) == [False, True]


def test_a_dropped_one_makes_room() -> None:
    rosters = MemoryColumnsCache(most_memories=20)
    rosters.keep(1, roster_of(10))
    rosters.keep(2, roster_of(10))
    rosters.drop(1)
    rosters.drop(1)
    rosters.keep(3, roster_of(10))
    assert kept(rosters, 1, 2, 3) == [False, True, True]


def test_one_that_grows_counts_as_what_it_has_become() -> None:
    rosters = MemoryColumnsCache(most_memories=20)
    rosters.keep(1, roster_of(10))
    trait = Trait.of(made("a"))
    for number in range(10, 20):
        rosters.written(1, MemoryRow(number, f"m{number}", 1, 0, 0, 1, 0.5, superseded=False, space=None), trait)
    rosters.keep(2, roster_of(1))
    assert kept(rosters, 1, 2) == [False, True]


def test_a_vocabulary_is_kept_as_long_as_its_roster_and_its_words() -> None:
    read: list[int] = []

    def vocabulary(boundary: int) -> Vocabulary:
        read.append(boundary)
        return Vocabulary(["violin"])

    rosters = MemoryColumnsCache(most_memories=20)
    rosters.keep(1, roster_of(10))
    first = rosters.vocabulary(1, vocabulary)
    rosters.add_terms(1, ["harbour"])
    rosters.add_terms(2, ["tram"])
    assert rosters.vocabulary(1, vocabulary) is first
    assert (len(first), read) == (2, [1])
    rosters.invalidate(1)
    rosters.vocabulary(1, vocabulary)
    rosters.keep(2, roster_of(20))
    rosters.vocabulary(1, vocabulary)
    rosters.vocabulary(1, vocabulary)
    assert read == [1, 1, 1, 1], "what no roster is kept of is read each time"
