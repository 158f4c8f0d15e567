"""A memory as text: what is embedded, and what is found by its words. Pure; never anything of the session around it."""

from schemas.memories import Memory, Resource

MAX_CONTENT_CHARS = 2048
"""Characters of a turn that are embedded: more than the tokens that any preset's model reads of plain prose."""

MAX_CAPTION_CHARS = 512
"""Characters of one resource's text that are embedded, so that a transcript does not crowd out the rest."""

MAX_EMBEDDED_CHARS = 8192
"""Characters that are embedded in all: a model that reads 8,192 tokens would take gigabytes for a hundred captions."""


def embedding_text(memory: Memory) -> str:
    """What a vector is made of: the content, then each resource's text. No speaker: names blur the meaning."""
    return _joined(memory, MAX_CONTENT_CHARS, MAX_CAPTION_CHARS)[:MAX_EMBEDDED_CHARS]


def lexical_text(memory: Memory) -> str:
    """What the word index reads: the whole content and all texts of resources."""
    return _joined(memory, None, None)


def _joined(memory: Memory, content: int | None, caption: int | None) -> str:
    captions = [_bracketed(resource, caption) for resource in memory.resources if resource.text]
    return " ".join([memory.text[:content], *captions])


def _bracketed(resource: Resource, longest: int | None) -> str:
    return f"[{_kind(resource.media_type)}: {(resource.text or '')[:longest]}]"


def _kind(media_type: str | None) -> str:
    """The kind of a resource in one word: `image` for `image/png`."""
    kind = (media_type or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"
