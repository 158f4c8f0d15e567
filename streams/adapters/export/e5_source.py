"""multilingual-e5-small, to be exported: weights and tokenizer are made from the one file of an installed package.

Enters: an empty folder. Leaves: the model and the tokenizer's files in it.
"""

from pathlib import Path

from streams.adapters.export.e5_file import E5File
from streams.adapters.export.e5_tokenizer import FILES, write_tokenizer
from streams.adapters.export.e5_weights import (
    WEIGHTS_SHA256,
    config_of,
    read_e5,
    weights_file,
    weights_of,
    words_of,
)
from streams.adapters.export.model_source import MODEL, ModelSource

MAX_TOKENS = 512
"""As many as the model has positions, and as it was published with."""


def write(folder: Path) -> None:
    """Write all files. Raises FileNotFoundError without the package, ValueError for another file than the known one."""
    e5 = read_e5(weights_file())
    _write_model(e5, folder / MODEL)
    write_tokenizer(e5, folder, config_of(e5), MAX_TOKENS)


def _write_model(e5: E5File, file: Path) -> None:
    # Imported here: half a second and fifty megabytes, which nobody needs once the model is there.
    from streams.adapters.export.bert_graph import bert_model  # noqa: PLC0415

    model = bert_model(weights_of(e5), config_of(e5), words_of(e5))
    file.write_bytes(model.SerializeToString(deterministic=True))


E5 = ModelSource("multilingual-e5-small", WEIGHTS_SHA256, MAX_TOKENS, FILES, write)
