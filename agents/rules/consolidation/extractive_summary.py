"""What a cluster of turns says, in few words: without a language model, or as one is asked for it. Pure.

Enters: the turns of a cluster, the medoid first. Leaves: a text of bounded length; the same turns always give the same.

The text is the medoid, then the sentences of others that add most: greedy maximal coverage of telling stems within a
budget, the gain divided by the length (Lin and Bilmes, "A Class of Submodular Functions for Document Summarization",
2011). A sentence that was said on another day than the medoid has its date.
"""

import json
from collections.abc import Callable, Iterator, Sequence

from agents.rules.clustering.knn import topic_stems
from agents.rules.consolidation.distillation import Source
from agents.rules.text.sentences import split_sentences
from schemas.moments import iso

MAX_DISTILLED_CHARS = 900
"""Characters of what is distilled: some 200 tokens, all of which every embedder reads."""

MAX_MEDOID_CHARS = 600
"""Characters of the medoid that are taken: what is longer is no short turn that was said again and again."""

MIN_NEW_STEMS = 2
"""Telling stems that a sentence must add: one alone is a number or a synonym."""

MAX_ADDED_SENTENCES = 6
"""Sentences of other turns at most."""

MIN_GROUNDED_SHARE = 0.5
"""Of a model's telling words those that were said: a text about the same shares most, one of its own invention few."""

USER_VOICE = "user"
"""Whose memories these are: said without a name, a text is his."""


def extractive_summary(sources: Sequence[Source]) -> str:
    """What the turns say in their own words; `sources` come medoid first."""
    medoid = sources[0]
    lines = [_shortened(medoid.text, MAX_MEDOID_CHARS)]
    for source, sentence in _added(sources, MAX_DISTILLED_CHARS - len(lines[0])):
        is_of_another_day = source.occurred_at.date() != medoid.occurred_at.date()
        lines.append(f"{source.occurred_at.date()}: {sentence}" if is_of_another_day else sentence)
    who = "" if medoid.voice == USER_VOICE else f"{medoid.voice}: "
    return f"{who}{' '.join(lines)} ({_how_often(sources)})"


def render_sources(sources: Sequence[Source], clipped: Callable[[str], str]) -> str:
    """The turns as a model is shown them: JSON, one a line."""
    shown = ({"who": one.voice, "when": iso(one.occurred_at), "text": clipped(one.text)} for one in sources)
    return "[" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in shown) + "]"


def is_grounded(text: str, sources: Sequence[Source]) -> bool:
    """Whether a model's text says something, and most of its words were said."""
    stems = topic_stems(text)
    said = frozenset[str]().union(*(topic_stems(f"{one.voice} {one.text}") for one in sources))
    return bool(stems) and len(stems & said) >= MIN_GROUNDED_SHARE * len(stems)


def _added(sources: Sequence[Source], room: int) -> Iterator[tuple[Source, str]]:
    """The sentences of others that add most, with their turns, while there is room for them."""
    covered = set(topic_stems(sources[0].text[:MAX_MEDOID_CHARS]))
    waiting = [
        (source, part.strip(), topic_stems(part)) for source in sources[1:] for part in split_sentences(source.text)
    ]
    for _ in range(MAX_ADDED_SENTENCES):
        fitting = [one for one in waiting if len(one[2] - covered) >= MIN_NEW_STEMS and len(one[1]) <= room]
        if not fitting:
            return
        # The first of equals: `waiting` is in the order of nearness to the medoid.
        source, sentence, stems = max(fitting, key=lambda one: len(one[2] - covered) / max(len(one[1]), 1) ** 0.5)
        covered |= stems
        room -= len(sentence)
        yield source, sentence


def _how_often(sources: Sequence[Source]) -> str:
    """How often and when, in signs that every language reads."""
    days = sorted({source.occurred_at.date() for source in sources})
    when = str(days[0]) if len(days) == 1 else f"{days[0]} \u2013 {days[-1]}"
    return f"{len(sources)}\u00d7, {when}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()}\u2026"
