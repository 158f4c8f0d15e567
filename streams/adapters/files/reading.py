"""Read a file of any kind, and the attachments of an e-mail. Runs in a process of its own."""

import email
import io
from contextlib import suppress
from email.message import EmailMessage
from email.policy import default as modern
from typing import Any, BinaryIO

from schemas.state.files import FileText, ReadFailed
from streams.adapters.files.kinds import Kind, kind_of
from streams.adapters.files.text_builder import TextBuilder

MAX_DEPTH = 3
"""E-mails in e-mails."""

MAX_ATTACHMENTS = 100
_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")


def read_file(file: BinaryIO, media_type: str, name: str, text: TextBuilder) -> FileText:
    """Return the text of a file. Raises `ReadFailed`, MemoryError, RecursionError."""
    kind = kind_of(file, media_type, name)
    reader, pages = _read(kind, file, name, text)
    return text.finish(reader, pages)


def _read(kind: Kind, file: BinaryIO, name: str, text: TextBuilder) -> tuple[str, int | None]:  # noqa: C901 - a table
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
        from streams.adapters.files import office_readers  # noqa: PLC0415

        try:
            if kind == "docx":
                office_readers.read_docx(file, text)
                return kind, None
            return kind, (office_readers.read_pptx if kind == "pptx" else office_readers.read_xlsx)(file, text)
        except office_readers.BROKEN as problem:
            raise ReadFailed("unreadable", "The document is broken, has a password, or refers to others.") from problem
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
