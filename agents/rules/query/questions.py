"""A question as the search needs it: its text and terms without the names of people who speak, and who those are.

Names of speakers blur a question: they stand beside every turn and rarely in the one that answers. Pure.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agents.rules.query.question_types import detect_question_types
from agents.rules.text.entities import extract_entities
from agents.rules.text.non_english import is_non_english
from agents.rules.text.tokenizer import content_terms, fold, question_terms

MAX_QUESTION_TERMS = 256
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


def parse_question(query: str, speakers: Iterable[str]) -> Question:
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
    terms = content_terms(text)
    if not terms:
        text, terms = query, question_terms(query)
    return Question(
        text,
        tuple(terms[:MAX_QUESTION_TERMS]),
        extract_entities(query),
        frozenset(named),
        query,
        detect_question_types(query),
        is_non_english(text),
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
