"""Read a file of any kind, and the attachments of an e-mail; tell what a file is. Runs in a process of its own.

The content decides where it says what it is, else the media type, else the name. A type that the content contradicts is
ignored: a page called a PDF is read as a page. Raises `ReadFailed` for what no reader reads, and for content that is
not what the type says and nothing else either.
"""

import email
import io
import re
from contextlib import suppress
from email.message import EmailMessage
from email.policy import default as modern
from typing import Any, BinaryIO, Literal
from zipfile import BadZipFile, ZipFile

from schemas.state.files import FileText, ReadFailed
from streams.adapters.files.text_builder import TextBuilder

Kind = Literal[
    "text", "markdown", "html", "csv", "json", "e-mail", "pdf", "docx", "pptx", "xlsx", "image", "sound", "empty"
]

TEXT_KINDS: frozenset[Kind] = frozenset({"markdown", "csv", "json", "e-mail", "html"})
"""Texts of a structure."""

HEAD_BYTES = 8192

_OFFICE = "application/vnd.openxmlformats-officedocument."
_MACROS = "application/vnd.ms-"
MEDIA_TYPES: dict[str, Kind] = {
    "text/plain": "text", "text/markdown": "markdown", "text/x-markdown": "markdown", "text/html": "html",
    "application/xhtml+xml": "html", "text/csv": "csv", "application/csv": "csv", "text/tab-separated-values": "csv",
    "application/json": "json", "application/x-ndjson": "json", "application/jsonl": "json", "message/rfc822": "e-mail",
    "application/pdf": "pdf", f"{_OFFICE}wordprocessingml.document": "docx",
    f"{_OFFICE}presentationml.presentation": "pptx", f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    f"{_MACROS}word.document.macroenabled.12": "docx", f"{_MACROS}powerpoint.presentation.macroenabled.12": "pptx",
    f"{_MACROS}excel.sheet.macroenabled.12": "xlsx",
}  # fmt: skip

MAJOR_TYPES: dict[str, Kind] = {"image": "image", "audio": "sound", "video": "sound"}

ENDINGS: dict[str, Kind] = {
    "txt": "text", "log": "text", "md": "markdown", "markdown": "markdown", "htm": "html", "html": "html",
    "xhtml": "html", "csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "eml": "e-mail",
    "pdf": "pdf", "docx": "docx", "docm": "docx", "pptx": "pptx", "pptm": "pptx", "xlsx": "xlsx", "xlsm": "xlsx",
    "png": "image", "jpg": "image", "jpeg": "image", "gif": "image", "bmp": "image", "tif": "image", "tiff": "image",
    "webp": "image", "wav": "sound", "mp3": "sound", "m4a": "sound", "ogg": "sound", "oga": "sound", "opus": "sound",
    "flac": "sound", "aac": "sound", "mp4": "sound", "m4v": "sound", "mov": "sound", "webm": "sound", "mkv": "sound",
    "avi": "sound", "mpeg": "sound",
}  # fmt: skip

GENERIC_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "text/plain"})
"""Types that leave it to the name."""

_SIGNATURES: tuple[tuple[re.Pattern[bytes], Kind], ...] = (
    (re.compile(rb"(?s)\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|BM.{4}\0{4}|II\*\0|MM\0\*|RIFF.{4}WEBP"), "image"),
    (re.compile(rb"(?s)RIFF.{4}(?:WAVE|AVI )|ID3[\x02-\x04]|OggS|fLaC|\x1aE\xdf\xa3|FORM.{4}AIF|.{4}ftyp"), "sound"),
    (re.compile(rb"\xff[\xe2\xe3\xf1-\xf3\xf9-\xfb][^\xff]"), "sound"),
)
_PDF = re.compile(rb"%PDF-\d")
_PDF_WITHIN = 1024
_COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_OFFICE_PARTS: dict[str, Kind] = {
    "word/document.xml": "docx",
    "ppt/presentation.xml": "pptx",
    "xl/workbook.xml": "xlsx",
}
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"),
         (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))  # fmt: skip
_LATIN = ["cp1252", "cp1250", "cp1254"]
_OTHERS = [
    "cp1251",
    "koi8_r",
    "cp1253",
    "cp1255",
    "cp1256",
    "shift_jis",
    "euc_jp",
    "gb18030",
    "big5",
    "euc_kr",
    "cp1250",
]
LATIN_SHARE = 0.3
"""Of a text in Latin letters, fewer bytes are beyond ASCII."""

