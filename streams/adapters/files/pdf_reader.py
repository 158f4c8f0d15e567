"""Reader of PDF, page by page; a page that is a picture is read by OCR."""

import io
from typing import Any, BinaryIO

import pypdfium2
from pypdfium2 import raw

from schemas.state.files import ReadFailed
from streams.adapters.files.text_builder import TextBuilder

SCANNED_CHARS = 20
"""A page with fewer characters and a picture is scanned."""

MAX_DRAWN_SIDE = 1800
"""Pixels of a drawn page's longer side: 150 to 160 a inch of A4."""

MAX_SHOWN_SIDE = 1200
"""Pixels of the longer side of a page that a person looks at: small print can be read, a picture has some 60 kB."""

_HYPHENATED = "\ufffe\r\n"
"""PDFium's mark of a word that goes on in the next line."""


def read_pdf(file: BinaryIO, text: TextBuilder) -> tuple[int, bool]:
    """Read a document; return how many pages it has, and whether some are scanned."""
    document = _opened(file)
    any_scanned = False
    pages = len(document)
    for number in range(1, pages + 1):
        text.begin_page(number)
        try:
            page = document[number - 1]
        except pypdfium2.PdfiumError:
            continue  # a page that is missing or broken: the others are not
        shown = _text_of(page)
        pictures = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        if len(shown.strip()) < SCANNED_CHARS and next(pictures, None) is not None:
            any_scanned = True
            # Its libraries take a second to load.
            from streams.adapters.files.image_reader import printed_text  # noqa: PLC0415

            shown = f"{shown}\n{printed_text(_drawn(page, MAX_DRAWN_SIDE))}"
        text.add(shown)
        page.close()
    if not pages:
        raise ReadFailed("unreadable", "The PDF has no pages.")
    return pages, any_scanned


def draw_page(file: BinaryIO, number: int) -> bytes:
    """Return a picture of a page, counted from 1, as WebP. Raises `ReadFailed`."""
    document = _opened(file)
    if number > len(document):
        raise ReadFailed("unreadable", f"The PDF has no page {number}.")
    try:
        picture = _drawn(document[number - 1], MAX_SHOWN_SIDE)
    except pypdfium2.PdfiumError as problem:
        raise ReadFailed("unreadable", "The page is broken.") from problem
    encoded = io.BytesIO()
    picture.save(encoded, "WEBP", quality=80, method=2)
    return encoded.getvalue()


def _opened(file: BinaryIO) -> Any:
    try:
        return pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as problem:
        has_password = raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD or "password" in str(problem).lower()
        message = "The PDF has a password." if has_password else "The PDF is broken."
        raise ReadFailed("unreadable", message) from problem


def _drawn(page: Any, side: int) -> Any:
    """Return a page as a picture with this many pixels on its longer side, regardless of the page's claimed size."""
    return page.render(scale=side / max(*page.get_size(), 1.0), may_draw_forms=False).to_pil()


def _text_of(page: Any) -> str:
    try:
        shown: str = page.get_textpage().get_text_range()
    except pypdfium2.PdfiumError:
        return ""
    return shown.replace(_HYPHENATED, "").replace("\ufffe", "").replace("\r\n", "\n")
