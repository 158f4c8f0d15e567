"""all-MiniLM-L6-v2, to be exported: its weights and tokenizer are files of an installed package.

Enters: an empty folder. Leaves: the model and the tokenizer's files in it.
"""

import json
import shutil
from pathlib import Path

from streams.adapters.export.minilm_weights import MINILM_WEIGHTS_SHA256, minilm_folder, read_config, read_weights
from streams.adapters.export.model_source import MODEL, ModelSource

MINILM_MAX_TOKENS = 256
"""Where the published model cuts a text (its `sentence_bert_config.json`); the package's tokenizer says 512."""

COPIED_FILES = ("config.json", "tokenizer.json", "special_tokens_map.json")
TOKENIZER_CONFIG = "tokenizer_config.json"


def write_minilm(folder: Path) -> None:
    """Write all files. Raises FileNotFoundError without the package, ValueError for other weights."""
    # Imported here: half a second and fifty megabytes, which nobody needs once the model is there.
    from streams.adapters.export.bert_graph import bert_model  # noqa: PLC0415

    source = minilm_folder()
    model = bert_model(read_weights(source), read_config(source))
    (folder / MODEL).write_bytes(model.SerializeToString(deterministic=True))
    for name in COPIED_FILES:
        shutil.copyfile(source / name, folder / name)
    config = json.loads((source / TOKENIZER_CONFIG).read_text())
    (folder / TOKENIZER_CONFIG).write_text(
        json.dumps({**config, "model_max_length": MINILM_MAX_TOKENS}, indent=2) + "\n"
    )


MINILM = ModelSource(
    "all-MiniLM-L6-v2", MINILM_WEIGHTS_SHA256, MINILM_MAX_TOKENS, (TOKENIZER_CONFIG, *COPIED_FILES), write_minilm
)
