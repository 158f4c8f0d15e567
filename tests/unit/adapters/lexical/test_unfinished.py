"""The ids of memories that were being written: what the next process finds."""

from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.adapters.lexical.unfinished import SUFFIXES, UnfinishedIds, delete_unfinished
from tests.builders.memories import made


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "words"


def killed(index: Path, *added: str) -> None:
    """Add ids in a process that ends."""
    ids = UnfinishedIds(index)
    for one in added:
        ids.add(one)
    ids.close()


def found(index: Path) -> set[str]:
    """Return what the next process finds."""
    ids = UnfinishedIds(index)
    ids.close()
    assert len(set(ids.interrupted)) == len(ids.interrupted)
    return set(ids.interrupted)


def test_added_ids_are_found_until_they_are_deleted(index: Path) -> None:
    assert found(index) == set()
    killed(index, "b", "a", "b")
    assert found(index) == {"b", "a"}
    delete_unfinished(index)
    assert found(index) == set()


def test_id_is_found_until_the_second_rotation(index: Path) -> None:
    ids = UnfinishedIds(index)
    ids.add("a")
    ids.rotate()
    ids.add("b")
    assert found(index) == {"a", "b"}
    ids.rotate()
    assert found(index) == {"b"}
    ids.add("b")
    ids.rotate()
    assert found(index) == {"b"}
    ids.rotate()
    assert found(index) == {"b"}, "without new ids nothing has to be emptied"
    ids.close()


def test_ids_that_were_found_are_kept_until_they_are_cleared(index: Path) -> None:
    killed(index, "a")
    ids = UnfinishedIds(index)
    for one in ("b", "c", "d"):
        ids.add(one)
        ids.rotate()
    assert found(index) == {"a", "b", "c", "d"}
    ids.clear()
    for one in ("e", "f"):
        ids.add(one)
        ids.rotate()
    assert found(index) <= {"e", "f"}
    ids.close()


def test_id_that_was_cut_off_does_not_damage_the_next(index: Path) -> None:
    killed(index, "a")
    index.with_name(index.name + SUFFIXES[0]).write_text("\na\nb-cut-o")
    killed(index, "c")
    assert {"a", "c"} <= found(index)


def test_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        UnfinishedIds(tmp_path / "nowhere" / "words")


def test_index_has_the_ids_of_the_words_that_it_lost(tmp_path: Path) -> None:
    index = SqliteLexicalIndex(tmp_path)
    index.open(0)
    lost, removed = (made(text, number) for number, text in enumerate(("cello", "drum")))
    index.put(0, LexicalDocument(lost))
    index.remove(0, removed.memory_id)
    index.commit(0)
    index.open(0)
    assert set(index.interrupted(0)) == {lost.memory_id, removed.memory_id}
    index.drop(0)
    index.open(0)
    assert list(index.interrupted(0)) == []
    for memory in (removed, lost):
        index.put(0, LexicalDocument(memory))
        index.rotate_unfinished(0)
    index.open(0)
    assert list(index.interrupted(0)) == [lost.memory_id]
    index.clear_interrupted(0)
    assert list(index.interrupted(0)) == []
    index.close()
