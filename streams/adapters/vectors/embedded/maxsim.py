"""MaxSim over packed token vectors, in 8-bit instructions of the processor, and the best of scored rows.

Guaranteed: a score depends on the memory's own tokens and the question alone, to the last digit, whatever the others
and the processor: MaxSim is computed in whole numbers, of 7 bits for a question and of 8 bits for packed tokens.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxruntime import InferenceSession, SessionOptions

from schemas.models.vectors import Matrix, MemoryFilter, Nearest, ScoredPassages
from streams.adapters.vectors.embedded.packed_vectors import PACKED_STEPS, PackedTokens

QuestionNumbers = NDArray[np.int8]
"""Shape (dim, rows), each at most `MAX_QUESTION_NUMBER`."""

ShiftedTokens = NDArray[np.uint8]
"""Packed tokens plus `SHIFT`, shape (tokens, dim): the instructions multiply numbers without a sign by others."""

Products = NDArray[np.int32]
"""Shape (rows of the question, tokens)."""

SHIFT = 128

MAX_QUESTION_NUMBER = 63
"""Without instructions for sums of four products, a processor adds two of them in 16 bits: 2 x 255 x 64 is below 2^15.
With 8 bits it would cut such sums off."""


def shift(tokens: PackedTokens) -> ShiftedTokens:
    """Return packed tokens without a sign."""
    return tokens.view(np.uint8) ^ np.uint8(SHIFT)


def unshift(tokens: ShiftedTokens) -> PackedTokens:
    """Return packed tokens with their sign."""
    return (tokens ^ np.uint8(SHIFT)).view(np.int8)


def multiply(question: QuestionNumbers, tokens: ShiftedTokens) -> Products:
    """Return the products of each row of a question with each of at least one token."""
    products: Products
    [products] = _session().run(None, {"tokens": tokens, "question": question})
    return products


@cache
def _session() -> InferenceSession:
    """Build the graph: products, with those of one row of the question side by side."""
    nodes = [
        helper.make_node("MatMulInteger", ["tokens", "question", "shift"], ["by_token"]),
        helper.make_node("Transpose", ["by_token"], ["products"]),
    ]
    inputs = [_matrix("tokens", TensorProto.UINT8), _matrix("question", TensorProto.INT8)]
    shifted = helper.make_tensor("shift", TensorProto.UINT8, [], [SHIFT])
    graph = helper.make_graph(nodes, "products", inputs, [_matrix("products", TensorProto.INT32)], [shifted])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = SessionOptions()
    options.intra_op_num_threads = 1
    return InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _matrix(name: str, kind: int) -> Any:
    return helper.make_tensor_value_info(name, kind, [None, None])


RowNumbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
ScoreArray = NDArray[np.float64]

WEIGHT_STEPS = 2.0**16
"""Steps of the greatest weight of a question's token. Sums of weighted products are below 2^53: exact in any order."""

PIECE_TOKENS = 16384
"""Tokens per matrix product: the result, 0.6 MB for a usual question, fits into a processor's cache."""


class QuestionSteps(NamedTuple):
    """A question's token vectors in whole steps, a column each; their weights as whole numbers; the score of one step.

    Rounding to these steps moves the cosine of a token by some 2e-3, as the quantisation of the memories' tokens does.
    """

    steps: QuestionNumbers
    weights: NDArray[np.float64]
    unit: float

    @classmethod
    def of(cls, question: Matrix) -> Self:
        """Return the steps of at least one token vector; the greatest number of each becomes `MAX_QUESTION_NUMBER`."""
        sizes = np.abs(question).max(axis=1).astype(np.float64)
        weights = np.rint(sizes * (WEIGHT_STEPS / (sizes.max() or 1.0)))
        steps = np.rint(question * (MAX_QUESTION_NUMBER / np.where(sizes == 0, 1.0, sizes))[:, None])
        unit = float(sizes.max()) / (MAX_QUESTION_NUMBER * WEIGHT_STEPS * float(PACKED_STEPS))
        return cls(np.ascontiguousarray(steps.T, np.int8), weights, unit)

    def maxsim(self, tokens: ShiftedTokens, starts: RowNumbers) -> ScoreArray:
        """Return the score of each text, at least one; text i has the tokens from `starts[i]` on, at least one."""
        ends = np.append(starts[1:], len(tokens))
        best = np.empty((len(self.weights), len(starts)), np.int32)
        first = 0
        while first < len(starts):
            # Texts that have at most `PIECE_TOKENS` together, or one text.
            last = max(int(np.searchsorted(ends, starts[first] + PIECE_TOKENS, "right")), first + 1)
            products = multiply(self.steps, tokens[starts[first] : ends[last - 1]])
            np.maximum.reduceat(products, starts[first:last] - starts[first], axis=1, out=best[:, first:last])
            first = last
        scores: ScoreArray = self.weights @ best * self.unit
        return scores


def time_mask(times: NDArray[np.int64], where: MemoryFilter) -> Mask:
    mask = np.ones(len(times), np.bool_)
    if where.since_ms is not None:
        mask &= times >= where.since_ms
    if where.until_ms is not None:
        mask &= times < where.until_ms
    return mask


def best_of(
    all_ids: Sequence[str], rows: RowNumbers, scores: ScoreArray, limit: int, passages: ScoredPassages | None = None
) -> Nearest:
    """Return the best of these rows of all ids, best first, ties by id, with the passages that were scored."""
    if limit < 1 or not len(rows):
        return Nearest([], np.zeros(0))
    if len(rows) > limit:
        is_kept = scores >= np.partition(scores, -limit)[-limit]
        rows, scores = rows[is_kept], scores[is_kept]
    order = np.argsort(-scores, kind="stable")
    rows, scores = rows[order], scores[order]
    if not bool((scores[1:] < scores[:-1]).all()):
        # Ties by id: the scores are in order already.
        ids = map(all_ids.__getitem__, rows.tolist())
        rows = np.array([row for _, _, row in sorted(zip((-scores).tolist(), ids, rows.tolist(), strict=True))])
    return Nearest(all_ids, scores[:limit], rows[:limit], passages)
