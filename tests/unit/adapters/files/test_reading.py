"""Files of all kinds, read in a process of its own, as a worker reads them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from schemas.state.files import FileText, ReadFailed
from streams.adapters.files.process_reader import ProcessFileReader, ReadLimits
from streams.adapters.files.text_builder import MAX_SEGMENT_CHARS
from tests.builders.file_samples import HOSTILE, REAL, SAME_SLIDE, Sample
from tests.builders.files import KEY, A, P, R, archive, lines, relations, sheet_rows, xlsx

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


SLIDE_SHOWN_OFTEN = archive(
    {
        "ppt/presentation.xml": f"<p:presentation {P} {R}>{SAME_SLIDE * 5000}</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(["slides/slide1.xml"]),
        "ppt/slides/slide1.xml": f"<p:sld {A} {P}>{lines(KEY)}</p:sld>",
    }
)
NOTES_SHOWN_OFTEN = archive(
    {
        "ppt/presentation.xml": f"<p:presentation {P} {R}>{SAME_SLIDE}</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(["slides/slide1.xml"]),
        "ppt/slides/slide1.xml": f"<p:sld {A} {P}></p:sld>",
        "ppt/slides/_rels/slide1.xml.rels": relations(["../notesSlides/n1.xml"] * 5000),
        "ppt/notesSlides/n1.xml": f"<p:notes {A} {P}>{lines(KEY)}</p:notes>",
    }
)


SHEET_SHOWN_OFTEN = xlsx({str(number): sheet_rows([(KEY,)]) for number in range(500)}, same=True)


@pytest.mark.parametrize("content", [SLIDE_SHOWN_OFTEN, NOTES_SHOWN_OFTEN, SHEET_SHOWN_OFTEN])
async def test_part_that_is_listed_often_is_read_once(
    reader: ProcessFileReader, tmp_path: Path, content: bytes
) -> None:
    sample = Sample(lambda: content, "a", "application/octet-stream")
    read = await outcome(reader, sample, tmp_path)
    assert isinstance(read, FileText), read
    assert read.text.count(KEY) == 1


@pytest.mark.parametrize(
    ("content", "name", "error"),
    [
        (archive({}), "a.zip", "There is no reader of archives; upload the files in it."),
        (bytes(range(256)) * 9, "a.PSD", "There is no reader of .psd files."),
        (bytes(range(256)) * 9, "a", "There is no reader of this type."),
    ],
)
async def test_missing_reader_is_named_by_what_the_file_is(
    reader: ProcessFileReader, tmp_path: Path, content: bytes, name: str, error: str
) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(content)
    with pytest.raises(ReadFailed) as failure:
        await reader.read(path, media_type="application/octet-stream", name=name)
    assert str(failure.value) == error


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
