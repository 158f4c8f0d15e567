"""Label the sentences of a memory by rule: a question, a number, a constraint, an error, a decision. Pure.

Labels are flags of an integer of at most 62 bits. They describe the form of a text in English, German, Spanish or
French, not the rights of its speaker: numbers, dates, amounts, names, links, code, a mere greeting. A question or a
supposition sets no rule, reports no error and decides nothing. Deterministic, in time linear in the text.
"""

import re
from collections.abc import Iterable, Mapping
from enum import IntFlag, auto
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

from modestream_client.vocabulary import ItemKind

from agents.rules.cues.decision_patterns import DECISION_PATTERNS, NO_DECISION_CONTEXT
from agents.rules.cues.error_patterns import ERROR_PATTERNS, HARM, NO_ERROR_CONTEXT, SAFETY_PATTERNS
from agents.rules.cues.intents import COURTESY_TURN, STACK_TRACE
from agents.rules.cues.label_phrases import CUE_PHRASES, OPENING_FILLERS, TASK_OPENING
from agents.rules.cues.preference_patterns import (
    CORRECTION_PATTERNS,
    NO_CORRECTION_CONTEXT,
    PREFERENCE_PATTERNS,
    STANDING,
    WITHDRAWAL_PATTERNS,
)
from agents.rules.cues.rule_patterns import NO_RULE_CONTEXT, RULE_PATTERNS
from agents.rules.text.dates import AMBIGUOUS_MONTHS, DAY_WORDS, MONTHS, WEEKDAYS
from agents.rules.text.non_english import is_non_english
from agents.rules.text.passages import (
    MAX_PARSED_CHARS,
    Sentence,
    embedding_text,
    parse_sentence,
    parse_sentences,
    split_sentences,
)
from agents.rules.text.tokenizer import fold
from schemas.state.memories import Memory

# Match the cue phrases and patterns in a sentence, indexed by their first words. Pure.
#
# Guaranteed: time linear in the sentence, independent of the number of phrases.

RULE_LABELS = frozenset({"SAFETY", "CONSTRAINT"})
"""Labels that a report of a supposition ("I thought we must …") never has."""

_REPORT_LABELS = frozenset({"CORRECTION", "ERROR", "RESOLVED", "DECISION", "DONE", "CHANGE"})

ASSERTIVE = RULE_LABELS | _REPORT_LABELS | {"GOAL", "PREFERENCE", "STANDING_PREFERENCE", "INSTRUCTION", "WITHDRAWAL"}
"""Labels that a question or a supposition never has."""

PREFIX_CHARS = 4
"""Index key length of a single word with a wildcard ending."""

MAX_FILLERS = 2
"""Filler words to skip at the beginning of a sentence."""


class Cue(NamedTuple):
    """A phrase with a space before it, and one after it unless its last word has a wildcard ending."""

    label: str
    is_at_start: bool
    is_at_end: bool
    spaced: str

    def matches(self, spaced: str, opening: str) -> bool:
        """True if a sentence has this phrase; `opening` is the sentence without leading fillers."""
        if self.is_at_end and not opening.endswith(self.spaced):
            return False
        return opening.startswith(self.spaced) if self.is_at_start else self.spaced in spaced


_CHOICE = re.compile(r"\{([^}]*)\}")


