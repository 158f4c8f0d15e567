"""Makes an ONNX model's weights 8-bit integers.

Enters: a file with a float32 model. Leaves: the same file, a quarter as large and about twice as fast on a CPU with
8-bit dot products (VNNI). Guaranteed: the same input and library give the same bytes.
"""

from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.quant_utils import add_pre_process_metadata


def quantise(file: Path) -> None:
    """Quantise weights by channel and the table of words; activations are quantised while it runs.

    Signed 8-bit integers by channel: unsigned ones by tensor are slower and lose more. `DefaultTensorType` stands for
    types that can't be inferred.
    """
    model = onnx.load(file)
    add_pre_process_metadata(model)  # Nothing is left to pre-process; without it the root logger gets a warning.
    onnx.save(model, file)
    quantised = file.with_suffix(".int8")
    quantize_dynamic(
        file,
        quantised,
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Gather"],
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    quantised.replace(file)
