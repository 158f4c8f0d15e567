"""Exports of other stores: mailboxes, `turn.v1` as this service exports it, memories of mem0."""

import re
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.utils import parseaddr, parsedate_to_datetime
from html.parser import HTMLParser
from typing import IO

from modestream_client.imports.reading import (
    BROKEN,
    BrokenMessage,
    Found,
    Json,
    Message,
    Problem,
    broken,
    digest,
    message,
    moment_of,
    object_of,
    resource,
    text_of,
)
from modestream_client.imports.sources import MAX_DEPTH, MAX_VALUE_CHARS, TooLarge, json_lines, json_values, lines

TURN = "turn.v1"

TURN_FIELDS = (
    "turn_id", "scope", "conversation_id", "role", "speaker", "content", "occurred_at", "mode", "importance",
    "resources", "metadata", "searchable", "private",
)  # fmt: skip


def read_jsonl(source: IO[bytes]) -> Iterator[Found]:
    """Read lines of `turn.v1`; the service judges their fields."""
    for number, line in json_lines(source):
        if isinstance(line, Problem):
            yield line
        elif line.get("schema") != TURN:
            yield Problem(number, "unknown_schema", f"a line has the schema {TURN}", "schema")
        elif not isinstance(line.get("scope", {}), dict):
            yield Problem(number, "invalid_value", "the scope is not an object", "scope")
        elif _depth(line) > MAX_DEPTH:
            yield Problem(number, "invalid_value", f"the line nests deeper than {MAX_DEPTH} levels")
        else:
            turn = {name: line[name] for name in TURN_FIELDS if line.get(name) is not None}
            scope = turn.setdefault("scope", {})
            conversation = line.get("conversation_id")
            names = {"project": scope.get("project_id"), "conversation": conversation}
            yield Message(number, turn, {name: value for name, value in names.items() if isinstance(value, str)})