def _cues_by_key() -> dict[str, tuple[Cue, ...]]:
    """Return the cues by index key: the first two words of a cue, its first word, or the prefix of that."""
    groups: dict[str, dict[Cue, None]] = {}
    for label, row in CUE_PHRASES.items():
        pieces = [_CHOICE.split(part.strip()) for part in re.split(r"(?<! ),\s", re.sub(r"\|\s+", "|", row.strip()))]
        # Every second piece is the inside of braces: its choices are expanded.
        choices = ([piece.split("|") if at % 2 else [piece] for at, piece in enumerate(each)] for each in pieces)
        for phrase in ("".join(chosen) for each in choices for chosen in product(*each)):
            words = phrase.strip("^$").split()
            has_wildcard = words[-1].endswith("*")
            spaced = f" {' '.join(words)}".rstrip("*") + ("" if has_wildcard else " ")
            key = words[0] if len(words) == 1 or (has_wildcard and len(words) == 2) else " ".join(words[:2])
            key = key.rstrip("*")[: PREFIX_CHARS if has_wildcard and len(words) == 1 else None]
            groups.setdefault(key, {})[Cue(label, phrase.startswith("^"), phrase.endswith("$"), spaced)] = None
    return {key: tuple(group) for key, group in groups.items()}


LABEL_PATTERNS = (
    *RULE_PATTERNS,
    *SAFETY_PATTERNS,
    *PREFERENCE_PATTERNS,
    *DECISION_PATTERNS,
    *CORRECTION_PATTERNS,
    *ERROR_PATTERNS,
    *WITHDRAWAL_PATTERNS,
)

_EXCLUDING_CONTEXTS = (
    (RULE_LABELS, NO_RULE_CONTEXT),
    (RULE_LABELS | {"ERROR"}, TASK_OPENING),
    (frozenset({"DECISION"}), NO_DECISION_CONTEXT),
    (frozenset({"CORRECTION"}), NO_CORRECTION_CONTEXT),
    (frozenset({"ERROR"}), NO_ERROR_CONTEXT),
)
"""Labels that a sentence does not have in some contexts."""

KEPT_SENTENCES = 256
"""Cached sentences: those of a turn are read for its items, and again for its labels."""

_FILLERS = frozenset(OPENING_FILLERS.split())

_CUES = _cues_by_key()

_PATTERNS = {
    word: [index for index, pattern in enumerate(LABEL_PATTERNS) if word in pattern.triggers]
    for pattern in LABEL_PATTERNS
    for word in pattern.triggers
}

_CUE_KEYS, _PATTERN_KEYS = frozenset(_CUES), frozenset(_PATTERNS)


def find_cue_labels(sentence: Sentence) -> set[str]:
    """Return the names of the labels of a sentence by its words."""
    return set(_labels_of(sentence.spaced))


