"""Whether what a layer holds is enough to answer a question, or the search must go down. Pure.

Enters: the texts of a layer's entries and the question. Leaves: which entries are about the question, and whether they
say enough of it. An entry is about it when it has a good share of its telling words; entries say enough when together
they have nearly all of them, weighed by rarity, and a date or a number where one is asked for. Words decide, not
vectors: an entry that is merely alike is no reason to look no further.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agents.rules.answer.term_coverage import TermCoverage, TermIndexes
from agents.rules.cues.label_forms import find_form_labels
from agents.rules.query.questions import Question
from agents.rules.text.entities import extract_entities
from agents.rules.text.tokenizer import content_terms

MIN_COVERAGE = 0.75
"""Share of a question's telling words, by weight, that is enough: of three equally rare words all, of five four. What
is missed by going down is nothing; what is missed by staying may be the answer."""

MIN_ENTRY_COVERAGE = 0.25
"""From this share on an entry is about the question: one rare word of four."""

MIN_SHARE_OF_BEST = 0.5
"""An entry that has less than this part of what the best one has is about something else that shares a word."""

ANSWER_LABELS: Mapping[str, frozenset[str]] = {
    "when": frozenset({"DATE", "TIME", "DURATION", "NUMBER"}),
    "how_many": frozenset({"NUMBER", "MONEY", "DURATION"}),
}
"""What a text must have to answer a question of this type (`agents.rules.query.question_types`), by the names of marks."""


class Match(NamedTuple):
    """An entry that is about the question: its place in its layer, the terms it has, and their share."""

    place: int
    said: TermIndexes
    share: float


def match_entries(texts: Sequence[str], sought: TermCoverage) -> list[Match]:
    """The entries that are about the question, best first, equal ones in their order."""
    found = [Match(place, said, sought.share(said)) for place, said in enumerate(map(sought.terms_in, texts))]
    least = max(MIN_ENTRY_COVERAGE, MIN_SHARE_OF_BEST * max((one.share for one in found), default=0.0))
    return sorted((one for one in found if one.share >= least), key=lambda one: -one.share)


def is_sufficient(found: Sequence[Match], texts: Sequence[str], question: Question, sought: TermCoverage) -> bool:
    """Whether these entries, of a layer with these texts, say enough."""
    said = frozenset[int]().union(*(one.said for one in found))
    return (
        bool(content_terms(question.text))
        and sought.share(said) >= MIN_COVERAGE
        and _answers([texts[one.place] for one in found], question)
    )


def _answers(texts: Sequence[str], question: Question) -> bool:
    """Whether the texts have what the question's types ask for."""
    asked = [ANSWER_LABELS[trait] for trait in question.traits if trait in ANSWER_LABELS]
    forms = set[str]().union(*(find_form_labels(text, extract_entities(text)) for text in texts)) if asked else set()
    return all(not wanted.isdisjoint(forms) for wanted in asked)
