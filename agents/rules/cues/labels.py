"""Label the sentences of a memory by rule: a question, a number, a constraint, an error, a decision. Pure.

Labels are flags of an integer of at most 62 bits. They describe the form of a text in English, German, Spanish or
French, not what its speaker may set. A question or a supposition sets no rule, reports no error and decides nothing.
Deterministic, in time linear in the text.
"""

from collections.abc import Mapping
from enum import IntFlag, auto
from functools import lru_cache

from modestream_client.vocabulary import ItemKind

from agents.rules.cues.label_cues import ASSERTIVE, find_cue_labels
from agents.rules.cues.label_forms import find_form_labels
from agents.rules.text.non_english import is_non_english
from agents.rules.text.passages import embedding_text
from agents.rules.text.sentences import Sentence, parse_sentence, parse_sentences, split_sentences
from schemas.state.memories import Memory


class SentenceLabel(IntFlag):
    """Labels of sentences and texts. The lexical index stores the bits: append new labels at the end.

    Raise `SCHEMA_VERSION` in `streams/adapters/lexical/file.py` with every change of what is labelled.
    """

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
    """A number of minutes, days, years."""
    MONEY = auto()
    NAME = auto()
    """A name, other than a word that merely opens a sentence."""
    LINK = auto()
    CODE = auto()
    REASON = auto()
    """Gives a reason."""
    COURTESY = auto()
    """Nothing but a greeting, thanks or an assent."""
    FIRST_PERSON = auto()
    """Speaks of the speaker."""
    SAFETY = auto()
    """A rule that prevents harm."""
    CORRECTION = auto()
    """Corrects what was said before."""
    CONSTRAINT = auto()
    """Something that must or must not be."""
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
    """Something still to do."""
    PRINCIPLE = auto()
    """A definition or a rule of thumb."""
    EXAMPLE = auto()
    PATTERN = auto()
    """A reusable way of doing something."""
    INSIGHT = auto()
    OPEN_QUESTION = auto()
    """Something not known or not decided yet."""
    PREFERENCE = auto()
    """How the speaker wants things, or wants to be answered."""
    LIKING = auto()
    """A like or a dislike of the speaker."""
    SPECULATION = auto()
    """An option, not chosen yet."""
    INSTRUCTION = auto()
    """A rule from now on, mostly for the answers."""
    FOREIGN = auto()
    """In a language that an English model can't read: in the mode `general` another model makes its vectors."""
    STANDING_PREFERENCE = auto()
    """How the speaker wants things in general. `PREFERENCE`, a ranking feature, has wishes of the moment as well."""
    WITHDRAWAL = auto()
    """Takes back a rule: "the ban is lifted"."""


NO_LABELS = SentenceLabel(0)

LABEL_CACHE_SIZE = 512
"""Cached texts: a turn is labelled for the lexical index and again for its signals. A context labels up to 200 turns
that were partly revised, at 2 ms for a long one."""

_BIT = {label.name: label.value for label in SentenceLabel}
_ROLE = {role: SentenceLabel[role.upper()].value for role in ("user", "assistant", "system", "tool")}

LABEL_BY_ITEM_KIND: Mapping[ItemKind | None, SentenceLabel] = {
    "safety": SentenceLabel.SAFETY,
    "correction": SentenceLabel.CORRECTION,
    "constraint": SentenceLabel.CONSTRAINT,
    "error": SentenceLabel.ERROR,
}
"""The label of an item by its kind, independent of its words: a language model may have extracted it."""


def label_memory(memory: Memory) -> SentenceLabel:
    """Return the labels of a memory; one that was distilled from several turns has no role."""
    kind = NO_LABELS if memory.item is None else LABEL_BY_ITEM_KIND.get(memory.item.kind, NO_LABELS)
    language = SentenceLabel.FOREIGN if is_non_english(embedding_text(memory)) else NO_LABELS
    return SentenceLabel(_ROLE.get(memory.role or "", 0) | _label_text(memory.text, memory.entities)) | kind | language


@lru_cache(LABEL_CACHE_SIZE)
def _label_text(text: str, entities: tuple[str, ...]) -> int:
    names = find_form_labels(text, entities)
    for sentence in parse_sentences(text):
        names |= _label_sentence(sentence)
    return sum(_BIT[name] for name in names)


def label_text(text: str) -> SentenceLabel:
    """Return the labels of a text by its words, without role, language and names."""
    return SentenceLabel(_label_text(text, ()))


def sentences_with_labels(text: str, labels: SentenceLabel) -> list[str]:
    """Return the sentences of a text, as written, that have any of these labels by their words."""
    wanted = {label.name for label in labels}
    return [part for part in split_sentences(text) if not wanted.isdisjoint(_label_sentence(parse_sentence(part)))]


def _label_sentence(sentence: Sentence) -> set[str]:
    if not sentence.words:
        return set()
    names = find_cue_labels(sentence)
    if sentence.is_question or "SPECULATION" in names:
        names -= ASSERTIVE
    if sentence.is_question:
        names.add("QUESTION")
    return names


SIGNAL_LABELS = (
    SentenceLabel.GOAL
    | SentenceLabel.RESOLVED
    | SentenceLabel.DONE
    | SentenceLabel.ERROR
    | SentenceLabel.DECISION
    | SentenceLabel.CORRECTION
)
"""Labels that may change an intention without an item: above all that something is done or works now."""


def has_signals(turn: Memory) -> bool:
    """True if the turn has items or text signals; most turns have neither and cost no event."""
    return bool(turn.items) or has_text_signals(turn)


def has_text_signals(turn: Memory) -> bool:
    """True if the turn's text or a model's answer about it concerns an intention, even without an item."""
    return turn.reading.aims is not None or bool(label_memory(turn) & SIGNAL_LABELS)
