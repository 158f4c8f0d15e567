"""The texts of a memory for embedding and for the lexical index. Pure; nothing of the session around it."""

from collections.abc import Iterable

from schemas.state.memories import Memory, Resource

MAX_CONTENT_CHARS = 2048
"""Embedded characters of a turn: more than the model of any preset reads of plain prose."""

MAX_CAPTION_CHARS = 512
"""Embedded characters of one resource's text, so that a transcript does not crowd out the rest."""

MAX_EMBEDDED_CHARS = 8192
"""Embedded characters in all: a model that reads 8,192 tokens would take gigabytes for a hundred captions."""


def embedding_text(memory: Memory) -> str:
    """Return the text to embed: the content, then each resource's text. Without the speaker: names blur the meaning."""
    return _joined(memory.text, memory.resources, MAX_CONTENT_CHARS, MAX_CAPTION_CHARS)[:MAX_EMBEDDED_CHARS]


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