_ENDING = re.compile(r"\.[a-z0-9]{1,8}$")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\x1b")) + b"\x7f"
_MARKUP = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_HEADERS = re.compile(
    r"(?:(?:From|To|Subject|Date|Received|Return-Path|Message-ID|MIME-Version): "
    r"[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*){3}"
)


def kind_of(file: BinaryIO, media_type: str, name: str) -> Kind:
    """Return the kind of a file, at its beginning before and after."""
    declared = _declared(media_type)
    expected = expected_kind(media_type, name)
    head = file.read(HEAD_BYTES)
    file.seek(0)
    if not head:
        return "empty"
    if kind := _by_content(file, head, expected):
        return kind
    encoding = encoding_of(head)
    text = None if encoding is None else head.decode(encoding, "replace")
    if text is None:
        if expected is None:
            ending = _ENDING.search(name.lower()) if declared in GENERIC_TYPES else None
            what = f"{ending[0]} files" if ending else "this type" if declared in GENERIC_TYPES else declared
            raise ReadFailed("no_reader", f"There is no reader of {what}.")
        raise ReadFailed(
            "unreadable", f"The file is called {declared or name[-50:]}, and its content is something else."
        )
    if expected is not None and expected in TEXT_KINDS:
        return expected
    if _MARKUP.match(text):
        return "html"
    if _HEADERS.match(text):
        return "e-mail"
    by_name = _kind_by_name(name)
    return by_name if by_name is not None and by_name in TEXT_KINDS else "text"


def expected_kind(media_type: str, name: str) -> Kind | None:
    """Return the kind of a file by its media type, or by its name if the type says nothing."""
    declared = _declared(media_type)
    by_type = MEDIA_TYPES.get(declared) or MAJOR_TYPES.get(declared.partition("/")[0])
    return _kind_by_name(name) or by_type if declared in GENERIC_TYPES else by_type


