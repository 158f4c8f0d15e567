"""multilingual-e5-small, to be exported: weights and tokenizer are made from the one file of an installed package.

Enters: an empty folder. Leaves: the model and the tokenizer's files in it.
"""

from pathlib import Path

from streams.adapters.export.e5_file import E5File
from streams.adapters.export.e5_tokenizer import E5_TOKENIZER_FILES, write_tokenizer
from streams.adapters.export.e5_weights import (
    E5_WEIGHTS_SHA256,
    e5_config,
    e5_tensors,
    e5_word_table,
    read_e5,
    weights_file,
)
from streams.adapters.export.model_source import MODEL, ModelSource

E5_MAX_TOKENS = 512
"""As many as the model has positions, and as it was published with."""


def write_e5(folder: Path) -> None:
    """Write all files. Raises FileNotFoundError without the package, ValueError for another file than the known one."""
    e5 = read_e5(weights_file())
    _write_model(e5, folder / MODEL)
    write_tokenizer(e5, folder, e5_config(e5), E5_MAX_TOKENS)


def _write_model(e5: E5File, file: Path) -> None:
    # Imported here: half a second and fifty megabytes, which nobody needs once the model is there.
    from streams.adapters.export.bert_graph import bert_model  # noqa: PLC0415

    model = bert_model(e5_tensors(e5), e5_config(e5), e5_word_table(e5))
    file.write_bytes(model.SerializeToString(deterministic=True))


E5 = ModelSource("multilingual-e5-small", E5_WEIGHTS_SHA256, E5_MAX_TOKENS, E5_TOKENIZER_FILES, write_e5)
