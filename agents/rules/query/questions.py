"""Parse a question: separate the names of speakers from the text and terms to search for. Pure.

Speaker names blur a search: they are attached to every turn and rarely occur in the text of the answering one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agents.rules.query.question_types import detect_question_types
from agents.rules.text.entities import extract_entities
from agents.rules.text.non_english import is_non_english
from agents.rules.text.tokenizer import content_terms, fold, question_terms

MAX_QUESTION_TERMS = 256
"""Distinct terms that are looked up; bounds the cost of a pasted page."""

_WORD = re.compile(r"\w+(?:['\u2019]s\b)?")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed question; `text` and `terms` do not contain speaker names.

    `asked` is the original text. `named` are the mentioned speakers, spelt as on the memories. `traits` come from
    `agents.rules.query.question_types`, `foreign` from `agents.rules.text.non_english`.
    """

    text: str
    terms: tuple[str, ...]
    entities: tuple[str, ...]
    named: frozenset[str]
    asked: str = ""
    traits: frozenset[str] = frozenset()
    foreign: bool = False


def parse_question(query: str, speakers: Iterable[str]) -> Question:
    """Parse a question asked of memories that have these speakers."""
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
    """Return a name without its genitive."""
    return word[:-2] if word[-2:] in ("'s", "\u2019s") else word


def _names(speakers: Iterable[str]) -> dict[str, frozenset[str]]:
    """Map each folded part of a name to the speakers with that part."""
    found: dict[str, frozenset[str]] = {}
    for speaker in speakers:
        for part in _WORD.findall(fold(speaker)):
            if len(part) > 1:
                found[part] = found.get(part, frozenset()) | {speaker}
    return found
