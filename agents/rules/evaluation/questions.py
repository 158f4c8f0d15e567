"""Evaluate the search on a user's own log: make questions from it, and measure the evidence that revisions find. Pure.

Turns in, questions out, each with the memories that it needs. A question is what a person wrote in a later
turn. Its evidence is every earlier turn that shares a link with it: two rare words that stand together in both, such as
"steel plates" or "Madame Pichon". Rare is a word of at most `MAX_EVIDENCE` earlier turns, none of them recent: a
program sends those along anyway. So the evidence follows from the log alone, and from no search.

Guaranteed: the evidence was accepted before the question is asked; question and evidence have no `QUOTED_WORDS` words
in a row in common. Of 13 conversations of ours 104 questions are made, and 9 where the earlier turns are replaced by
those of another conversation: one link in eleven is chance.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any, Literal, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from agents.rules.text.dates import DAYS_PER_UNIT, MONTHS, MONTHS_IN_ITALIAN_AND_PORTUGUESE, NUMBER_WORDS, WEEKDAYS
from agents.rules.text.languages import detect_language, stems, stop_words_of
from agents.rules.text.passages import sentence_spans
from agents.rules.text.tokenizer import tokenize

RECENT_TURNS = 20
"""Last turns of a conversation, which a program sends along: they need no memory."""

MAX_EVIDENCE = 3
"""Earlier turns with a rare word, and evidence of a question: a word of many turns points to none of them."""

MAX_DISTANCE = 3
"""Words from one word of a link to the other. With 5, 25 more questions are made, and 4 more by chance."""

MIN_CHARS = 3
"""Characters of a linking word."""

MIN_WORDS, MAX_WORDS = 5, 80
"""Words of a question: fewer say too little; of a longer turn its sentences with links are asked."""

QUOTED_WORDS = 5
"""Words in a row that question and evidence may not share: such a question contains its answer."""

ONE_MS = timedelta(milliseconds=1)
"""The resolution of a record's timestamp."""

_UNITS = """
    second seconds minute minutes hour hours month months year years morning afternoon evening night
    sekunden minuten stunde stunden monat monate jahr jahre
    hundred thousand hundert tausend per cent percent prozent euro euros first third last next half late early
"""

_TIMES_AND_AMOUNTS = frozenset(
    (
        *(*DAYS_PER_UNIT, *MONTHS, *MONTHS_IN_ITALIAN_AND_PORTUGUESE, *NUMBER_WORDS, *WEEKDAYS),
        *(f"{day}s" for day in WEEKDAYS),
        *_UNITS.split(),
    )
)
"""Folded words that stand together in turns about anything: "ten minutes", "next month"."""

Scope = tuple[tuple[str, str], ...]
"""The fields of a scope with their values, in any order that is the same for all turns."""


class LoggedTurn(NamedTuple):
    """A turn in the log; `scope` and `mode` are those of its memory."""

    memory_id: str
    scope: Scope
    conversation_id: str
    mode: str
    role: str
    speaker: str | None
    text: str
    accepted_at: datetime


class Question(NamedTuple):
    """A question in a scope and mode, to be asked as of `asked_at`: just before the turn that it is made from.

    `memory_id` names that turn, `evidence` the memories to find.
    """

    text: str
    mode: str
    asked_at: datetime
    evidence: tuple[str, ...]
    scope: Scope
    memory_id: str


def make_questions(turns: Iterable[LoggedTurn]) -> list[Question]:
    """Return the questions of all scopes and modes, earliest first."""
    groups: defaultdict[tuple[Scope, str], list[LoggedTurn]] = defaultdict(list)
    for turn in sorted(turns, key=lambda turn: turn.accepted_at):
        groups[turn.scope, turn.mode].append(turn)
    return _in_order(question for group in groups.values() for question in _questions_of(group))


def sample_questions(questions: Sequence[Question], limit: int) -> list[Question]:
    """Return at most `limit` questions from all times, always the same ones."""
    by_chance = sorted(questions, key=lambda question: crc32(question.memory_id.encode()))
    return _in_order(by_chance[:limit])


