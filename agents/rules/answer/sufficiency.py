"""Match the entries of a layer with a question, and decide whether they suffice or the search must go deeper. Pure.

An entry matches if it covers enough of the question's terms, weighted by rarity. Entries suffice if together they cover
nearly all terms, and contain a date or a number if the question asks for one. Terms decide, not vectors: a merely
similar entry must not end the search.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agents.rules.answer.term_coverage import TermCoverage, TermIndexes
from agents.rules.cues.label_forms import find_form_labels
from agents.rules.query.questions import Question
from agents.rules.text.entities import extract_entities
from agents.rules.text.tokenizer import content_terms

MIN_COVERAGE = 0.75
"""Coverage that suffices: all of three equally rare words, four of five. High, as a deeper search loses nothing."""

MIN_ENTRY_COVERAGE = 0.25
"""Minimum coverage of a matching entry: one rare word of four."""

MIN_SHARE_OF_BEST = 0.5
"""Minimum coverage relative to the best entry; below it an entry only shares a word."""

ANSWER_LABELS: Mapping[str, frozenset[str]] = {
    "when": frozenset({"DATE", "TIME", "DURATION", "NUMBER"}),
    "how_many": frozenset({"NUMBER", "MONEY", "DURATION"}),
}
"""Labels of which an answer needs one, by question type (`agents.rules.query.question_types`)."""


class Match(NamedTuple):
    """A matching entry: its place in the layer, the question's terms in it, and their coverage."""

    place: int
    terms: TermIndexes
    share: float


def match_entries(texts: Sequence[str], coverage: TermCoverage) -> list[Match]:
    """Return the matching entries, best first; ties keep their order."""
    found = [Match(place, terms, coverage.share(terms)) for place, terms in enumerate(map(coverage.terms_in, texts))]
    least = max(MIN_ENTRY_COVERAGE, MIN_SHARE_OF_BEST * max((one.share for one in found), default=0.0))
    return sorted((one for one in found if one.share >= least), key=lambda one: -one.share)


def is_sufficient(found: Sequence[Match], texts: Sequence[str], question: Question, coverage: TermCoverage) -> bool:
    """Return whether these entries of a layer suffice; `texts` are the texts of the whole layer."""
    terms = frozenset[int]().union(*(one.terms for one in found))
    return (
        bool(content_terms(question.text))
        and coverage.share(terms) >= MIN_COVERAGE
        and _has_answer_forms([texts[one.place] for one in found], question)
    )


def _has_answer_forms(texts: Sequence[str], question: Question) -> bool:
    """Return whether the texts have a label for each type of the question that needs one."""
    asked = [ANSWER_LABELS[trait] for trait in question.traits if trait in ANSWER_LABELS]
    forms = set[str]().union(*(find_form_labels(text, extract_entities(text)) for text in texts)) if asked else set()
    return all(not wanted.isdisjoint(forms) for wanted in asked)
