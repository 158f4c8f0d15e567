"""The token states of conversations, as the product's own embedder gives them, with the weights of questions' tokens.

Enters: conversations and the folder of exported models. Leaves: one `Haystack` each. Guaranteed: passages keep the
tokens that the product keeps, and rows have length 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from schemas.vectors import Matrix, Spans
from streams.adapters.embedding.content_tokens import telling_tokens
from streams.adapters.embedding.fastembed_opening import limit_tokens, opened
from streams.adapters.embedding.local_model import LocalModel
from streams.adapters.embedding.model_export import Precision, export
from streams.adapters.embedding.model_run import ModelRun
from training.projection.conversations import Conversation
from training.projection.token_weights import Weights, piece_counts, pieces, token_weights

Counts = NDArray[np.int64]

MODEL, DIM, MAX_TOKENS = "all-MiniLM-L6-v2", 384, 256
"""The general embedder, as the system starts it."""

PRECISION: Precision = "int8"
"""As the system embeds unless told otherwise; the projection serves both."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """A conversation as token states.

    `passages` and `questions` have shape (tokens, 384), `begins` says where each turn's and `asks` where each
    question's tokens begin; `weights` of a question sum to 1; `target`, shape (questions, turns), is 1 over the number
    of evidence turns there, else 0; `sessions` has each turn's session.
    """

    name: str
    passages: Matrix
    begins: Counts
    questions: Matrix
    asks: Counts
    weights: Weights
    target: Matrix
    sessions: Counts


def haystacks(conversations: Sequence[Conversation], models: Path) -> list[Haystack]:
    """Embed all; exports the model into `models` where it is not there yet. Takes a minute for thirty conversations."""
    folder = export(MODEL, models / f"{MODEL}-{PRECISION}", PRECISION, print)
    onnx = opened(LocalModel(MODEL, folder, DIM, PRECISION))
    limit_tokens(onnx, MAX_TOKENS)
    run = ModelRun(onnx)
    return [_haystack(conversation, run) for conversation in conversations]


def _haystack(conversation: Conversation, run: ModelRun) -> Haystack:
    turns = [_states(run, text) for text in conversation.turns]
    kept = [
        states[telling_tokens(text, spans)] for text, (states, spans) in zip(conversation.turns, turns, strict=True)
    ]
    counts = piece_counts(pieces(text, spans) for text, (_, spans) in zip(conversation.turns, turns, strict=True))
    texts = [question.text for question in conversation.questions]
    asked = [_states(run, text) for text in texts]
    weights = [token_weights(text, spans, counts, len(turns)) for text, (_, spans) in zip(texts, asked, strict=True)]
    return Haystack(
        conversation.name,
        np.concatenate(kept),
        _begins([len(states) for states in kept]),
        np.concatenate([states for states, _ in asked]),
        _begins([len(states) for states, _ in asked]),
        np.concatenate(weights),
        _target(conversation),
        np.array(conversation.sessions),
    )


def _states(run: ModelRun, text: str) -> tuple[Matrix, Spans]:
    output = run("", text)
    states = output.states[output.own]
    rows: Matrix = states / np.linalg.norm(states, axis=1, keepdims=True)
    return rows, output.spans


def _begins(lengths: Sequence[int]) -> Counts:
    return np.concatenate([[0], np.cumsum(lengths)[:-1]])


def _target(conversation: Conversation) -> Matrix:
    target = np.zeros((len(conversation.questions), len(conversation.turns)), np.float32)
    for row, question in zip(target, conversation.questions, strict=True):
        row[list(question.evidence)] = 1 / len(set(question.evidence))
    return target
