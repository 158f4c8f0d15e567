from collections.abc import Iterator
from pathlib import Path

from agents.rules.index.lexical_document import LexicalDocument
from streams.adapters.lexical.building import LexicalBuilder
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.embed import remembered

PARTITION = 2
WORDS = ("water", "engine", "deadline")


async def test_built_index_answers_as_one_that_was_written_here(tmp_path: Path) -> None:
    texts = [f"{WORDS[number % 3]} {number} is in the {WORDS[number % 2]}" for number in range(60)]
    memories = [remembered(text, text) for text in texts]
    here, apart = SqliteLexicalIndex(tmp_path / "here"), SqliteLexicalIndex(tmp_path / "apart")
    here.open(PARTITION)
    for memory in memories:
        here.put(PARTITION, LexicalDocument(memory))
    rows = (memory.model_dump_json().encode() for memory in memories)
    assert await LexicalBuilder(tmp_path / "apart")(PARTITION, rows)
    apart.open(PARTITION)
    for term in WORDS:
        [found], [expected] = (each.postings(PARTITION, memories[0].boundary, [term]) for each in (apart, here))
        assert len(expected.numbers)
        assert found.numbers.tolist() == expected.numbers.tolist()
    assert apart.memory_columns(PARTITION, memories[0].boundary).documents == len(memories)
    here.close()
    apart.close()


async def test_index_whose_process_fails_is_not_complete(tmp_path: Path) -> None:
    def rows() -> Iterator[bytes]:
        yield b"no record"
        while True:
            yield b"x" * 100_000

    words = SqliteLexicalIndex(tmp_path)
    words.databases.at(PARTITION).set_offset("changelog", 1)
    words.drop(PARTITION)
    assert not await LexicalBuilder(tmp_path)(PARTITION, rows())
    words.open(PARTITION)
    assert not words.is_complete(PARTITION)
    words.close()
