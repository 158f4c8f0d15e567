"""Files of all kinds, read in a process of its own, as a worker reads them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from schemas.state.files import FileText, ReadFailed
from streams.adapters.files.process_reader import ProcessFileReader, ReadLimits
from streams.adapters.files.text_builder import MAX_SEGMENT_CHARS
from tests.builders.file_samples import HOSTILE, REAL, Sample

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reader() -> AsyncIterator[ProcessFileReader]:
    opened = ProcessFileReader(ReadLimits(processes=1))
    yield opened
    await opened.close()


async def outcome(reader: ProcessFileReader, sample: Sample, folder: Path) -> FileText | str:
    path = folder / "bytes"
    path.write_bytes(sample.make())
    try:
        return await reader.read(path, media_type=sample.media_type, name=sample.name)
    except ReadFailed as failure:
        return failure.code


@pytest.mark.parametrize("kind", REAL)
async def test_file_is_text_with_places(reader: ProcessFileReader, kind: str, tmp_path: Path) -> None:
    sample = REAL[kind]
    read = await outcome(reader, sample, tmp_path)
    assert isinstance(read, FileText), read
    assert [says for says in sample.says if says not in read.text] == []
    assert read.pages == sample.pages
    check_segments(read)


def check_segments(read: FileText) -> None:
    """Segments are in order, do not overlap, are short, and leave out white space alone."""
    end, left_out = 0, ""
    for segment in read.segments:
        assert end <= segment.start < segment.end <= len(read.text)
        assert segment.end - segment.start <= MAX_SEGMENT_CHARS
        left_out += read.text[end : segment.start]
        end = segment.end
    assert not (left_out + read.text[end:]).strip()


@pytest.mark.parametrize("what", HOSTILE)
async def test_hostile_file_costs_only_itself(reader: ProcessFileReader, what: str, tmp_path: Path) -> None:
    sample = HOSTILE[what]
    read = await outcome(reader, sample, tmp_path)
    if isinstance(read, FileText):
        assert "ready" in sample.fails or not sample.fails, read.text[:200]
        assert [says for says in sample.says if says not in read.text] == []
        assert "root:" not in read.text
        check_segments(read)
    else:
        assert read in sample.fails
