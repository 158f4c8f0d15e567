"""Compute the token states of conversations with the product's embedder, and the weights of questions' tokens.

The model must use mean pooling. Passages have the tokens that the product keeps; rows have length 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import Matrix, Spans, Vector
from streams.adapters.embedding.inference.fastembed_model import ModelRun, open_model
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.inference.token_vectors import content_token_mask
from training.projection.conversations import Conversation
from training.projection.token_weights import Weights, piece_counts, pieces, token_weights

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Haystack:
    """A conversation as token states.

    `passages` and `questions` have shape (tokens, dim). `begins` has the first token of each turn, `asks` that of each
    question. The `weights` of a question sum to 1. `target`, shape (questions, turns), is 1 / number of evidence turns
    for evidence, else 0. `sessions` has each turn's session. `means`, shape (2, dim), are those of the pooled vectors
    of turns and of questions.
    """

    name: str
    passages: Matrix
    begins: Counts
    questions: Matrix
    asks: Counts
    weights: Weights
    target: Matrix
    sessions: Counts
    means: Matrix


def build_haystacks(conversations: Sequence[Conversation], local: LocalModel) -> list[Haystack]:
    """Embed all conversations. MiniLM takes a minute for thirty."""
    run = ModelRun(open_model(local))
    turns, questions = partial(_read, run, local.passage_prefix), partial(_read, run, local.query_prefix)
    return [_haystack(conversation, turns, questions) for conversation in conversations]


def _haystack(
    conversation: Conversation, turn: Callable[[str], "_Read"], question: Callable[[str], "_Read"]
) -> Haystack:
    turns = [turn(text) for text in conversation.turns]
    kept = [
        one.states[content_token_mask(text, one.spans)] for text, one in zip(conversation.turns, turns, strict=True)
    ]
    counts = piece_counts(pieces(text, one.spans) for text, one in zip(conversation.turns, turns, strict=True))
    texts = [asked.text for asked in conversation.questions]
    asked = [question(text) for text in texts]
    weights = [token_weights(text, one.spans, counts, len(turns)) for text, one in zip(texts, asked, strict=True)]
    return Haystack(
        conversation.name,
        np.concatenate(kept),
        _begins([len(states) for states in kept]),
        np.concatenate([one.states for one in asked]),
        _begins([len(one.states) for one in asked]),
        np.concatenate(weights),
        _target(conversation),
        np.array(conversation.sessions),
        np.stack([np.mean([one.pooled for one in side], axis=0) for side in (turns, asked)]),
    )


@dataclass(frozen=True, slots=True)
class _Read:
    """Token states of a text, their places, and its pooled vector; vectors have length 1."""

    states: Matrix
    spans: Spans
    pooled: Vector


def _read(run: ModelRun, prefix: str, text: str) -> _Read:
    output = run(run.prepare(prefix, text))
    pooled: Vector = output.states.mean(axis=0)
    return _Read(_unit(output.own_states), output.prepared.spans, _unit(pooled))


def _unit(rows: Matrix) -> Matrix:
    scaled: Matrix = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return scaled


def _begins(lengths: Sequence[int]) -> Counts:
    return np.concatenate([[0], np.cumsum(lengths)[:-1]])


def _target(conversation: Conversation) -> Matrix:
    target = np.zeros((len(conversation.questions), len(conversation.turns)), np.float32)
    for row, question in zip(target, conversation.questions, strict=True):
        row[list(question.evidence)] = 1 / len(set(question.evidence))
    return target
