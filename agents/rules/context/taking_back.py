"""Decide whether a later statement takes back a rule, or reports an error as fixed. Pure.

"The Friday deploy ban is lifted" takes back "No deploys on Fridays": it has most of the rule's content words. A
correction does so only if it changes a number: "no, the report must have at most 12 pages". Guaranteed: time linear in
the sentences.
"""

from collections.abc import Iterable, Sequence

from agents.rules.cues.labels import SentenceLabel, sentences_with_labels
from agents.rules.text.overlap import content_stems, stem_coverage
from agents.rules.text.sentences import Span, sentence_spans

MIN_COVERAGE = 0.5
"""Minimum share of a rule's content stems in the statement that takes it back."""

MIN_SHARED_STEMS = 2
"""Minimum number of shared stems; one is enough if the rule has no other."""


def taken_back_spans(
    text: str, labels: SentenceLabel, statements: Sequence[frozenset[str]], *, by_number: bool = False
) -> list[Span]:
    """Return the sentences of a text with one of these labels that one of the later statements takes back.

    `statements` are the content stems of each. `by_number`: only statements with another number than the sentence do.
    """
    return [
        span
        for span in sentence_spans(text)
        if _is_covered(text[span.start : span.end], statements, by_number=by_number)
        and sentences_with_labels(text[span.start : span.end], labels)
    ]


def _is_covered(sentence: str, statements: Sequence[frozenset[str]], *, by_number: bool) -> bool:
    stems = content_stems(sentence)
    needed = min(MIN_SHARED_STEMS, len(stems))
    return any(
        0 < needed <= len(stems & statement)
        and stem_coverage(statement, stems) >= MIN_COVERAGE
        and (not by_number or (_has_number(stems - statement) and _has_number(statement - stems)))
        for statement in statements
    )


def _has_number(stems: Iterable[str]) -> bool:
    return any(stem[0].isdigit() for stem in stems)
