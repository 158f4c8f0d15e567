"""The texts of a memory for embedding and for the lexical index. Pure; nothing of the session around it.

A long turn is embedded passage by passage, any other memory as one text.
"""

from collections.abc import Iterable

from agents.rules.text.passages import cut_passages
from agents.rules.text.sentences import Span
from schemas.state.memories import Memory, Resource

MAX_CONTENT_CHARS = 2048
"""Embedded characters of a text that is not cut: more than the model of any preset reads of plain prose."""

MAX_CAPTION_CHARS = 512
"""Embedded characters of one resource's text, so that a transcript does not crowd out the rest."""

MAX_EMBEDDED_CHARS = 8192
"""Embedded characters in all: a model that reads 8,192 tokens would take gigabytes for a hundred captions."""


PASSAGE_END = "\x1e"
"""Follows each passage of a long turn in its text to embed. It is white space, so that no passage ends with it."""


def embedding_text(memory: Memory) -> str:
    """Return the text to embed: the content, then each resource's text. Without the speaker: names blur the meaning.

    Of a turn that is cut into passages it is all that they have. The hash of the embedded content is made of it, so it
    differs between turns that are cut at other places.
    """
    if passages := embedded_passages(memory):
        return "".join(f"{passage}{PASSAGE_END}" for passage in passages)
    return _joined(memory.text, memory.resources, MAX_CONTENT_CHARS, MAX_CAPTION_CHARS)[:MAX_EMBEDDED_CHARS]


def memory_passages(memory: Memory) -> list[Span]:
    """Return the passages of a long turn's own text; empty for any other memory, as items and summaries are not cut."""
    return cut_passages(memory.text) if memory.origin == "said" else []


def embedded_passages(memory: Memory) -> list[str]:
    """Return the texts to embed of a long turn: its passages, then one with the texts of its resources, if it has any.

    Empty for any other memory.
    """
    spans = memory_passages(memory)
    captions = [_caption(resource, MAX_CAPTION_CHARS) for resource in memory.resources if resource.text]
    passages = [memory.text[start:end] for start, end in spans]
    return [*passages, " ".join(captions)[:MAX_EMBEDDED_CHARS]] if passages and captions else passages


def passage_starts(memory: Memory) -> tuple[int, ...]:
    """Return where, in the text to index, each of a long turn's embedded passages begins; empty for other memories."""
    starts = [span.start for span in memory_passages(memory)]
    has_captions = bool(starts) and any(resource.text for resource in memory.resources)
    return (*starts, len(memory.text)) if has_captions else tuple(starts)


def lexical_text(memory: Memory) -> str:
    """Return the text to index: the whole content and the whole text of each resource."""
    return whole_text(memory.text, memory.resources)


def whole_text(content: str, resources: Iterable[Resource]) -> str:
    """Return the text to index of a turn with this content and these resources."""
    return _joined(content, resources, None, None)


def _joined(content: str, resources: Iterable[Resource], max_content: int | None, max_caption: int | None) -> str:
    captions = [_caption(resource, max_caption) for resource in resources if resource.text]
    return " ".join([content[:max_content], *captions])


def _caption(resource: Resource, max_chars: int | None) -> str:
    return f"[{_kind(resource.media_type)}: {(resource.text or '')[:max_chars]}]"


def _kind(media_type: str | None) -> str:
    """Return the kind of a resource in one word: `image` for `image/png`."""
    kind = (media_type or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"
