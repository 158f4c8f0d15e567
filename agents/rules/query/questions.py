"""A question as the search needs it: its text and terms without the names of people who speak, and who those are.

Names of speakers blur a question: they stand beside every turn and rarely in the one that answers. Pure.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agents.rules.query.question_types import traits_of
from agents.rules.text.entities import entities
from agents.rules.text.non_english import is_foreign
from agents.rules.text.tokenizer import fold, question_terms, telling_terms

MOST_TERMS = 256
"""Different terms of a question that are looked up: a pasted page must not cost more than a long question."""

_WORD = re.compile(r"\w+(?:['\u2019]s\b)?")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for.

    `asked` is the question as it came, `named` are the speakers whom it names, as they are written on memories,
    `traits` those of `agents.rules.query.question_types`. It is `foreign` as `agents.rules.text.non_english` says.
    """

    text: str
    terms: tuple[str, ...]
    entities: tuple[str, ...]
    named: frozenset[str]
    asked: str = ""
    traits: frozenset[str] = frozenset()
    foreign: bool = False


def understood(query: str, speakers: Iterable[str]) -> Question:
    """Take apart a question that is asked among these speakers."""
    names = _names(speakers)
    named: set[str] = set()

    def without(match: re.Match[str]) -> str:
        found = names.get(fold(_stem(match.group())), frozenset())
        if not found or (match.group().islower() and not query.islower()):
            return match.group()
        named.update(found)
        return " "

    text = _SPACES.sub(" ", _WORD.sub(without, query)).strip()
    terms = telling_terms(text)
    if not terms:
        text, terms = query, question_terms(query)
    return Question(
        text, tuple(terms[:MOST_TERMS]), entities(query), frozenset(named), query, traits_of(query), is_foreign(text)
    )


def _stem(word: str) -> str:
    """A name without its genitive."""
    return word[:-2] if word[-2:] in ("'s", "\u2019s") else word


def _names(speakers: Iterable[str]) -> dict[str, frozenset[str]]:
    """Each part of each speaker's name, folded, with the speakers who have it."""
    found: dict[str, frozenset[str]] = {}
    for speaker in speakers:
        for part in _WORD.findall(fold(speaker)):
            if len(part) > 1:
                found[part] = found.get(part, frozenset()) | {speaker}
    return found
