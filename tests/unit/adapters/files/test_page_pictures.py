"""Pages of a PDF as pictures, drawn in the process that may do nothing but read."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from schemas.state.files import ReadFailed
from streams.adapters.files.pdf_reader import MAX_SHOWN_SIDE
from streams.adapters.files.process_reader import ProcessFileReader, ReadLimits
from tests.builders.files import encrypted_pdf, pdf, shown


@pytest.fixture
async def reader() -> AsyncIterator[ProcessFileReader]:
    opened = ProcessFileReader(ReadLimits(processes=1, seconds=20))
    yield opened
    await opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "bytes"
    path.write_bytes(pdf([shown("The first page."), shown("The second page.")]))
    return path


async def test_a_page_is_a_picture(reader: ProcessFileReader, path: Path) -> None:
    picture = Image.open(io.BytesIO(await reader.draw(path, 2)))
    assert picture.format == "WEBP"
    assert max(picture.size) == MAX_SHOWN_SIDE
    assert picture.convert("L").getextrema() != (255, 255)


async def test_a_page_of_a_square_mile_is_no_larger(reader: ProcessFileReader, tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(pdf([shown("Small.")], size="1000000 1000000"))
    assert max(Image.open(io.BytesIO(await reader.draw(path, 1))).size) == MAX_SHOWN_SIDE


@pytest.mark.parametrize(
    ("content", "page", "error"),
    [
        (pdf([shown("One.")]), 2, "The PDF has no page 2."),
        (b"no PDF", 1, "The PDF is broken."),
        (encrypted_pdf(), 1, "The PDF has a password."),
    ],
)
async def test_what_can_not_be_drawn_says_why_and_costs_no_process(
    reader: ProcessFileReader, path: Path, tmp_path: Path, content: bytes, page: int, error: str
) -> None:
    refused = tmp_path / "refused"
    refused.write_bytes(content)
    with pytest.raises(ReadFailed, match=error):
        await reader.draw(refused, page)
    assert await reader.draw(path, 1)
