"""Both readers of files: the one of processes, and the one in this process for tests of the pipeline."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.ports.files import FileReader
from schemas.state.files import ReadFailed
from streams.adapters.files.process_reader import ProcessFileReader, ReadLimits
from tests.builders.file_samples import HOSTILE, REAL
from tests.fakes.file_reader import InProcessFileReader

KINDS = ("text", "Markdown", "JSON", "a page", "a table", "PDF", "DOCX", "PPTX", "XLSX", "an e-mail")


@pytest.fixture(params=["processes", "in process"])
async def reader(request: pytest.FixtureRequest) -> AsyncIterator[FileReader]:
    made = InProcessFileReader() if request.param == "in process" else ProcessFileReader(ReadLimits(processes=1))
    yield made
    await made.close()


async def test_text_pages_and_segments_of_documents(reader: FileReader, tmp_path: Path) -> None:
    other = InProcessFileReader()
    for sample in (REAL[kind] for kind in KINDS):
        path = tmp_path / "bytes"
        path.write_bytes(sample.make())
        read, expected = [
            await each.read(path, media_type=sample.media_type, name=sample.name) for each in (reader, other)
        ]
        assert [says for says in sample.says if says not in read.text] == []
        assert read == expected


async def test_bytes_that_are_not_there_are_unavailable(reader: FileReader, tmp_path: Path) -> None:
    with pytest.raises(ReadFailed) as failure:
        await reader.read(tmp_path / "nowhere", media_type="text/plain", name="a.txt")
    assert failure.value.code == "unavailable"


async def test_broken_file_is_unreadable(reader: FileReader, tmp_path: Path) -> None:
    sample = HOSTILE["half of a DOCX"]
    (tmp_path / "bytes").write_bytes(sample.make())
    with pytest.raises(ReadFailed) as failure:
        await reader.read(tmp_path / "bytes", media_type=sample.media_type, name=sample.name)
    assert failure.value.code == "unreadable"
