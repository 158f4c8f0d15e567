"""Analyse a turn: the items of its text, of its texts from elsewhere, and of its files that are read. Pure.

Enters: a turn, the understanding of a model, and the stored parts of its files. Leaves: items with their spans. Most
files are written by others, and a report says little about its reader: the rules search notes alone, and both they and
a model find few kinds of items, which claim nothing. So an item of a file replaces none that the user has said.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple, Self

from modestream_client.vocabulary import Role

from agents.rules.cues.labels import has_text_signals
from agents.rules.items.extracting import (
    ExtractedItem,
    SourceText,
    build_extracted_item,
    extract_items,
    find_items,
    merge_items,
)
from agents.rules.items.facts import FIRST_PERSON
from agents.rules.items.kinds import ALLOWED_KINDS, Voice, voice_of
from agents.rules.memory.resources import part_ids
from agents.rules.prompts.prompting import verify_items
from agents.rules.text.passages import Span, parse_sentence
from schemas.state.memories import Memory, Origin, ReadMemory
from schemas.state.understanding import Understanding

MAX_FILE_CHARS = 12_000
"""Characters of a turn's files that are searched, and shown to a model: 3,000 tokens. A longer file is no note."""

MAX_FILE_ITEMS = 8
"""Maximum items of the files of a turn: a file with more is a page, and is found by its parts."""

MIN_MODEL_CONFIDENCE = 0.6

NOTE_READERS = frozenset({"text", "markdown", "docx", "docx+ocr"})
"""Readers of files that people write for themselves."""


def file_parts(turn: Memory, read: ReadMemory) -> list[Memory]:
    """Return the first parts of the files of a turn that are read, up to `MAX_FILE_CHARS`, shared evenly."""
    files = [resource for resource in turn.resources if resource.status == "ready" and resource.parts]
    parts: list[Memory] = []
    for resource in files:
        chars = 0
        for part in map(read, part_ids(turn, resource)):
            chars += len(part.text) if part is not None else 0
            if chars > MAX_FILE_CHARS // len(files):
                break
            if part is not None and part.item is not None:
                parts.append(part)
    return parts


def extract_from_files(
    turn: Memory, understanding: Understanding | None, parts: Sequence[Memory]
) -> list[ExtractedItem]:
    """Return the items of a turn's files, of which these are parts."""
    if not parts or voice_of(turn) is not Voice.USER:
        return []
    notes = {
        resource.uri
        for resource in turn.resources
        if resource.reader in NOTE_READERS and (resource.characters or 0) <= MAX_FILE_CHARS
    }
    by_rules = (item for part in parts if _uri(part) in notes for item in _find_own_items(turn, part))
    by_model = [] if understanding is None else _find_by_model(turn, understanding, parts)
    return merge_items(list(islice(by_rules, MAX_FILE_ITEMS)), by_model)[:MAX_FILE_ITEMS]


def _uri(part: Memory) -> str | None:
    return part.item.supports[0].resource if part.item else None


def _source(turn: Memory, part: Memory) -> SourceText:
    return SourceText(turn, part.text, _uri(part), Voice.DOCUMENT)


def _find_own_items(turn: Memory, part: Memory) -> Iterator[ExtractedItem]:
    """Yield procedures, and whole sentences in the first person: a `must` of others is no rule for the user."""
    for item in find_items(_source(turn, part), has_first_person=True):
        is_own = item.kind == "procedure" or FIRST_PERSON.search(parse_sentence(item.text).spaced)
        if is_own and _is_whole(part.text, item):
            yield _placed(item, part)


def _is_whole(text: str, item: ExtractedItem) -> bool:
    """True unless the line of an item is one of a longer sentence, which goes over several lines."""
    following = text[item.end :].lstrip(" ")
    ends = text[item.end - 1] in ".!\u2026" or not following or following.startswith(("\n\n", "\n-", "\n*", "\n\u2022"))
    return ends and not text[item.start].islower()


def _find_by_model(turn: Memory, understanding: Understanding, parts: Sequence[Memory]) -> list[ExtractedItem]:
    # Words that the turn says itself are its own.
    placed = {id(verified.item) for verified in verify_items(understanding, turn.text)}
    found: list[ExtractedItem] = []
    for part in parts:
        for verified in verify_items(understanding, part.text):
            item, span = verified.item, Span(verified.start, verified.end)
            is_kept = item.kind in ALLOWED_KINDS[Voice.DOCUMENT] and item.confidence >= MIN_MODEL_CONFIDENCE
            if is_kept and id(item) not in placed:
                placed.add(id(item))
                text = item.text.strip() or None
                found.append(
                    _placed(build_extracted_item(_source(turn, part), span, item.kind, text, item.confidence), part)
                )
    return found


def _placed(item: ExtractedItem, part: Memory) -> ExtractedItem:
    """Return an item of a part at its place in the whole file."""
    assert part.item is not None
    of_part = part.item.supports[0]
    return item._replace(
        start=of_part.start + item.start,
        end=of_part.start + item.end,
        page=of_part.page,
        start_s=of_part.start_s,
        end_s=of_part.end_s,
    )


class TextSource(NamedTuple):
    """All inputs of the items, except a model's answer."""

    text: str
    documents: tuple[tuple[str, str], ...]
    """URIs and texts of resources."""
    files: tuple[tuple[str, int], ...]
    """URIs of files that are read, and their numbers of parts."""
    origin: Origin
    role: Role | None
    speaker: str | None
    occurred_at: datetime

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """Return the inputs of a memory's items."""
        documents = tuple((resource.uri, resource.text) for resource in memory.resources if resource.text)
        files = tuple((resource.uri, resource.parts) for resource in memory.resources if resource.status == "ready")
        return cls(memory.text, documents, files, memory.origin, memory.role, memory.speaker, memory.occurred_at)


class AnalysedText(NamedTuple):
    """The text of a turn, with the findings of rules, and of a language model if it has answered."""

    source: TextSource
    understanding: Understanding | None
    items: list[ExtractedItem]
    has_signals: bool
    """True if the text concerns an intention, even without an item."""

    @classmethod
    def of(cls, memory: Memory, understanding: Understanding | None, items: list[ExtractedItem]) -> Self:
        return cls(TextSource.of(memory), understanding, items, has_text_signals(memory))

    def is_of(self, memory: Memory, understanding: Understanding | None) -> bool:
        """True if this is the memory's present text, with the same answer of a model."""
        return (self.source, self.understanding) == (TextSource.of(memory), understanding)


def analyse(
    memory: Memory, text: AnalysedText | None, understanding: Understanding | None, read: ReadMemory
) -> AnalysedText:
    """Return the analysis of a memory: `text`, if that is of the same text and answer, or else a new one.

    `read` gives the parts of its files.
    """
    if text is not None and text.is_of(memory, understanding):
        return text
    of_files = extract_from_files(memory, understanding, file_parts(memory, read))
    return AnalysedText.of(memory, understanding, [*extract_items(memory, understanding), *of_files])
