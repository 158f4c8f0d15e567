"""Extractive summary of a cluster of turns, and the check of a language model's summary. Pure.

The text is the medoid, then the sentences of other turns that add most: greedy coverage of content stems within a
budget, gain over length (Lin and Bilmes, "A Class of Submodular Functions for Document Summarization", 2011). A
sentence from another day than the medoid is dated. Bounded length; deterministic.
"""

import json
from collections.abc import Callable, Iterator, Sequence

from agents.rules.clustering.knn import topic_stems
from agents.rules.consolidation.distillation import Source
from agents.rules.text.sentences import split_sentences
from schemas.moments import iso

MAX_DISTILLED_CHARS = 900
"""Characters of a summary: some 200 tokens, within the input limit of every embedder."""

MAX_MEDOID_CHARS = 600
"""Characters of the medoid that are used; a longer turn is hardly one that was said again and again."""

MIN_NEW_STEMS = 2
"""New content stems that a sentence must add: a single one is a number or a synonym."""

MAX_ADDED_SENTENCES = 6
"""Sentences of other turns."""

MIN_GROUNDED_SHARE = 0.5
"""Share of the content stems of a model's text that must occur in the turns; an invented text shares few."""

USER_VOICE = "user"
"""The voice of the memories' owner, which is not named in a summary."""


def extractive_summary(sources: Sequence[Source]) -> str:
    """Summarise the turns in their own words; `sources` come medoid first."""
    medoid = sources[0]
    lines = [_truncated(medoid.text, MAX_MEDOID_CHARS)]
    for source, sentence in _select_sentences(sources, MAX_DISTILLED_CHARS - len(lines[0])):
        is_of_another_day = source.occurred_at.date() != medoid.occurred_at.date()
        lines.append(f"{source.occurred_at.date()}: {sentence}" if is_of_another_day else sentence)
    speaker = "" if medoid.voice == USER_VOICE else f"{medoid.voice}: "
    return f"{speaker}{' '.join(lines)} ({_count_and_dates(sources)})"


def render_sources(sources: Sequence[Source], clip: Callable[[str], str]) -> str:
    """Render the turns for a prompt: a JSON array with one turn a line."""
    turns = ({"who": one.voice, "when": iso(one.occurred_at), "text": clip(one.text)} for one in sources)
    return "[" + ",\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns) + "]"


def is_grounded(text: str, sources: Sequence[Source]) -> bool:
    """True if a model's text has content, most of which occurs in the turns."""
    stems = topic_stems(text)
    source_stems = frozenset[str]().union(*(topic_stems(f"{one.voice} {one.text}") for one in sources))
    return bool(stems) and len(stems & source_stems) >= MIN_GROUNDED_SHARE * len(stems)


def _select_sentences(sources: Sequence[Source], budget: int) -> Iterator[tuple[Source, str]]:
    """Yield the sentences of other turns that add most, within `budget` characters."""
    covered = set(topic_stems(sources[0].text[:MAX_MEDOID_CHARS]))
    candidates = [
        (source, part.strip(), topic_stems(part)) for source in sources[1:] for part in split_sentences(source.text)
    ]
    for _ in range(MAX_ADDED_SENTENCES):
        fitting = [one for one in candidates if len(one[2] - covered) >= MIN_NEW_STEMS and len(one[1]) <= budget]
        if not fitting:
            return
        # Ties go to the first: `candidates` are in order of similarity to the medoid.
        source, sentence, stems = max(fitting, key=lambda one: len(one[2] - covered) / max(len(one[1]), 1) ** 0.5)
        covered |= stems
        budget -= len(sentence)
        yield source, sentence


def _count_and_dates(sources: Sequence[Source]) -> str:
    """Return the number of turns and their dates, in symbols that need no translation."""
    days = sorted({source.occurred_at.date() for source in sources})
    when = str(days[0]) if len(days) == 1 else f"{days[0]} \u2013 {days[-1]}"
    return f"{len(sources)}\u00d7, {when}"


def _truncated(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit].rstrip()}\u2026"
