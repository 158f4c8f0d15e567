"""Import chats from elsewhere as turns: readers of exports, and publishing.

    with open("conversations.json", "rb") as file:
        for entry in read_export(file, "chatgpt"):
            ...

Formats in JSON need the extra `imports`: `pip install 'modestream-client[imports]'`.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, tzinfo
from typing import IO, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from modestream_client.imports import archives, assistants, chats
from modestream_client.imports.reading import Entry, Found, Message, NotOfFormat, Problem, checked

ExportFormat = Literal[
    "chatgpt", "claude", "claude-code", "codex", "slack", "whatsapp", "telegram", "mbox", "jsonl", "mem0"
]

FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)

EXPECTED: dict[ExportFormat, str] = {
    "chatgpt": "export of ChatGPT (conversations.json, or the whole zip)",
    "claude": "export of Claude (conversations.json, or the whole zip)",
    "claude-code": "session file of Claude Code (JSON lines)",
    "codex": "session file of Codex (JSON lines)",
    "slack": "export of Slack (the zip)",
    "whatsapp": "chat exported from WhatsApp (its text, or the zip)",
    "telegram": "export of Telegram (result.json)",
    "mbox": "mailbox in mbox format",
    "jsonl": "file of turn.v1, one a line",
    "mem0": "list of mem0's memories (JSON)",
}
"""Description of each format's file, for people."""

READERS: dict[str, Callable[[IO[bytes]], Iterator[Found]]] = {
    "chatgpt": assistants.read_chatgpt,
    "claude": assistants.read_claude,
    "claude-code": assistants.read_claude_code,
    "codex": assistants.read_codex,
    "slack": chats.read_slack,
    "mbox": archives.read_mbox,
    "jsonl": archives.read_jsonl,
    "mem0": archives.read_mem0,
}

ZONED: dict[str, Callable[[IO[bytes], tzinfo], Iterator[Found]]] = {
    "whatsapp": chats.read_whatsapp,
    "telegram": chats.read_telegram,
}
"""Readers of formats whose times have no zone."""

__all__ = [
    "EXPECTED",
    "FORMATS",
    "Entry",
    "ExportFormat",
    "Message",
    "NotOfFormat",
    "Problem",
    "read_export",
    "zone_of",
]


def read_export(source: IO[bytes], export_format: ExportFormat, zone: tzinfo = UTC) -> Iterator[Entry]:
    """Yield the messages of an export as turns, and its broken messages, in the order of the export.

    `source` is seekable; times without a zone are of `zone`. Memory is bounded: by a conversation in JSON of 64 MiB, a
    line of 32 MiB. Raises NotOfFormat before the first entry, ValueError for an unknown format.
    """
    if export_format not in FORMATS:
        raise ValueError(f"there is no format {export_format!r}; there are {', '.join(FORMATS)}")
    found = ZONED[export_format](source, zone) if export_format in ZONED else READERS[export_format](source)
    return checked(found, EXPECTED[export_format])


def zone_of(name: str | None) -> tzinfo:
    """Return a time zone by its name, such as `Europe/Berlin`; UTC for None. Raises ValueError."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name[:64]!r}: give a name such as Europe/Berlin") from None