MAX_COURTESY_CHARS = 120
"""A longer text is more than a courtesy."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DIGIT = re.compile(r"\d")

_WORD = re.compile(r"[a-z']+")

_NUMBERS = _words(
    """
    two three four five six seven eight nine ten eleven twelve dozen hundred thousand million zwei drei vier funf
    sechs sieben acht neun zehn elf zwolf hundert tausend dos tres cuatro cinco siete ocho nueve diez cien mil
    deux trois quatre cinq sept huit neuf dix cent mille twenty thirty forty fifty sixty
    """
)

_DAYS = frozenset({*MONTHS, *WEEKDAYS, *(word for word in DAY_WORDS if " " not in word)}) - AMBIGUOUS_MONTHS

_DATE = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}\.|\b\d{1,2}(?:st|nd|rd|th)\b")

_AMBIGUOUS_DATE = re.compile(
    r"\b(?:on|by|until|till|before|after|since|from) (?:the )?\d{1,2} (?:may|march|mar)\b|\bin (?:may|march)\b|"
    r"\b(?:may|march|mar) \d{1,2}\b(?!:)|\b\d{1,2} (?:may|march|mar) (?:19|20)\d\d\b"
)
"""An ambiguous month next to a day, a year or an `in`."""

_RELATIVE_SPAN = re.compile(
    r"\b(?:last|next|this) (?:week|month|year|night|weekend|spring|summer|autumn|fall|winter)\b"
)

_TIME = re.compile(r"\b\d{1,2}[:.h]\d\d\b(?![.\d])|\b\d{1,2} ?(?:am|pm|uhr)\b")

_HOURS = _words("noon midnight o'clock mittags mitternacht midi minuit mediodia medianoche")

_UNITS = _words(
    """
    second seconds minute minutes min mins hour hours day days night nights week weeks month months year years
    sekunde sekunden minuten stunde stunden tag tage tagen woche wochen monat monate monaten monats jahr jahre
    jahren jahrs minuto minutos hora horas dia dias semana semanas mes meses ano anos heure heures jour jours
    semaine semaines mois an ans annee annees
    """
)

_PASSED = re.compile(r"\b\d+ (?:tests? )?passed\b|\b0 (?:failed|failures|errors)\b")

_FAILED = re.compile(r"\b[1-9]\d* (?:tests? )?(?:failed|failures|errors)\b")

_FAILURE_OUTPUT = re.compile(
    r"^(?:FAILED|FAIL)\s+\S|^\S{1,200} FAILED$|\b[1-9]\d* failed\b(?=[^\n]{0,80}(?:passed|skipped|\bin \d))|"
    r"\b[1-9]\d* failed \||passed, [1-9]\d* failed\b|^(?:[\w.-]{1,60}: )?(?:ERROR|FATAL|error|fatal): |^npm (?:ERR!|"
    r"error) |^\d\d:\d\d(?::\d\d)?\S{0,4} (?:\[error\]|ERROR\b)|\blost connection to \w|\bFATAL: |^\[?(?:ERROR|"
    r"FATAL)\]? ",
    re.MULTILINE,
)
"""Output of failing tests and programs. Prose has no digits before `failed` with `passed` or a time behind it."""

_FAILURE_PARTS = ("FAIL", "failed", "rror", "FATAL", "fatal", "ERROR", "ERR!", "lost connection")
"""Every such output contains one of these."""

_TRACE_PARTS = ("rror", "xception", "Traceback", "panic", "Segmentation", "exit", "SQLSTATE", "ERR!", "\nE ", "    at ")
"""Every trace contains one of these."""

_DURATION = re.compile(
    r"\b(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|half an|ein\w*|zwei|drei|un\w*|dos|tres|deux|"
    r"trois)[ -](?:seconds?|minutes?|mins?|hours?|days?|nights?|weeks?|months?|years?|sekunden?|minuten?|stunden?|"
    r"tagen?|tage|wochen?|monat\w{0,2}|jahr\w{0,2}|minutos?|horas?|dias?|semanas?|mes(?:es)?|anos?|heures?|jours?|"
    r"semaines?|mois|ans?|annees?)\b"
)

_MONEY = re.compile(
    r"[$\u20ac\u00a3\u00a5] ?\d|\d ?[$\u20ac\u00a3\u00a5]|\b\d[\d.,]{0,30}k? ?(?:usd|eur|gbp|chf|dollars?|euros?|"
    r"pounds?|bucks|quid|francs?|franken|cents?|kr|kronor|forints?|huf|pesos)\b"
)

_LINK = re.compile(r"https?://|\bwww\.|\S@\S{1,253}\.\w")
"""Domains have at most 253 characters; unbounded, a run of `@a.` takes quadratic time."""

_CODE = re.compile(
    r"```|\w\(\)|[{};]\s*$|=>|::|</\w|^[^\S\n]*(?:def|class|import|from|function|const|let|var|select|create) \w",
    re.MULTILINE,
)
"""White space before a keyword excludes line breaks: including them, a thousand empty lines take a second."""


def find_form_labels(text: str, entities: Iterable[str]) -> set[str]:
    """Return the names of the labels of a text's form; `entities` are those extracted from it."""
    text = text[:MAX_PARSED_CHARS]
    folded = fold(text)
    words = set(_WORD.findall(folded))
    has_digit = _DIGIT.search(folded) is not None
    # Most patterns run only if a word or a digit is present that they require: this saves half the time.
    labels = {
        "NUMBER": has_digit or not _NUMBERS.isdisjoint(words),
        "DATE": not _DAYS.isdisjoint(words) or _has_date(words, folded, has_digit=has_digit),
        "TIME": not _HOURS.isdisjoint(words) or (has_digit and _TIME.search(folded)),
        "DURATION": not _UNITS.isdisjoint(words) and _DURATION.search(folded),
        "MONEY": has_digit and _MONEY.search(folded),
        "NAME": any(entity[0].isupper() and not entity.isupper() for entity in entities),
        "LINK": _LINK.search(text),
        "CODE": _CODE.search(text),
        "COURTESY": len(text) <= MAX_COURTESY_CHARS and COURTESY_TURN.fullmatch(folded.strip()),
        "RESOLVED": has_digit and _PASSED.search(folded) and not _FAILED.search(folded),
        "ERROR": (any(part in text for part in _TRACE_PARTS) and STACK_TRACE.search(text))
        or (any(part in text for part in _FAILURE_PARTS) and _FAILURE_OUTPUT.search(text)),
    }
    return {label for label, is_found in labels.items() if is_found}


