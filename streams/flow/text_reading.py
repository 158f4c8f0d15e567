"""Reads the words and items of a long text beside the event loop, before its turn is stored in its order."""

import asyncio
from typing import Protocol

from agents.rules.index.lexical_document import IndexedWords, indexed_words, keep_words
from agents.rules.items.extracting import ExtractedItem, extract_items
from agents.rules.text.passages import lexical_text, passage_starts
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding

FoundInText = tuple[IndexedWords, list[ExtractedItem]]


class ReadLongText(Protocol):
    """Reads a memory's text, with a model's answer if there is one; the words are kept until they are written."""

    async def __call__(self, memory: Memory, understanding: Understanding | None = None) -> list[ExtractedItem]:
        """Return the items."""


def find_in_text(memory: Memory, understanding: Understanding | None) -> FoundInText:
    """Find words and items; for any thread or process."""
    return indexed_words(lexical_text(memory), passage_starts(memory)), extract_items(memory, understanding)


def keep_found(memory: Memory, found: FoundInText) -> list[ExtractedItem]:
    """Keep the words that were found elsewhere; return the items."""
    words, items = found
    keep_words(lexical_text(memory), words, passage_starts(memory))
    return items


async def read_in_thread(memory: Memory, understanding: Understanding | None = None) -> list[ExtractedItem]:
    """Read in a thread, which shares the interpreter with the event loop."""
    return keep_found(memory, await asyncio.to_thread(find_in_text, memory, understanding))
