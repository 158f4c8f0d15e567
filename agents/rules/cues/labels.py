"""What rules see in the sentences of one memory: a question, a number, a constraint, an error, a decision. Pure.

Enters: the record of a memory. Leaves: its marks, a set of flags that fits an integer of 62 bits. Guaranteed: the same
record always has the same marks, in time linear in its text. A mark says what a text looks like, in English, German,
Spanish or French; who may set a rule is decided by who reads the marks. A sentence that asks, or only supposes, sets no
rule, reports no error and decides nothing.
"""

from collections.abc import Mapping
from enum import IntFlag, auto
from functools import lru_cache

from agents.rules.cues.label_cues import ASSERTIVE, find_cue_labels
from agents.rules.cues.label_forms import find_form_labels
from agents.rules.text.embedding_text import embedding_text
from agents.rules.text.non_english import is_non_english
from agents.rules.text.sentences import Sentence, parse_sentence, parse_sentences, split_sentences
from schemas.memories import ItemKind, Memory


class SentenceLabel(IntFlag):
    """One thing that is seen. The places are kept in an index: new ones are added at the end."""

    USER = auto()
    """Said by the user."""
    ASSISTANT = auto()
    SYSTEM = auto()
    TOOL = auto()
    QUESTION = auto()
    NUMBER = auto()
    DATE = auto()
    """A day, a month, a year or a weekday."""
    TIME = auto()
    """A time of day."""
    DURATION = auto()
    """So many minutes, days, years."""
    MONEY = auto()
    NAME = auto()
    """A name that does not merely open a sentence."""
    LINK = auto()
    CODE = auto()
    REASON = auto()
    """Says why."""
    COURTESY = auto()
    """Nothing but a greeting, thanks or an assent."""
    FIRST_PERSON = auto()
    """Speaks of the speaker."""
    SAFETY = auto()
    """A rule whose breach does harm."""
    CORRECTION = auto()
    """Takes back what was said before."""
    CONSTRAINT = auto()
    """What must or must not be."""
    ERROR = auto()
    """Reports that something fails."""
    RESOLVED = auto()
    """Says that something works now."""
    CHANGE = auto()
    """Reports that something was changed."""
    DECISION = auto()
    GOAL = auto()
    DONE = auto()
    PENDING = auto()
    """What is still to be done."""
    PRINCIPLE = auto()
    """A definition or a rule of thumb."""
    EXAMPLE = auto()
    PATTERN = auto()
    """A way of doing that can be used again."""
    INSIGHT = auto()
    OPEN_QUESTION = auto()
    """Says that something is not known or not decided yet."""
    PREFERENCE = auto()
    """How the speaker wants things, or wants to be answered."""
    LIKING = auto()
    """What the speaker likes or dislikes."""
    SPECULATION = auto()
    """An option that nobody has chosen yet."""
    INSTRUCTION = auto()
    """What is to hold from now on: mostly how the speaker wants to be answered."""
    FOREIGN = auto()
    """In a language that an English model can't read: in the mode `general` another model made its vectors."""


NO_LABELS = SentenceLabel(0)
"""Nothing is seen, or nothing is asked for."""

LABEL_CACHE_SIZE = 512
"""Texts whose marks are kept: a turn's are asked for by its words, and again by those who look for what it says. A
context asks for those of up to 200 turns of which a part was taken back; of long ones that takes 2 ms each."""

_BIT = {mark.name: mark.value for mark in SentenceLabel}
_ROLE = {
    "user": SentenceLabel.USER.value,
    "assistant": SentenceLabel.ASSISTANT.value,
    "system": SentenceLabel.SYSTEM.value,
    "tool": SentenceLabel.TOOL.value,
}


LABEL_BY_ITEM_KIND: Mapping[ItemKind | None, SentenceLabel] = {
    "safety": SentenceLabel.SAFETY,
    "correction": SentenceLabel.CORRECTION,
    "constraint": SentenceLabel.CONSTRAINT,
    "error": SentenceLabel.ERROR,
}
"""What an item is by its kind, whatever its words: a language model may have understood it."""


def label_memory(memory: Memory) -> SentenceLabel:
    """What is seen in a memory; what was distilled from several turns has no role."""
    told = NO_LABELS if memory.item is None else LABEL_BY_ITEM_KIND.get(memory.item.kind, NO_LABELS)
    language = SentenceLabel.FOREIGN if is_non_english(embedding_text(memory)) else NO_LABELS
    return SentenceLabel(_ROLE.get(memory.role or "", 0) | _seen_in(memory.text, memory.entities)) | told | language


@lru_cache(LABEL_CACHE_SIZE)
def _seen_in(text: str, entities: tuple[str, ...]) -> int:
    names = find_form_labels(text, entities)
    for found in parse_sentences(text):
        names |= _seen(found)
    bits = 0
    for name in names:
        bits |= _BIT[name]
    return bits


def sentences_with_labels(text: str, mark: SentenceLabel) -> list[str]:
    """The sentences of a text, as they were written, that have any of these marks by their words."""
    wanted = {one.name for one in mark}
    return [part for part in split_sentences(text) if not wanted.isdisjoint(_seen(parse_sentence(part)))]


def _seen(found: Sentence) -> set[str]:
    """The marks of one sentence by name."""
    if not found.words:
        return set()
    names = find_cue_labels(found)
    if found.asks or "SPECULATION" in names:
        names -= ASSERTIVE
    if found.asks:
        names.add("QUESTION")
    return names
