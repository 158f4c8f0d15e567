# /// script
# requires-python = ">=3.11,<3.13"
# dependencies = ["mem0ai[nlp]==2.2.1", "fastembed==0.9.1"]
# ///
"""Evidence recall of mem0 without a language model: `uv run bench/peers/mem0_recall.py PATH... > FILE`.

A script with an environment of its own, which has mem0 and nothing of this project. It adds every turn as
`speaker: text [image: caption]` with `infer=False`, one user for each conversation, and searches with mem0's defaults:
vectors, words and entities by spaCy, whose model mem0 downloads. Prints one line of JSON, which
`python -m bench.recall --peers FILE` adds.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("MEM0_TELEMETRY", "False")

MODEL, DIM = "sentence-transformers/all-MiniLM-L6-v2", 384
KS = (5, 10)

Json = dict[str, Any]


def samples(path: Path, only: list[str] | None) -> list[Json]:
    """Return the conversations of a folder of `conv-*.json`, or of a file with a list of them."""
    if path.is_file():
        read = json.loads(path.read_text())
    else:
        read = [json.loads(one.read_text()) for one in sorted(path.glob("conv-*.json"))]
    return [one for one in read if not only or one["sample_id"] in only]


def turns(sample: Json) -> list[tuple[str, str]]:
    """Return id and text of each turn, in order."""
    talk = sample["conversation"]
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key) and isinstance(talk[key], list))
    said = [one for number in numbers for one in talk[f"session_{number}"]]
    caption = {one["dia_id"]: f" [image: {one['blip_caption']}]" for one in said if one.get("blip_caption")}
    return [(one["dia_id"], f"{one['speaker']}: {one['text']}{caption.get(one['dia_id'], '')}") for one in said]


def evidence(question: Json) -> list[str]:
    """Return the ids that a question names; malformed ones are dropped, several in one string parted."""
    parts = [part for text in question["evidence"] for part in re.split(r"[;\s]+", text.strip())]
    matches = [re.fullmatch(r"D:?(\d+):0*(\d+)", part) for part in parts]
    return [f"D{match[1]}:{int(match[2])}" for match in matches if match]


def reading(kind: Any, folder: Path | None) -> Any:
    """Return a class of fastembed's that reads its files from a folder; None downloads them."""

    class Local(kind):
        def __init__(self, *names: Any, **options: Any) -> None:
            super().__init__(*names, specific_model_path=str(folder), **options)

    return kind if folder is None else Local


def opened(folder: Path, model: Path | None, stop_words: Path | None) -> Any:
    """Return a memory that stores below `folder`; files that are not given are downloaded."""
    os.environ["MEM0_DIR"] = str(folder)
    # mem0 reads its variables when it is imported.
    import fastembed  # noqa: PLC0415
    import mem0.embeddings.fastembed as by_fastembed  # noqa: PLC0415
    from mem0 import Memory  # noqa: PLC0415

    by_fastembed.TextEmbedding = reading(fastembed.TextEmbedding, model)
    fastembed.SparseTextEmbedding = reading(fastembed.SparseTextEmbedding, stop_words)
    store = {"path": str(folder / "qdrant"), "embedding_model_dims": DIM, "on_disk": True}
    return Memory.from_config(
        {
            "embedder": {"provider": "fastembed", "config": {"model": MODEL, "embedding_dims": DIM}},
            "vector_store": {"provider": "qdrant", "config": store},
            # Never called: nothing is inferred.
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
        }
    )


def recalls(memory: Any, sample: Json) -> list[list[float]]:
    """Store a conversation, ask its questions, and return the recall of each at each of `KS`."""
    user = sample["sample_id"]
    for turn_id, text in turns(sample):
        memory.add([{"role": "user", "content": text}], user_id=user, metadata={"turn_id": turn_id}, infer=False)
    found = []
    for question in sample["qa"]:
        if not question.get("evidence"):
            continue
        named = evidence(question)
        hits = memory.search(question["question"], top_k=max(KS), filters={"user_id": user})["results"]
        ids = [hit["metadata"]["turn_id"] for hit in hits]
        found.append([len({*ids[:k]} & {*named}) / max(len(named), 1) for k in KS])
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="all-MiniLM-L6-v2 as ONNX")
    parser.add_argument(
        "--stop-words", type=Path, metavar="FOLDER", help="files of Qdrant/bm25, of which it reads english.txt"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = opened(Path(folder), options.model, options.stop_words)
        found = [row for path in options.paths for one in samples(path, options.only) for row in recalls(memory, one)]
    means = [round(100 * sum(row[place] for row in found) / len(found), 1) for place in range(len(KS))]
    name = f"mem0 {version('mem0ai')} (`infer=False`, its defaults, spaCy {version('spacy')})"
    sys.stdout.write(json.dumps({"system": name, "recall": means}) + "\n")


if __name__ == "__main__":
    main()