def quotes(text: str, evidence: str) -> bool:
    """True if a question contains `QUOTED_WORDS` words in a row of its evidence."""
    runs = set(_runs(tokenize(evidence)))
    return any(run in runs for run in _runs(tokenize(text)))


def _in_order(questions: Iterable[Question]) -> list[Question]:
    return sorted(questions, key=lambda question: (question.asked_at, question.memory_id))


Positions = Mapping[str, Sequence[int]]
"""The places of each stem in a text, counted in words."""


def _questions_of(turns: Sequence[LoggedTurn]) -> Iterator[Question]:
    """Yield the questions of one scope and mode; its turns are in order."""
    # Speakers are named in turns about anything.
    ignored = _TIMES_AND_AMOUNTS.union(word for turn in turns for word in tokenize(turn.speaker or ""))
    positions: list[Positions] = []
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    recent: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=RECENT_TURNS))
    for number, turn in enumerate(turns):
        window = recent[turn.conversation_id]
        if turn.role == "user":
            yield from _question_of(turn, turns, positions, numbers, frozenset(window), ignored)
        positions.append(_positions(turn.text, ignored))
        for stem in positions[-1]:
            # One more than allowed is enough to know that a word is not rare.
            if len(numbers[stem]) <= MAX_EVIDENCE:
                numbers[stem].append(number)
        window.append(number)


def _question_of(
    turn: LoggedTurn,
    turns: Sequence[LoggedTurn],
    positions: Sequence[Positions],
    numbers: Mapping[str, Sequence[int]],
    window: frozenset[int],
    ignored: Collection[str],
) -> Iterator[Question]:
    """Yield the turn's question, if it asks one; `numbers`: earlier turns by stem."""
    linked: set[int] = set()
    sentences: list[str] = []
    for start, end in sentence_spans(turn.text):
        sentence = _positions(turn.text[start:end], ignored)
        shared: defaultdict[int, list[str]] = defaultdict(list)
        for stem in sentence:
            earlier = numbers.get(stem, ())
            if len(earlier) <= MAX_EVIDENCE and window.isdisjoint(earlier):
                for number in earlier:
                    shared[number].append(stem)
        found = {number for number, common in shared.items() if _is_link(common, sentence, positions[number])}
        if found:
            linked |= found
            sentences.append(turn.text[start:end])
    evidence = [turns[number] for number in sorted(linked)]
    asked_at = turn.accepted_at - ONE_MS
    text = turn.text if len(tokenize(turn.text)) <= MAX_WORDS else " ".join(sentences)
    if not 0 < len(evidence) <= MAX_EVIDENCE or len(tokenize(text)) < MIN_WORDS:
        return
    # Records of one batch have one timestamp: such a turn is not known yet at `asked_at`.
    if any(earlier.accepted_at > asked_at or quotes(text, earlier.text) for earlier in evidence):
        return
    yield Question(text, turn.mode, asked_at, tuple(each.memory_id for each in evidence), turn.scope, turn.memory_id)


def _positions(text: str, ignored: Collection[str]) -> Positions:
    words = tokenize(text)
    stop_words = stop_words_of(words)
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for place, (word, stem) in enumerate(zip(words, stems(words, detect_language(words)), strict=True)):
        # Numbers alone are the same in turns about anything.
        if len(word) >= MIN_CHARS and not word.isdigit() and word not in stop_words and word not in ignored:
            positions[stem].append(place)
    return positions


def _is_link(common: Sequence[str], sentence: Positions, earlier: Positions) -> bool:
    """True if two of the common stems stand together in both texts."""

    def is_near(pair: tuple[str, str], text: Positions) -> bool:
        return any(abs(place - other) <= MAX_DISTANCE for place in text[pair[0]] for other in text[pair[1]])

    return any(is_near(pair, sentence) and is_near(pair, earlier) for pair in combinations(common, 2))


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(QUOTED_WORDS)), strict=False)


