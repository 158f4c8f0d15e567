"""Compare two embedders on the turns of a mode: which one places the turns of a conversation nearer together. Pure.

Enters: columns of a boundary's turns; then a vector of each sampled turn by both embedders. Leaves: the sample, always
the same one; then the shares of neighbours found, and whether they differ.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from zlib import crc32

import numpy as np

from agents.rules.clustering.clustering import normalise_rows
from agents.rules.index.columns import MISSING, FloatArray, IntArray
from agents.rules.index.memory_columns import MemoryColumns, MemoryKind
from schemas.models.vectors import Matrix

MAX_TURNS = 500
"""Turns of a sample: of 500, a difference of about three points shows; twice as many take twice as long."""

MAX_CONVERSATION_TURNS = 20
"""Turns of one conversation: one long conversation must not be the whole sample."""

MIN_TURNS = 50
"""Minimum turns: with fewer a difference is chance."""

NEIGHBOURS = 10

SEED = b"compare_embedders"
"""Any constant: the sample is the same each time."""

Verdict = Literal["better", "worse", "no_difference", "same_embedder", "too_few_turns", "model_missing"]


class SampledTurn(NamedTuple):
    """A turn and the index of its conversation."""

    memory_id: str
    conversation: int


class Comparison(NamedTuple):
    """Shares in 0..1, means over all turns; `margin` is twice the standard error of `difference`."""

    recall: float
    general_recall: float
    difference: float
    margin: float
    verdict: Verdict


def sample_turns(memories: MemoryColumns, covers: Callable[[MemoryKind], bool]) -> list[SampledTurn]:
    """Return turns of whole conversations, at most `MAX_TURNS`; conversations of one turn have no neighbours."""
    columns, names = memories.columns, memories.conversation_names()
    turns = columns.live & ~columns.superseded & (columns.conversations != MISSING)
    numbers = np.flatnonzero(turns & memories.of_kind(covers).astype(np.bool_))
    by_conversation: defaultdict[int, list[int]] = defaultdict(list)
    for number, conversation in zip(numbers.tolist(), columns.conversations[numbers].tolist(), strict=True):
        by_conversation[conversation].append(number)
    sampled: list[SampledTurn] = []
    for conversation in sorted(by_conversation, key=lambda index: crc32(SEED + repr(names[index]).encode())):
        of_conversation = by_conversation[conversation][:MAX_CONVERSATION_TURNS]
        if 1 < len(of_conversation) <= MAX_TURNS - len(sampled):
            sampled += [SampledTurn(memories.id_of[number], conversation) for number in of_conversation]
    return sampled


def compare(rows: Matrix, general_rows: Matrix, conversations: IntArray) -> Comparison:
    """Compare the vectors of the same turns, shapes (turns, dim) and (turns, another dim)."""
    of_mode, general = _recall(rows, conversations), _recall(general_rows, conversations)
    differences = of_mode - general
    difference, margin = float(differences.mean()), float(2 * differences.std() / np.sqrt(len(differences)))
    verdict: Verdict = "better" if difference > margin else "worse" if -difference > margin else "no_difference"
    return Comparison(float(of_mode.mean()), float(general.mean()), difference, margin, verdict)


def describe(embedder: str, sample: list[SampledTurn], verdict: Verdict, compared: Comparison | None) -> dict[str, Any]:
    """Return a comparison as the answer of the job."""
    conversations = len({turn.conversation for turn in sample})
    shown: dict[str, Any] = {"embedder": embedder, "turns": len(sample), "conversations": conversations}
    if compared is not None:
        shown |= {
            "recall_at_10": round(compared.recall, 4),
            "general_recall_at_10": round(compared.general_recall, 4),
            "difference": round(compared.difference, 4),
            "margin": round(compared.margin, 4),
        }
    return shown | {"verdict": verdict, "sentence": SENTENCES[verdict]}


SENTENCES: dict[Verdict, str] = {
    "better": "It finds more than general on these memories: keep it.",
    "worse": "It finds less than general on these memories: declare the mode with the embedder general.",
    "no_difference": "It finds as much as general within the margin: general is enough, and costs one model less.",
    "same_embedder": "The mode's embedder is general itself: there is nothing to compare.",
    "too_few_turns": f"The mode has fewer than {MIN_TURNS} turns in conversations of several: compare again later.",
    "model_missing": "A model is not loaded: health says why; run the comparison again when it is.",
}


def _recall(rows: Matrix, conversations: IntArray) -> FloatArray:
    """Return for each turn the share of its conversation among its nearest, relative to the possible maximum."""
    unit = normalise_rows(rows)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -np.inf)
    nearest = np.argsort(-cosine, axis=1, kind="stable")[:, :NEIGHBOURS]
    in_conversation = (conversations[nearest] == conversations[:, None]).sum(axis=1)
    others = (conversations[None, :] == conversations[:, None]).sum(axis=1) - 1
    shares: FloatArray = in_conversation / np.minimum(others, NEIGHBOURS)
    return shares
