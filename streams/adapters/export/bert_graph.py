"""A BERT encoder as an ONNX graph (Devlin et al. 2019, https://arxiv.org/abs/1810.04805), from its published tensors.

Input: `input_ids`, int64, shape (1, tokens): a run takes one text, so there is no padding and no mask; the runtime
refuses a batch. Output: `last_hidden_state`, float32, shape (1, tokens, hidden). The same tensors give the same bytes.
The word embeddings may be in 4 bits, and stay so. A text is one segment, so segment 0 is added to the positions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

from streams.adapters.export.package_weights import WEIGHTS_IN_BLOCK, FourBitTensor, Tensors

OPSET = 20
"""The first ONNX operator set with `Gelu`; `LayerNormalization` is there since 17."""

IR_VERSION = 9
"""The version of the file format for this operator set."""

OUTPUT_NAME = "last_hidden_state"

RUNTIME_DOMAIN = "com.microsoft"
"""The operators of ONNX Runtime, which fastembed runs on: attention in one node, and a lookup in a 4-bit table.
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md"""


class GraphBuilder:
    """Collects nodes and constants; every method returns the name of the value it adds."""

    def __init__(self, weights: Tensors) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.types: list[ValueInfoProto] = []
        self.weights = weights

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant; scalars stay scalars."""
        self.constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def add(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node with one output, which has the node's name."""
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def add_runtime(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node of the runtime's own. ONNX can't infer its output type, which quantisation needs."""
        self.types.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, None))
        return self.add(operator, inputs, output, domain=RUNTIME_DOMAIN, **attributes)

    def split(self, tensor: str, outputs: list[str]) -> list[str]:
        name, parts = f"{tensor}.split", len(outputs)
        self.nodes.append(helper.make_node("Split", [tensor], outputs, name=name, axis=-1, num_outputs=parts))
        return outputs

    def linear(self, tensor: str, weight: NDArray[np.float32], bias: NDArray[np.float32], output: str) -> str:
        """`tensor @ weight.T + bias`, with the weight as published: (out, in)."""
        product = self.add("MatMul", [tensor, self.constant(f"{output}.weight", weight.T)], f"{output}.product")
        return self.add("Add", [product, self.constant(f"{output}.bias", bias)], output)

    def published_linear(self, tensor: str, name: str) -> str:
        return self.linear(tensor, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], name)

    def layer_norm(self, tensor: str, name: str, epsilon: float, output: str) -> str:
        """Normalise the last axis with the tensors of that name."""
        scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        shift = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.add("LayerNormalization", [tensor, scale, shift], output, axis=-1, epsilon=epsilon)


def bert_model(weights: Tensors, config: Mapping[str, Any], words: FourBitTensor | None = None) -> ModelProto:
    """Build and check the encoder. `words` are the word embeddings if `weights` has none.

    Raises KeyError for a missing tensor.
    """
    graph = GraphBuilder(weights)
    states = _embeddings(graph, config, words)
    last = config["num_hidden_layers"] - 1
    for number in range(last + 1):
        layer = f"encoder.layer.{number}"
        # Attend; the operator divides the scores by sqrt(head size).
        name, parts = f"{layer}.attention", ("query", "key", "value")
        # All three in one product.
        weight = np.concatenate([graph.weights[f"{name}.self.{part}.weight"] for part in parts])
        bias = np.concatenate([graph.weights[f"{name}.self.{part}.bias"] for part in parts])
        projected = graph.split(graph.linear(states, weight, bias, f"{name}.qkv"), [f"{name}.{part}" for part in parts])
        heads = config["num_attention_heads"]
        context = graph.add_runtime("MultiHeadAttention", projected, f"{layer}.context", num_heads=heads)
        attended = _residual(graph, context, states, f"{layer}.attention.output", config, f"{layer}.attended")
        wide = graph.add("Gelu", [graph.published_linear(attended, f"{layer}.intermediate.dense")], f"{layer}.gelu")
        output = OUTPUT_NAME if number == last else f"{layer}.states"
        states = _residual(graph, wide, attended, f"{layer}.output", config, output)
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])]
    outputs = [helper.make_tensor_value_info(OUTPUT_NAME, TensorProto.FLOAT, [1, "tokens", config["hidden_size"]])]
    encoder = helper.make_graph(graph.nodes, "bert", inputs, outputs, graph.constants, value_info=graph.types)
    versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME_DOMAIN, 1)]
    model = helper.make_model(encoder, opset_imports=versions, ir_version=IR_VERSION)
    checker.check_model(model)
    return model


def _embeddings(graph: GraphBuilder, config: Mapping[str, Any], words: FourBitTensor | None) -> str:
    weights = graph.weights
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    table = graph.constant("positions", weights["embeddings.position_embeddings.weight"] + segment)
    length = graph.add("Shape", ["input_ids"], "length", start=1, end=2)
    first = graph.constant("first", np.array([0], np.int64))
    positions = graph.add("Slice", [table, first, length, first], "positions.here")
    if words is None:
        vocabulary = graph.constant("words", weights["embeddings.word_embeddings.weight"])
        here = graph.add("Gather", [vocabulary, "input_ids"], "words.here")
    else:
        levels, scales = graph.constant("words", words.packed_levels()), graph.constant("words.scales", words.scales())
        # No zero points: the default for unsigned 4-bit levels is 8, as in these weights.
        sizes = {"bits": 4, "block_size": WEIGHTS_IN_BLOCK, "gather_axis": 0, "quantize_axis": 1}
        here = graph.add_runtime("GatherBlockQuantized", [levels, "input_ids", scales], "words.here", **sizes)
    summed = graph.add("Add", [here, positions], "embeddings.sum")
    return graph.layer_norm(summed, "embeddings.LayerNorm", config["layer_norm_eps"], "embeddings")


def _residual(graph: GraphBuilder, branch: str, states: str, name: str, config: Mapping[str, Any], output: str) -> str:
    """Add the branch to the states and normalise.

    `Sum`, not `Add`: the runtime fuses `Add` and the norm into a kernel that takes longer than both.
    """
    projected = graph.published_linear(branch, f"{name}.dense")
    summed = graph.add("Sum", [projected, states], f"{name}.sum")
    return graph.layer_norm(summed, f"{name}.LayerNorm", config["layer_norm_eps"], output)
