"""The word index when the disk is full."""

from pathlib import Path

import pytest

from schemas.failures import Unavailable
from streams.adapters.words.file import open_file
from streams.adapters.words.reader import WordsReader
from streams.adapters.words.rosters import Rosters
from streams.adapters.words.writer import WordsWriter
from tests.made_memories import made


def test_when_the_open_transaction_is_lost_every_later_call_says_so(tmp_path: Path) -> None:
    connection = open_file(tmp_path / "words.sqlite")
    rosters = Rosters()
    writer, reader = WordsWriter(connection, rosters), WordsReader(connection, rosters)
    writer.put(made("violin", 0))
    writer.commit()
    writer.put(made("harbour", 1))
    assert reader.roster("ana").documents == 2
    [pages] = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(Unavailable) as failure:
        writer.put(made(" ".join(f"word{n}" for n in range(5000)), 2))
    assert failure.value.__cause__ is not None
    for call in (writer.commit, lambda: writer.put(made("tram", 3)), lambda: writer.set_applied("turns", 4)):
        with pytest.raises(Unavailable):
            call()
    assert reader.roster("ana").documents == 1
    connection.close()
