"""Groups, merges and splits of categories on the invented ones that chose no threshold of assignment."""

from itertools import combinations

import numpy as np
import pytest

from agents.rules.categories.taxonomy import CategoryGroups, group_items
from agents.rules.clustering.clustering import normalise_rows
from schemas.models.vectors import Matrix
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel
from tests.builders.categories import CHECKING, CHOOSING, NOWHERE
from tests.builders.exported_models import exported_minilm

TEXTS = {name: texts for name, (_, texts) in {**CHOOSING, **CHECKING}.items()}
ROWS = {
    name: range(start := sum(len(TEXTS[other]) for other in [*TEXTS][:number]), start + len(TEXTS[name]))
    for number, name in enumerate(TEXTS)
}


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    model = FastembedModel.load(LocalModel("general", exported_minilm("int8", tmp_path_factory), 384, "int8"))
    texts = [text for some in TEXTS.values() for text in some] + list(NOWHERE)
    return normalise_rows(np.stack([model.passage(text).pooled for text in texts]))


def halves(name: str) -> dict[str, list[int]]:
    return {f"{name}-1": list(ROWS[name])[::2], f"{name}-2": list(ROWS[name])[1::2]}


def test_halves_of_most_categories_would_be_merged(unit: Matrix) -> None:
    merged = [name for name in TEXTS if group_items(unit, halves(name), ()).merges]
    # 11 or 12 of 14: sums of 8-bit products differ with the processor.
    assert len(merged) >= 11


def test_no_two_different_categories_would_be_merged(unit: Matrix) -> None:
    assert group_items(unit, ROWS, ()).merges == []


def test_most_categories_of_two_topics_would_be_split_and_few_of_one(unit: Matrix) -> None:
    mixed = {f"{first}+{second}": [*ROWS[first], *ROWS[second]] for first, second in combinations(TEXTS, 2)}
    assert len(group_items(unit, mixed, ()).splits) >= 75
    assert len(group_items(unit, ROWS, ()).splits) <= 1


def test_nothing_is_grouped_without_items() -> None:
    assert group_items(np.zeros((0, 3), np.float32), {}, ()) == CategoryGroups([], [], {})
