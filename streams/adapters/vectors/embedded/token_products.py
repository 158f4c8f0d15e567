"""Products of a question's token vectors with packed ones in 8-bit instructions of the processor, by ONNX Runtime.

Enters: whole numbers of 7 bits for a question, of 8 bits for packed tokens. Leaves: their products, exact on every
processor.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxruntime import InferenceSession, SessionOptions

from streams.adapters.vectors.embedded.packed_rows import PackedTokens

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