MEASURES = ("recall_at_5", "recall_at_10", "context_coverage")
DECIDING = ("recall_at_10", "context_coverage")
"""The measures that the verdict is about; recall@5 is part of recall@10."""

MIN_QUESTIONS = 10
"""Minimum questions of a verdict: of fewer, resampling says nothing about others."""

RESAMPLES = 10_000
SEED = 50
"""Any constant: the interval is the same each time."""

Verdict = Literal["better", "worse", "no_difference", "too_few_questions"]

SENTENCES: Mapping[Verdict, str] = {
    "better": "The other revision finds more.",
    "worse": "The other revision finds less: keep the current one.",
    "no_difference": "No difference was shown.",
    "too_few_questions": f"Fewer than {MIN_QUESTIONS} questions: ask of more users, or later.",
}


class Shares(NamedTuple):
    """Shares of a question's evidence, 0..1: among the first 5 and 10 hits, and in a context within its budget."""

    recall_at_5: float
    recall_at_10: float
    context_coverage: float


class Outcome(BaseModel, frozen=True):
    """A question of a mode by the current revision, and by another one. `memory_id` names its turn."""

    memory_id: str
    mode: str
    current: Shares
    other: Shares | None = None


def shares_found(evidence: Collection[str], hits: Sequence[str], context: Collection[str]) -> Shares:
    """Return the shares of the evidence among hits, best first, and in a context; all are memory ids."""

    def share(found: Collection[str]) -> float:
        return len(set(evidence).intersection(found)) / len(evidence)

    return Shares(share(hits[:5]), share(hits[:10]), share(context))


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return `modes` and `all` with their means, and where another revision was asked `difference` and `verdict`."""
    modes = sorted({outcome.mode for outcome in outcomes})
    by_mode = {mode: _means([outcome for outcome in outcomes if outcome.mode == mode]) for mode in modes}
    shown: dict[str, Any] = {"questions": len(outcomes), "modes": by_mode, "all": _means(outcomes)}
    pairs = [(outcome.current, outcome.other) for outcome in outcomes if outcome.other is not None]
    if len(pairs) < len(outcomes) or not pairs:
        return shown
    differences = np.array([other for _, other in pairs]) - np.array([current for current, _ in pairs])
    difference = _intervals(differences)
    verdict = _verdict(difference) if len(pairs) >= MIN_QUESTIONS else "too_few_questions"
    return {**shown, "difference": difference, "verdict": verdict, "sentence": SENTENCES[verdict]}


def _means(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    sides = {"current": [outcome.current for outcome in outcomes]}
    others = [outcome.other for outcome in outcomes if outcome.other is not None]
    sides |= {"other": others} if others else {}
    means = {
        side: dict(zip(MEASURES, np.mean(shares, axis=0).round(4).tolist(), strict=True))
        for side, shares in sides.items()
        if shares
    }
    return {"questions": len(outcomes), **means}


def _intervals(differences: NDArray[np.float64]) -> dict[str, dict[str, float]]:
    """Return the mean and its 95 % interval for each column, by a bootstrap over the questions."""
    random, number = np.random.default_rng(SEED), len(differences)
    bounds = []
    for column in differences.T:
        # Questions with the same difference are drawn together: there are few different ones.
        values, counts = np.unique(column, return_counts=True)
        drawn = random.multinomial(number, counts / number, size=RESAMPLES) @ values / number
        bounds.append(np.percentile(drawn, (2.5, 97.5)))
    return {
        name: {"mean": round(float(mean), 4), "low": round(float(low), 4), "high": round(float(high), 4)}
        for name, mean, (low, high) in zip(MEASURES, differences.mean(axis=0), bounds, strict=True)
    }


def _verdict(difference: Mapping[str, Mapping[str, float]]) -> Verdict:
    """Return `worse` if a deciding measure fell, else `better` if one rose."""
    if any(difference[name]["high"] < 0 for name in DECIDING):
        return "worse"
    return "better" if any(difference[name]["low"] > 0 for name in DECIDING) else "no_difference"
