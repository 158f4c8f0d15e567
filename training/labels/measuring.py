"""Measure the labels that the patterns give against those given by hand."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from modestream_client.vocabulary import ItemKind

from agents.rules.cues.labels import SentenceLabel, label_text
from agents.rules.items.extracting import classify_sentence
from training.labels.sentences import LABELS, Label, LabelledSentence

FOUND_AS: Mapping[Label, SentenceLabel] = {
    "safety": SentenceLabel.SAFETY,
    "constraint": SentenceLabel.CONSTRAINT,
    "preference": SentenceLabel.STANDING_PREFERENCE | SentenceLabel.INSTRUCTION,
    "decision": SentenceLabel.DECISION,
    "correction": SentenceLabel.CORRECTION,
    "error": SentenceLabel.ERROR,
}
"""The sentence labels that stand for a label by hand."""

ITEM_KINDS: Mapping[ItemKind, Label] = {
    "safety": "safety",
    "constraint": "constraint",
    "decision": "decision",
    "correction": "correction",
    "error": "error",
}
"""Kinds of items that are measured; the kind `preference` includes likings and has no counterpart."""

Z_95 = 1.96
"""Standard deviations of a confidence interval of 95 %."""


class Quality(NamedTuple):
    """Sentences found rightly, found wrongly, missed, and borderline ones that were found."""

    right: int
    wrong: int
    missed: int
    borderline: int

    @property
    def precision(self) -> float:
        """Share of the found ones that are right; 0 if none was found."""
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        """Share of the sentences with the label that were found; 0 if there are none."""
        return self.right / max(1, self.right + self.missed)

    @property
    def least_precision(self) -> float:
        """Lower end of the Wilson interval of 95 % of the precision."""
        found = self.right + self.wrong
        if not found:
            return 0.0
        centre = self.precision + Z_95**2 / (2 * found)
        spread = Z_95 * math.sqrt(self.precision * (1 - self.precision) / found + Z_95**2 / (4 * found**2))
        return (centre - spread) / (1 + Z_95**2 / found)


def found_labels(text: str) -> frozenset[Label]:
    """Return the labels that the patterns give a sentence."""
    labels = label_text(text)
    return frozenset(name for name, flags in FOUND_AS.items() if labels & flags)


def found_kind(text: str) -> frozenset[Label]:
    """Return the label of the item that the rules make of a sentence, if it is one that is measured."""
    kind = classify_sentence(text, has_first_person=True)
    return frozenset(label for item_kind, label in ITEM_KINDS.items() if item_kind == kind)


def measure_labels(sentences: Iterable[LabelledSentence], *, items: bool = False) -> dict[Label, Quality]:
    """Return the quality of each label, or of each kind of `items`."""
    find = found_kind if items else found_labels
    pairs = [(sentence, find(sentence.text)) for sentence in sentences]
    measured = sorted(set(ITEM_KINDS.values()), key=LABELS.index) if items else LABELS
    return {label: _quality(label, pairs) for label in measured}


def _quality(label: Label, pairs: Iterable[tuple[LabelledSentence, frozenset[Label]]]) -> Quality:
    right = wrong = missed = borderline = 0
    for sentence, found in pairs:
        if label in sentence.borderline:
            borderline += label in found
        elif label in sentence.labels:
            right, missed = right + (label in found), missed + (label not in found)
        else:
            wrong += label in found
    return Quality(right, wrong, missed, borderline)