def _depth(value: object) -> int:
    """Return the depth of a value's nesting, without recursion."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        inner = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [part for parts in inner for part in parts if isinstance(part, dict | list)]
        depth += bool(inner)
    return depth


def read_mem0(source: IO[bytes]) -> Iterator[Found]:
    """Read memories of mem0, as `get_all` gives them: a list, or one in `results`."""
    number = 0
    try:
        for _, value in json_values(source, {("item",), ("results", "item"), ("memories", "item")}):
            number += 1
            key = value.get("id") if isinstance(value, dict) else None
            place = key if isinstance(key, str) else f"memory {number}"
            try:
                yield _mem0_memory(place, object_of(value, "the memory"))
            except BROKEN as problem:
                yield broken(place, problem)
    except BrokenMessage as problem:
        yield Problem(f"memory {number + 1}", "invalid_json", str(problem))


def _mem0_memory(place: str, memory: Json) -> Found:
    stated = memory.get("metadata")
    metadata = stated if isinstance(stated, dict) and _depth(stated) < MAX_METADATA_DEPTH else {}
    run, agent, role, actor = (memory.get(name) for name in ("run_id", "agent_id", "role", "actor_id"))
    return message(
        place,
        turn_id=text_of(memory.get("id"), "the id"),
        conversation_id=str(run or agent or "mem0"),
        role=role if role in ("user", "assistant", "system", "tool") else "user",
        speaker=actor if isinstance(actor, str) else None,
        content=text_of(memory.get("memory"), "the memory"),
        occurred_at=moment_of(memory.get("created_at")),
        belongs_to={"project": memory.get("app_id"), "conversation": run},
        metadata={"source": "mem0", "categories": memory.get("categories"), **metadata},
    )


MAX_METADATA_DEPTH = 32

FROM_LINE = re.compile(rb"From \S{1,400} .{1,100}\d{4}\s{0,9}$|From - |From MAILER-DAEMON")
QUOTED_FROM = re.compile(rb">+From ")
MAX_HEADER_BYTES = 256 * 1024
"""Maximum bytes of a mail's headers: the library's time for them grows with their square."""

MAX_PAGE_CHARS = 200_000
"""Maximum characters read of an HTML mail."""

MAX_KNOWN_MAILS = 500_000
"""Mails whose thread is remembered by id, for answers that name only the previous mail."""


def read_mbox(source: IO[bytes]) -> Iterator[Found]:
    """Read a mailbox in any of the mbox formats, a mail at a time."""
    threads: dict[str, str] = {}
    for number, mail in _mails(source):
        if isinstance(mail, TooLarge):
            yield Problem(number, "too_large", f"a mail has at most {MAX_VALUE_CHARS} bytes")
            continue
        try:
            yield _mail(number, mail, threads)
        except (*BROKEN, LookupError) as problem:
            yield broken(number, problem)


def _mails(source: IO[bytes]) -> Iterator[tuple[int, bytes | TooLarge]]:
    """Yield the bytes of each mail, with the number of its first line."""
    start, size = 0, 0
    kept: list[bytes] = []
    is_after_empty = True
    for number, line in lines(source):
        if isinstance(line, bytes) and is_after_empty and FROM_LINE.match(line):
            if start:
                yield start, TooLarge() if size > MAX_VALUE_CHARS else b"\n".join(kept)
            start, size, kept = number, 0, []
            is_after_empty = False
            continue
        if not start:
            # A file that begins otherwise is not a mailbox.
            return
        is_after_empty = not line
        size += MAX_VALUE_CHARS if isinstance(line, TooLarge) else len(line) + 1
        if isinstance(line, bytes) and size <= MAX_VALUE_CHARS:
            kept.append(line[1:] if QUOTED_FROM.match(line) else line)
        else:
            kept = []
    if start:
        yield start, TooLarge() if size > MAX_VALUE_CHARS else b"\n".join(kept)


IDS = re.compile(r"<([^<>\s]+)>")


def _mail(number: int, raw: bytes, threads: dict[str, str]) -> Found:
    if raw[: MAX_HEADER_BYTES + 2].find(b"\n\n") < 0 and len(raw) > MAX_HEADER_BYTES:
        raise BrokenMessage(f"the headers of a mail have at most {MAX_HEADER_BYTES} bytes")
    mail = BytesParser(policy=policy.default).parsebytes(raw)
    assert isinstance(mail, EmailMessage)

    raw_headers: dict[str, str] = {}
    for name, value in mail.raw_items():
        raw_headers.setdefault(name.lower(), value)

    def header(name: str) -> str:
        raw = raw_headers.get(name.lower(), "")
        # The package's parser takes a millisecond a header: it is only for what is encoded.
        return " ".join(raw.split()) if raw.isascii() and "=?" not in raw else str(mail.get(name, ""))

    stated = IDS.search(header("Message-ID"))
    name, address = parseaddr(header("From"))
    if not address and stated is None:
        raise BrokenMessage("the mail has neither a sender nor an id")
    key = stated[1] if stated else digest(header("From"), header("Date"), header("Subject"))
    earlier = [*IDS.findall(header("References")), *IDS.findall(header("In-Reply-To"))]
    # Some programs name only the previous mail, and not the first of the thread.
    known = next((threads[each] for each in earlier if each in threads), None)
    thread = header("X-GM-THRID") or known or (earlier[0] if earlier else key)
    if len(threads) < MAX_KNOWN_MAILS:
        threads[key] = thread
    try:
        at = parsedate_to_datetime(header("Date"))
    except (ValueError, TypeError, IndexError):
        raise BrokenMessage("the mail has no date that is one") from None
    words, resources = _mail_content(mail, key)
    subject = header("Subject").strip()
    opens = subject and not earlier
    return message(
        number,
        turn_id=key,
        conversation_id=thread,
        role="user",
        speaker=name or address or None,
        content=f"{subject}\n\n{words}".strip() if opens else words,
        occurred_at=at if at.tzinfo else moment_of(at.isoformat()),
        resources=resources,
        belongs_to={"conversation": subject},
        metadata={"source": "mail", "subject": subject or None, "address": address or None},
    )


def _mail_content(mail: EmailMessage, key: str) -> tuple[str, list[Json]]:
    """Return a mail's text without the quotation at its end, and its attachments."""
    body = mail.get_body(preferencelist=("plain", "html"))
    words = "" if body is None else _decoded(body)
    if body is not None and body.get_content_type() == "text/html":
        words = _HtmlText.of(words[:MAX_PAGE_CHARS])
    resources = []
    for index, part in enumerate(mail.walk(), 1):
        if part is body or part.is_multipart():
            continue
        file = part.get_filename()
        if (
            file
            or part.get_content_disposition() == "attachment"
            or part.get_content_maintype() not in ("text", "multipart")
        ):
            resources.append(resource(f"mid:{key}/{file or f'part-{index}'}", part.get_content_type()))
    return _without_quotes(words), resources


def _decoded(part: MIMEPart) -> str:
    """Return the text of a part, whatever encoding it claims to have."""
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes):
        return ""
    try:
        return raw.decode(part.get_content_charset("utf-8"), "replace").replace("\r\n", "\n")
    except LookupError:
        return raw.decode("utf-8", "replace").replace("\r\n", "\n")


def _without_quotes(text: str) -> str:
    """Drop the lines at the end that quote the previous mail, and the line that introduces them."""
    kept = text.rstrip().split("\n")
    is_quoting = bool(kept) and kept[-1].startswith(">")
    while kept and (kept[-1].startswith(">") or not kept[-1].strip()):
        kept.pop()
    if is_quoting and kept and kept[-1].rstrip().endswith(":"):
        kept.pop()
    return "\n".join(kept).strip() or text.strip()


class _HtmlText(HTMLParser):
    BREAKS = frozenset({"p", "br", "div", "tr", "li", "h1", "h2", "h3", "h4", "blockquote"})
    UNSEEN = frozenset({"style", "script", "head", "title"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._texts: list[str] = []
        self._unseen = 0

    @classmethod
    def of(cls, page: str) -> str:
        """Return the text of an HTML page, a line for each block."""
        parser = cls()
        parser.feed(page)
        parser.close()
        return re.sub(r"[ \t]*\n\s*\n\s*", "\n\n", "".join(parser._texts)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - as the base has it
        """Break the line at a block."""
        self._unseen += tag in self.UNSEEN
        if tag in self.BREAKS:
            self._texts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """Leave a hidden element; break the line after a block."""
        if tag in self.BREAKS:
            self._texts.append("\n")
        self._unseen -= tag in self.UNSEEN and self._unseen > 0

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._texts.append(re.sub(r"\s+", " ", data))
