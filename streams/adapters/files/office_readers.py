"""Readers of DOCX, PPTX and XLSX.

Documents and slides are read as streams of XML: no tree of a whole part, no styles, no macros, and text wherever it
stands: in tables, boxes, content controls, groups. No part refers to anything outside: document types are refused.
"""

import datetime as dt
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError  # noqa: N812 - it is an exception

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, iterparse

from schemas.state.files import ReadFailed
from streams.adapters.files.text_builder import TextBuilder
from streams.adapters.files.text_readers import add_rows

MAX_XML_BYTES = 160 << 20
"""Unpacked XML of one document: 2,000,000 characters with the markup of an editor are a fifth of it."""

MAX_PARTS = 20_000
"""Parts of a file, and slides that it lists."""

MAX_CELLS = 20_000_000
"""Cells of a sheet, the empty ones before the last of each row too."""

MAX_PICTURES, MAX_PICTURE_BYTES = 50, 32 << 20
"""Pictures of one document that are read, a few seconds each, and the unpacked bytes of one."""

EVENTS_A_NOTE = 50_000

BROKEN = (
    BadZipFile, ZlibError, ParseError, DefusedXmlException, EOFError, KeyError, IndexError, ValueError, TypeError,
    AttributeError, RuntimeError,
)  # fmt: skip
"""Exceptions of malformed documents; a part with a password raises RuntimeError."""

_HEADING = re.compile(r"(?i)(?:heading|title|berschrift|titre|ttulo|kop)\d?$")
_SLIDE_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