def _has_date(words: set[str], folded: str, *, has_digit: bool) -> bool:
    """True if a text has digits of a date, a span relative to now, or an ambiguous month next to a day or a year."""
    if has_digit and _DATE.search(folded):
        return True
    if not words.isdisjoint(("last", "next", "this")) and _RELATIVE_SPAN.search(folded):
        return True
    return not words.isdisjoint(("may", "march", "mar")) and _AMBIGUOUS_DATE.search(folded) is not None


class SentenceLabel(IntFlag):
    """Labels of sentences and texts. The lexical index stores the bits: append new labels at the end.

    Raise `SCHEMA_VERSION` in `streams/adapters/lexical/file.py` with every change of the labelling.
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
    """Corrects an earlier statement."""
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
    """A question not answered or decided yet."""
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
"""Cached texts: a turn is labelled for the lexical index and again for its signals. A context labels up to 200 partly
revised turns, at 2 ms for a long one."""

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


SEARCHED_CACHE_SIZE = 1024
"""Cached texts: every context of a user reads much the same rules, of a user with many memories some hundred."""


@lru_cache(SEARCHED_CACHE_SIZE)
def sentences_with_labels(text: str, labels: SentenceLabel) -> tuple[str, ...]:
    """Return the sentences of a text, as written, that have any of these labels by their words."""
    wanted = {label.name for label in labels}
    return tuple(part for part in split_sentences(text) if not wanted.isdisjoint(_label_sentence(parse_sentence(part))))


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


@lru_cache(KEPT_SENTENCES)
def _labels_of(spaced: str) -> frozenset[str]:
    words = spaced.split()
    start = 0
    while start < min(MAX_FILLERS, len(words) - 1) and words[start] in _FILLERS:
        start += 1
    opening = f" {' '.join(words[start:])} " if words[0] in _FILLERS else spaced
    keys = {*words, *[word[:PREFIX_CHARS] for word in words], *map(" ".join, pairwise(words))}
    labels = {cue.label for key in keys & _CUE_KEYS for cue in _CUES[key] if cue.matches(spaced, opening)}
    for index in {index for word in keys & _PATTERN_KEYS for index in _PATTERNS[word]}:
        label, _, pattern = LABEL_PATTERNS[index]
        if label not in labels and (pattern.search(spaced) or (opening is not spaced and pattern.search(opening))):
            labels.add(label)
    if "CONSTRAINT" in labels and HARM.search(spaced):
        labels.add("SAFETY")
    if "WITHDRAWAL" in labels:
        labels -= RULE_LABELS
    for excluded, context in _EXCLUDING_CONTEXTS:
        if labels & excluded and context.search(spaced):
            labels -= excluded
    if "INSTRUCTION" in labels and TASK_OPENING.search(spaced) and not STANDING.search(spaced):
        labels.discard("INSTRUCTION")
    return frozenset(labels)
