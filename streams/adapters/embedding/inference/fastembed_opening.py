"""Opens a folder with an ONNX model through fastembed.

Enters: a described model. Leaves: its session and its tokenizer, which truncates at the given limit. Guaranteed: no
network, nothing written outside the folder, one thread a run, no padding.
"""

from contextlib import suppress

from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.text.onnx_embedding import OnnxTextEmbedding

from streams.adapters.embedding.inference.local_model import LocalModel


def open_model(local: LocalModel) -> OnnxTextEmbedding:
    """Open the session. fastembed knows models by id, so one is registered for each way to read an output."""
    length = "unit" if local.normalize else "raw"
    model_id = f"modestream/{local.pooling}-{length}-{local.dim}-{local.model_file}"
    with suppress(ValueError):  # Registered already; a check beforehand would race with another thread.
        TextEmbedding.add_custom_model(
            model_id,
            pooling=PoolingType(local.pooling.upper()),
            normalization=local.normalize,
            sources=ModelSource(hf=model_id),
            dim=local.dim,
            model_file=local.model_file,
        )
    folder = str(local.directory)
    # With a given folder nothing is looked up; without `cache_dir` a folder is made in the system's temporary one.
    embedding = TextEmbedding(
        model_id, cache_dir=folder, threads=1, providers=["CPUExecutionProvider"], specific_model_path=folder
    )
    if not isinstance(embedding.model, OnnxTextEmbedding):
        raise TypeError(f"fastembed opened {model_id} as {type(embedding.model).__name__}, not as an ONNX text model")
    return embedding.model


def limit_tokens(onnx: OnnxTextEmbedding, max_tokens: int | None) -> int:
    """Set the tokenizer to truncate at `max_tokens`, without padding; return its limit, which may be lower.

    Raises ValueError if there is no usable tokenizer.
    """
    tokenizer = onnx.tokenizer
    if tokenizer is None or tokenizer.truncation is None:
        raise ValueError("the model's folder has no tokenizer with a token limit")
    folder_limit: int = tokenizer.truncation["max_length"]
    limit = min(max_tokens or folder_limit, folder_limit)
    tokenizer.enable_truncation(max_length=limit, direction=tokenizer.truncation["direction"])
    tokenizer.no_padding()  # One text a run: padding to a fixed multiple would only cost time.
    return limit