class Office:
    """An opened Office file whose XML is bounded."""

    def __init__(self, file: BinaryIO, text: TextBuilder) -> None:
        """Raises `ReadFailed` for one that would unpack to too much."""
        self._text = text
        self._archive = ZipFile(file)
        parts = self._archive.infolist()
        xml = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels", ".vml")))
        if xml > MAX_XML_BYTES or len(parts) > MAX_PARTS:
            raise ReadFailed("too_large", f"The document unpacks to more than {MAX_XML_BYTES >> 20} MB of XML.")
        self.names = set(self._archive.namelist())
        self.has_printed = False
        """True if something is printed on the pictures that were read."""
        self._pictures: set[str] = set()

    def elements(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield starts and ends of the elements of a part. An ended element is dropped: it has nothing but its text."""
        with self._archive.open(name) as part:
            parents: list[Any] = []
            events = iterparse(part, events=("start", "end"), forbid_dtd=True)
            for number, (event, element) in enumerate(events, 1):
                if number % EVENTS_A_NOTE == 0:
                    self._text.note_progress()
                if event == "start":
                    parents.append(element)
                    yield event, element
                else:
                    parents.pop()
                    yield event, element
                    if parents:
                        parents[-1].remove(element)

    def targets(self, name: str) -> dict[str, str]:
        """Return the parts that a part refers to, by the ids of its relationships."""
        folder, _, base = name.rpartition("/")
        relations = f"{folder}/_rels/{base}.rels"
        return {
            element.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, element.get("Target", ""))).lstrip(
                "/"
            )
            for event, element in (self.elements(relations) if relations in self.names else ())
            if event == "start" and element.get("TargetMode") != "External"
        }

    def picture(self, target: str | None) -> str:
        """Return what is printed on a picture; nothing the second time, and for one that can't be read."""
        if target not in self.names or target in self._pictures or len(self._pictures) == MAX_PICTURES:
            return ""
        self._pictures.add(target)
        self._text.note_progress()
        # Its libraries take a second to load.
        from streams.adapters.files.image_reader import text_of_picture  # noqa: PLC0415

        try:
            with self._archive.open(target) as part:
                content = part.read(MAX_PICTURE_BYTES + 1)
        except (BadZipFile, ZlibError, EOFError, RuntimeError):
            return ""
        printed = text_of_picture(content) if len(content) <= MAX_PICTURE_BYTES else ""
        self.has_printed |= bool(printed)
        return printed


def read_office(kind: str, file: BinaryIO, text: TextBuilder) -> tuple[str, int | None]:
    """Read a `docx`, `pptx` or `xlsx`; return the reader's name and the slides or sheets. Raises `ReadFailed`."""
    slides, has_printed = None, False
    try:
        if kind == "xlsx":
            return kind, read_xlsx(file, text)
        if kind == "docx":
            has_printed = read_docx(file, text)
        else:
            slides, has_printed = read_pptx(file, text)
    except BROKEN as problem:
        raise ReadFailed("unreadable", "The document is broken, has a password, or refers to others.") from problem
    return f"{kind}+ocr" if has_printed else kind, slides


def read_docx(file: BinaryIO, text: TextBuilder) -> bool:
    """Read a document: its text, then foot and end notes; return whether something is printed on its pictures."""
    office = Office(file, text)
    _add_word_part(office, "word/document.xml", text)
    for notes in ("word/footnotes.xml", "word/endnotes.xml"):
        if notes in office.names:
            _add_word_part(office, notes, text)
    return office.has_printed


def _add_word_part(office: Office, part: str, text: TextBuilder) -> None:
    targets = office.targets(part)
    reader = WordReader(text, lambda shown: office.picture(targets.get(shown)))
    for event, element in office.elements(part):
        tag = element.tag.rpartition("}")[2]
        if tag == "Fallback":  # the same as what it stands in for
            reader.fallbacks += 1 if event == "start" else -1
        elif not reader.fallbacks:
            (reader.begin if event == "start" else reader.end)(tag, element)


class WordReader:
    """Adds paragraphs as they end, each with its pictures after it.

    Those of a table are kept until its row ends, and its rows until it ends.
    """

    def __init__(self, text: TextBuilder, read_picture: Callable[[str], str]) -> None:
        """`read_picture` takes the id of a relationship."""
        self.fallbacks = 0
        self._text = text
        self._read_picture = read_picture
        self._pictures: list[str] = []
        self._is_heading = False
        self._written: list[str] = []
        self._tables = 0
        self._cells: list[list[str]] = []
        self._rows: list[list[str]] = []

    def begin(self, tag: str, element: Any) -> None:
        if tag == "tbl":
            self._tables += 1
        elif tag == "tc" and self._tables == 1:
            self._cells.append([])
        elif tag == "pStyle":
            style = next((value for name, value in element.attrib.items() if name.endswith("}val")), "")
            self._is_heading = bool(_HEADING.search(style))
        elif picture := _picture_id(tag, element):
            self._pictures.append(picture)

    def end(self, tag: str, element: Any) -> None:
        if tag == "t":
            self._written.append(element.text or "")
        elif tag in {"tab", "br", "cr"}:
            self._written.append("\n" if tag == "br" else " ")
        elif tag == "p":
            paragraph, self._written = "".join(self._written), []
            if self._cells:
                self._cells[-1].append(paragraph)
            else:
                self._text.add(paragraph, begins_section=self._is_heading)
            self._is_heading = False
            pictures, self._pictures = self._pictures, []
            for printed in filter(None, map(self._read_picture, pictures)):
                if self._cells:
                    self._cells[-1].append(printed)
                else:
                    self._text.add(printed)
        elif tag == "tr" and self._tables == 1:
            self._rows.append([" ".join(" ".join(cell).split()) for cell in self._cells])
            self._cells = []
        elif tag == "tbl":
            self._tables -= 1
            if not self._tables:
                add_rows(self._rows, self._text)
                self._rows = []


def _picture_id(tag: str, element: Any) -> str | None:
    """Return the id of the picture that an element shows, None for any other element."""
    attribute = {"blip": "}embed", "imagedata": "}id"}.get(tag)
    if attribute is None:
        return None
    return next((value for name, value in element.attrib.items() if name.endswith(attribute)), None)


def read_pptx(file: BinaryIO, text: TextBuilder) -> tuple[int, bool]:
    """Read slides in their order, each with its pictures and notes.

    Return how many there are, and whether something is printed on their pictures.
    """
    office = Office(file, text)
    main = "ppt/presentation.xml"
    targets = office.targets(main)
    ids = [
        next((value for name, value in element.attrib.items() if name.endswith("}id")), "")
        for event, element in office.elements(main)
        if event == "start" and element.tag.endswith("}sldId")
    ]
    if len(ids) > MAX_PARTS:
        raise ReadFailed("too_large", f"The presentation lists more than {MAX_PARTS:,} slides.")
    # Each once: a few bytes may list a large slide thousands of times.
    slides = list(dict.fromkeys(targets[each] for each in ids if targets.get(each) in office.names))
    for number, slide in enumerate(slides, 1):
        text.begin_page(number)
        targets = office.targets(slide)
        for picture in _add_slide(office, slide, text):
            text.add(office.picture(targets.get(picture)))
        for notes in dict.fromkeys(targets.values()):
            if "/notesSlides/" in f"/{notes}" and notes in office.names:
                _add_slide(office, notes, text)
    return len(slides), office.has_printed


def _add_slide(office: Office, part: str, text: TextBuilder) -> list[str]:
    """Add a slide's lines as one block, a table's row as one line; return the ids of its pictures."""
    lines: list[str] = []
    pictures: list[str] = []
    written: list[str] = []
    cells: list[str] | None = None
    is_number = False
    for event, element in office.elements(part):
        if not element.tag.startswith(_SLIDE_TEXT):
            continue
        tag = element.tag.removeprefix(_SLIDE_TEXT)
        if event == "start":
            cells = [] if tag == "tr" else cells
            is_number = is_number or (tag == "fld" and element.get("type") == "slidenum")
            pictures += filter(None, (_picture_id(tag, element),))
        elif tag == "t" and not is_number:
            written.append(element.text or "")
        elif tag == "fld":
            is_number = False
        elif tag == "br":
            written.append("\n")
        elif tag == "p":
            (lines if cells is None else cells).append("".join(written))
            written = []
        elif tag == "tr" and cells is not None:
            lines.append(" | ".join(filter(None, cells)))
            cells = None
    text.add("\n".join(line.strip() for line in lines if line.strip()))
    return pictures


def read_xlsx(file: BinaryIO, text: TextBuilder) -> int:
    """Read sheets, each row with its header and the values that formulas had; return how many there are."""
    import openpyxl  # noqa: PLC0415 - takes half a second

    Office(file, text)
    book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    # Each once, as slides are: nothing public tells two apart.
    sheets = {sheet._worksheet_path: sheet for sheet in visible}  # noqa: SLF001
    for number, sheet in enumerate(sheets.values(), 1):
        text.begin_page(number)
        text.add(sheet.title, begins_section=True)
        # Its dimensions are what the file says: rows end with their last cell.
        sheet.reset_dimensions()
        add_rows(([_shown(value) for value in row] for row in _rows(sheet, text)), text)
    return len(sheets)


def _rows(sheet: Any, text: TextBuilder) -> Iterator[tuple[Any, ...]]:
    cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        cells += len(row)
        if cells > MAX_CELLS:
            raise ReadFailed("too_large", f"A sheet has more than {MAX_CELLS:,} cells.")
        if number % 500 == 0:
            text.note_progress()
        yield row


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return " ".join(str(value).split())
