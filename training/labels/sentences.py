"""Read the sentences labelled by hand: `development.jsonl`, on which patterns are made, and `held_out.jsonl`.

Each line has `conversation`, `turn`, `role`, `text`, `labels` and `borderline`: labels on which two readers would
differ, counted neither as right nor as missed. The halves share no conversation.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

HERE = Path(__file__).parent

Half = Literal["development", "held_out"]

Label = Literal["safety", "constraint", "preference", "decision", "correction", "error"]

LABELS: tuple[Label, ...] = get_args(Label)


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """A sentence as written, with the labels that it has and those that it may have."""

    conversation: str
    role: str
    text: str
    labels: frozenset[Label]
    borderline: frozenset[Label]


def read_sentences(half: Half) -> list[LabelledSentence]:
    """Return the sentences of a half in file order. Raises ValueError for an unknown label.

    A safety requirement is a constraint as well: there `constraint` is borderline.
    """
    lines = (HERE / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [_sentence(json.loads(line)) for line in lines]


def _sentence(row: dict[str, object]) -> LabelledSentence:
    labels, borderline = _labels(row["labels"]), _labels(row["borderline"])
    if "safety" in labels | borderline:
        borderline |= frozenset[Label]({"constraint"}) - labels
    return LabelledSentence(str(row["conversation"]), str(row["role"]), str(row["text"]), labels, borderline)


def _labels(names: object) -> frozenset[Label]:
    if not isinstance(names, list) or not set(names) <= set(LABELS):
        raise ValueError(f"not labels: {names!r}")
    return frozenset(names)