def _declared(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _kind_by_name(name: str) -> Kind | None:
    return ENDINGS.get(name.lower().rpartition(".")[2])


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of a text by its beginning; None if it is no text."""
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return encoding
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) > len(head) // 8 and min(even, odd) < 1 + len(head) // 64:
        utf_16 = "utf-16-be" if even > odd else "utf-16-le"
        # Numbers of two bytes look like letters by their zeros, but few of them are letters only.
        return None if _has_controls(head.decode(utf_16, "replace").encode()) else utf_16
    if even + odd or _has_controls(head):
        return None
    for cut in range(4):  # the head may end within a character
        try:
            head[: len(head) - cut].decode()
        except UnicodeDecodeError:
            continue
        return "utf-8"
    import charset_normalizer  # noqa: PLC0415 - of no use to a worker

    is_latin = sum(byte > 127 for byte in head) < LATIN_SHARE * len(head)
    best = charset_normalizer.from_bytes(head, cp_isolation=_LATIN if is_latin else _OTHERS).best()
    return "cp1252" if best is None else best.encoding


def _has_controls(text: bytes) -> bool:
    return len(text) - len(text.translate(None, _CONTROLS)) > len(text) // 500


def _by_content(file: BinaryIO, head: bytes, expected: Kind | None) -> Kind | None:
    if _PDF.search(head, 0, _PDF_WITHIN):
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # the second is an empty archive
        return _office_kind(file, expected)
    if head.startswith(_COMPOUND):
        # Tell a protected document from one of Office before 2007: both are compound files.
        content = file.read(4 << 20)
        if _ENCRYPTED in content:
            raise ReadFailed("unreadable", "The document has a password.")
        raise ReadFailed("no_reader", "There is no reader of Office files before 2007; save it as DOCX, PPTX or XLSX.")
    return next((kind for pattern, kind in _SIGNATURES if pattern.match(head)), None)


def _office_kind(file: BinaryIO, expected: Kind | None) -> Kind:
    try:
        with ZipFile(file) as archive:
            parts = archive.NameToInfo
            kind = next((kind for part, kind in _OFFICE_PARTS.items() if part in parts), None)
    except (BadZipFile, OSError, ValueError, NotImplementedError) as problem:
        if expected in _OFFICE_PARTS.values():
            raise ReadFailed("unreadable", "The document is broken: parts of it are missing.") from problem
        raise ReadFailed("no_reader", "There is no reader of archives.") from problem
    if kind is None:
        raise ReadFailed("no_reader", "There is no reader of archives; upload the files in it.")
    file.seek(0)
    return kind


MAX_DEPTH = 3
"""E-mails in e-mails."""

MAX_ATTACHMENTS = 100
_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")


def read_file(file: BinaryIO, media_type: str, name: str, text: TextBuilder) -> FileText:
    """Return the text of a file. Raises `ReadFailed`, MemoryError, RecursionError."""
    kind = kind_of(file, media_type, name)
    reader, pages = _read(kind, file, name, text)
    return text.finish(reader, pages)


def _read(kind: Kind, file: BinaryIO, name: str, text: TextBuilder) -> tuple[str, int | None]:
    """Read a file into the text; return the reader's name and the number of pages.

    Libraries are imported when a file needs them.
    """
    if kind in {"text", "markdown", "html", "csv", "json"}:
        from streams.adapters.files import text_readers  # noqa: PLC0415

        if kind == "html":
            text_readers.read_html(file, text)
        elif kind == "csv":
            text_readers.read_csv(file, text)
        elif kind == "json":
            text_readers.read_json(file, text)
        else:
            text_readers.read_text(file, text, markdown=kind == "markdown")
    elif kind in {"docx", "pptx", "xlsx"}:
        from streams.adapters.files.office_readers import read_office  # noqa: PLC0415

        return read_office(kind, file, text)
    elif kind == "pdf":
        from streams.adapters.files.pdf_reader import read_pdf  # noqa: PLC0415

        pages, any_scanned = read_pdf(file, text)
        return "pdf+ocr" if any_scanned else "pdf", pages
    elif kind == "image":
        from streams.adapters.files.image_reader import read_image  # noqa: PLC0415

        return "ocr", read_image(file, text)
    elif kind == "sound":
        from streams.adapters.files.sound_reader import read_sound  # noqa: PLC0415

        read_sound(file, name, text)
        return "transcribe", None
    elif kind == "e-mail":
        _read_message(email.message_from_binary_file(file, policy=modern), text)
    return kind, None


def _read_message(message: EmailMessage, text: TextBuilder) -> None:
    """Read a message: its main headers, its text, then its attachments."""
    headers = ((name, _header(message, name)) for name in _SHOWN_HEADERS)
    text.add("\n".join(f"{name}: {value}" for name, value in headers if value), begins_section=True)
    body = message.get_body(preferencelist=("plain", "html"))
    if body is not None:
        _read_part(body, text, "")
    for number, attachment in enumerate(message.iter_attachments(), 1):
        if number > MAX_ATTACHMENTS:
            raise ReadFailed("too_large", f"The e-mail has more than {MAX_ATTACHMENTS} attachments.")
        text.note_progress()
        name = " ".join((attachment.get_filename() or "").split())
        text.add(f"Attachment: {name}", begins_section=True)
        if text.depth < MAX_DEPTH:
            _read_part(attachment, text, name)


def _header(message: EmailMessage, name: str) -> str:
    """Return a header; one that is broken, which many are, is left out."""
    try:
        return " ".join(str(message[name] or "").split())
    except Exception:
        return ""


def _read_part(part: Any, text: TextBuilder, name: str) -> None:
    """Read a part. One that can't be read costs only itself, unless the whole has too much text."""
    text.depth += 1
    try:
        if part.get_content_type() == "message/rfc822":
            _read_message(part.get_content(), text)
            return
        content = part.get_payload(decode=True)
        if isinstance(content, bytes):
            charset = part.get_content_charset("")
            if part.get_content_maintype() == "text" and charset:
                # Its beginning says what a wrong name does not.
                with suppress(LookupError, ValueError):
                    content = content.decode(charset, "replace").encode()
            file = io.BytesIO(content)
            kind = kind_of(file, part.get_content_type(), name)
            if kind != "sound":
                _read(kind, file, name, text)
    except MemoryError:
        raise
    except Exception:
        if text.is_full:
            raise
    finally:
        text.depth -= 1
