"""Excerpts of long texts: the passages about a query instead of the whole. Pure.

Passages are those of `agents.rules.text.passages`, by which a long turn is found. Time is linear in the text.
"""

from collections.abc import Callable, Iterable, Sequence

from modestream_client.hits import Hit

from agents.rules.text.passages import MAX_PASSAGE_CHARS, Span, cut_passages
from schemas.state.memories import Memory

EXCERPT_SEPARATOR = " \u2026 "
"""Separator of two parts that are not adjacent; without a space at the ends of an excerpt."""

MAX_EXCERPT_CHARS = 1600
"""Maximum characters of one excerpt's passages: four of them, so that one long page leaves room for other evidence."""

MAX_EXCERPTED_CHARS = 131_072
"""Maximum characters searched of one text: a content and three of the longest resources. A turn may have 100."""

MAX_WHOLE_REPLY_CHARS = 2 * MAX_PASSAGE_CHARS
"""A reply up to this length is shown whole: an excerpt of it would save little."""

PASSAGES_BY_PLACE = (3, 2, 2)
"""Maximum passages of a reply among the first hits, by its rank; of all others one."""

MAX_PASSAGES_OF_USER = 3
"""Maximum passages of a user's turn that is too long."""

MIN_SHARE_OF_BEST = 0.8
"""Minimum score of further passages, as a share of the best one's."""


def passages_to_show(hits: Iterable[Hit]) -> dict[str, list[Span]]:
    """Return the passages to show of each hit that has passages, by memory id; `hits` come best first."""
    spans_by_id: dict[str, list[Span]] = {}
    for rank, hit in enumerate(hits):
        if hit.passages:
            of_reply = PASSAGES_BY_PLACE[rank] if rank < len(PASSAGES_BY_PLACE) else 1
            count = MAX_PASSAGES_OF_USER if hit.role == "user" else of_reply
            least = MIN_SHARE_OF_BEST * hit.passages[0].score
            spans_by_id[hit.memory_id] = [
                Span(passage.start, passage.end) for passage in hit.passages[:count] if passage.score >= least
            ]
    return spans_by_id


def excerpt_of_reply(memory: Memory, passages: Sequence[Span]) -> str | None:
    """Return these passages of a long reply; None for any other memory, which is shown whole where there is room.

    A user's turn is the subject of the rest: few of its sentences can be spared.
    """
    is_long = memory.role != "user" and len(memory.text) > MAX_WHOLE_REPLY_CHARS
    return excerpt_of_turn(memory, passages) if is_long else None


def excerpt_of_turn(memory: Memory, passages: Sequence[Span]) -> str | None:
    """Return these passages of a turn; None without any, or if its resources have texts, too."""
    if not passages or any(resource.text for resource in memory.resources):
        return None
    return join_spans(memory.text, passages)


def excerpt_about(text: str, coverage: Callable[[str], float]) -> str | None:
    """Return the passages that cover most of a query, in their order; None if the text is short enough.

    For texts whose passages no search has scored: pages of files, and memories that are not hits.

    Only the first `MAX_EXCERPTED_CHARS` are searched. `coverage` is the share of the query that a passage covers, 0..1.
    Without any, the first passages are returned.
    """
    if len(text) <= MAX_EXCERPT_CHARS:
        return None
    spans = short_passages(text[:MAX_EXCERPTED_CHARS])
    shares = [coverage(text[span.start : span.end]) for span in spans]
    best = sorted(range(len(spans)), key=lambda number: (-shares[number], number))[
        : MAX_EXCERPT_CHARS // MAX_PASSAGE_CHARS
    ]
    return join_spans(text, [spans[number] for number in best])


def short_passages(text: str) -> list[Span]:
    """Return the passages of a text; those of a very long one, which are long too, are cut again."""
    return [
        Span(span.start + part.start, span.start + part.end)
        for span in cut_passages(text)
        for part in cut_passages(text[span.start : span.end]) or [Span(0, span.end - span.start)]
    ]


def join_spans(text: str, spans: Iterable[Span]) -> str:
    """Return these parts of a text in its order, with the separator where something is left out."""
    parts: list[Span] = []
    for span in sorted(spans):
        if parts and not text[parts[-1].end : span.start].strip():
            parts[-1] = Span(parts[-1].start, span.end)
        else:
            parts.append(span)
    shown = EXCERPT_SEPARATOR.join(text[part.start : part.end] for part in parts)
    before = EXCERPT_SEPARATOR.lstrip() if text[: parts[0].start].strip() else ""
    after = EXCERPT_SEPARATOR.rstrip() if text[parts[-1].end :].strip() else ""
    return f"{before}{shown}{after}"
