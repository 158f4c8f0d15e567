"""Accuracy of the general model on invented categories that did not choose the thresholds."""

from collections.abc import Iterable

import numpy as np
import pytest

from agents.rules.categories.assignment import BACKGROUND_TOPICS, Background, category_texts, match_categories
from schemas.models.vectors import Matrix
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel
from tests.builders.categories import CHECKING, CHOOSING, NOWHERE
from tests.builders.exported_models import exported_minilm


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FastembedModel:
    return FastembedModel.load(LocalModel("general", exported_minilm("int8", tmp_path_factory), 384, "int8"))


def vectors(model: FastembedModel, texts: Iterable[str]) -> Matrix:
    return np.stack([model.passage(text).pooled for text in texts])


def test_category_precision_and_recall_on_held_out_sentences(model: FastembedModel) -> None:
    here = [(text, name) for name, (_, texts) in CHECKING.items() for text in texts]
    elsewhere = [(text, "") for _, texts in CHOOSING.values() for text in texts] + [(text, "") for text in NOWHERE]
    sentences = here + elsewhere
    categories = {name: vectors(model, category_texts(name, text)) for name, (text, _) in CHECKING.items()}
    background = Background.of(vectors(model, BACKGROUND_TOPICS))
    found = match_categories(vectors(model, (text for text, _ in sentences)), categories, background)
    put = [(assignment.name, name) for some, (_, name) in zip(found, sentences, strict=True) for assignment in some]
    right = sum(assigned == name for assigned, name in put)
    assert right / len(put) >= 0.8
    assert right / len(here) >= 0.65
