"""Versions of an edited turn: their texts, as far as the log of turns still has them, and the words that changed."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from markupsafe import Markup, escape

from gateway.service.calls import Call, Json, Refused
from gateway.service.memories import MAX_FORMER_TEXTS
from gateway.service.service import MemoryService

WORDS = re.compile(r"\s+|\S+\s*")
"""A word with the white space after it: spaces by themselves would match everywhere."""


@dataclass(frozen=True)
class Version:
    """One version. `text` is None where the log has it no longer; `shown` marks the changes since the one before."""

    number: int
    first_seen: str
    is_current: bool
    text: str | None
    shown: Markup | None


@dataclass(frozen=True)
class Versions:
    """Versions, the latest first. `is_read` is False while the log can't be read: then only the current has a text."""

    items: list[Version]
    left_out: int
    is_read: bool


async def versions_of(service: MemoryService, call: Call, record: Json) -> Versions | None:
    """Return the versions of a turn; None for a memory that has had one text only."""
    listed = record["versions"][-MAX_FORMER_TEXTS:]
    if len(listed) < 2:
        return None
    try:
        texts, is_read = await service.memories.former_texts(call, record), True
    except Refused:
        # The rest of the page is worth showing without them.
        texts, is_read = {}, False
    items: list[Version] = []
    before: str | None = None
    for version in listed:
        text = record["text"] if version["current"] else texts.get(version["text_hash"])
        shown = None
        if text is not None:
            shown = escape(text) if before is None else changed_words(before, text)
        items.append(Version(version["version"], version["first_seen"], version["current"], text, shown))
        before = text
    return Versions(items[::-1], listed[0]["version"] - 1, is_read)


def changed_words(before: str, after: str) -> Markup:
    """Return a text with the words that were deleted and inserted since another one.

    >>> str(changed_words("we moved to Leeds", "we moved to Kent"))
    'we moved to <del>Leeds</del><ins>Kent</ins>'
    """
    old, new = WORDS.findall(before), WORDS.findall(after)
    shown = Markup("")
    for change, i, j, k, m in SequenceMatcher(None, old, new).get_opcodes():
        if change == "equal":
            shown += "".join(new[k:m])
            continue
        if i < j:
            shown += Markup("<del>{}</del>").format("".join(old[i:j]))
        if k < m:
            shown += Markup("<ins>{}</ins>").format("".join(new[k:m]))
    return shown
