"""What every set of embedders promises: the fake, and the registry with tiny models in child processes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from agents.ports.models import Embedders
from schemas.failures import ModelMissing
from schemas.models.vectors import Encoded
from schemas.state.modes import GENERAL, GENERAL_MODE, ConfiguredEmbedder, Mode
from streams.adapters.embedding.catalog.model_loading import LoadBackoff
from streams.adapters.embedding.catalog.presets import MULTILINGUAL_SMALL, CatalogEntry, build_catalog
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from streams.adapters.embedding.inference.local_model import LocalModel
from tests.builders.tiny_models import write_tiny_model
from tests.fakes.embedders import FakeEmbedders

OTHERS = MULTILINGUAL_SMALL.name
GERMAN = "Der Hund schläft im Garten."
WORDS = ("the", "red", "house", "cat", "query", "passage", "note")


class Closable(Embedders, Protocol):
    """Methods of both besides the port."""

    on_loaded: Callable[[str], None]

    async def start(self) -> None: ...

    def status(self) -> dict[str, dict[str, Any]]: ...

    async def close(self) -> None: ...


class EmbeddersUnderTest:
    """Embedders: `general`, `tiny` and `prefixed` have models, and `late` gets its by `bring`."""

    def __init__(self, embedders: Closable, bring: Callable[[str], None]) -> None:
        self.embedders = embedders
        self.bring = bring
        self.loaded: list[str] = []
        self._change = asyncio.Event()
        embedders.on_loaded = self._note

    async def ready(self, mode: Mode) -> Any:
        while True:
            self._change.clear()
            try:
                return self.embedders.of(mode)
            except ModelMissing:
                await self._change.wait()

    async def until(self, name: str) -> None:
        while name not in self.loaded:
            self._change.clear()
            await self._change.wait()

    def _note(self, name: str) -> None:
        self.loaded.append(name)
        self._change.set()


def configured(present: Path, folder: Path) -> Mapping[str, ConfiguredEmbedder]:
    return {
        "tiny": ConfiguredEmbedder(path=present / "tiny", dim=32),
        "prefixed": ConfiguredEmbedder(
            path=present / "prefixed", dim=24, query_prefix="query: ", passage_prefix="passage: "
        ),
        "late": ConfiguredEmbedder(path=folder / "late", dim=16),
    }


DIMS = {"general": 384, "tiny": 32, "prefixed": 24, "late": 16, OTHERS: 384}
PRESENT = ("general", "tiny", "prefixed")


def bring_model(folder: Path, name: str) -> None:
    # No word has the same vector in two models.
    write_tiny_model(folder / name, DIMS[name], words=WORDS, seed=int(name == OTHERS))


def registry_over(present: Path, folder: Path) -> EmbedderRegistry:
    others = CatalogEntry(OTHERS, LocalModel("multilingual-e5-small", folder / OTHERS, 384, "fp32", max_tokens=256))
    english = LocalModel("all-MiniLM-L6-v2", present / "general", 384, "fp32", max_tokens=256)
    own = {OTHERS: others, GENERAL: CatalogEntry(GENERAL, english, multilingual=others)}
    catalogued = build_catalog(folder, configured(present, folder), "int8")
    entries = {name: own.get(entry.name, entry) for name, entry in catalogued.items()}
    return EmbedderRegistry(entries, present / "run", threads=1, backoff=LoadBackoff(0.01, 0.01))


def fake(present: Path, folder: Path) -> EmbeddersUnderTest:
    embedders = FakeEmbedders(configured(present, folder), loaded=(), present=PRESENT)
    return EmbeddersUnderTest(embedders, embedders.load)


def registry(present: Path, folder: Path) -> EmbeddersUnderTest:
    return EmbeddersUnderTest(registry_over(present, folder), partial(bring_model, folder))


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Models that are there from the start. Each has one process, to which the registries of all tests connect."""
    folder = tmp_path_factory.mktemp("present")
    for name in PRESENT:
        bring_model(folder, name)
    keeper = registry_over(folder, folder)
    for name in PRESENT[1:]:
        keeper._model(keeper._entries[name]).process_now()
    yield folder
    asyncio.run(keeper.close())


@pytest.fixture(params=[fake, registry], ids=lambda maker: maker.__name__)
async def stage(request: pytest.FixtureRequest, present: Path, tmp_path: Path) -> AsyncIterator[EmbeddersUnderTest]:
    made: EmbeddersUnderTest = request.param(present, tmp_path)
    await made.embedders.start()
    yield made
    await made.embedders.close()


def mode(embedder: str, **changes: Any) -> Mode:
    return Mode(name="any", embedder=embedder, embedding_dim=1, **changes)


def close(first: Encoded, other: Encoded) -> bool:
    return np.allclose(first.pooled, other.pooled, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "canonical", "dim"),
    [
        ("general", "general", 384),
        ("sentence-transformers/all-MiniLM-L6-v2", "general", 384),
        ("all-MiniLM-L6-v2", "general", 384),
        ("multilingual-small", "multilingual-small", 384),
        ("intfloat/multilingual-e5-small", "multilingual-small", 384),
        ("code", "code", 768),
        ("jinaai/jina-embeddings-v2-base-code", "code", 768),
        ("journal", "journal", 768),
        ("bge-base-en-v1.5", "journal", 768),
        ("research", "research", 1024),
        ("BAAI/bge-large-en-v1.5", "research", 1024),
        ("multilingual", "multilingual", 768),
        ("multilingual-e5-base", "multilingual", 768),
        ("tiny", "tiny", 32),
    ],
)
async def test_embedder_has_descriptions_by_preset_model_and_own_name(
    stage: EmbeddersUnderTest, name: str, canonical: str, dim: int
) -> None:
    described = stage.embedders.described(name)
    assert described
    assert described.name == canonical
    assert described.dim == dim


async def test_every_embedder_is_available_once_with_what_it_reads_and_weighs(stage: EmbeddersUnderTest) -> None:
    available = {embedder.name: embedder for embedder in stage.embedders.available()}
    presets = ["general", "multilingual-small", "code", "journal", "research", "multilingual"]
    assert [name for name in available if name in [*presets, "tiny"]] == [*presets, "tiny"]
    shown = available["code"].languages, available["research"].megabytes
    assert shown == ("English and 30 programming languages", 1200)
    assert len(available) == len(stage.embedders.available())


async def test_unknown_embedder_name_has_no_description_and_no_model(stage: EmbeddersUnderTest) -> None:
    assert stage.embedders.described("nobody") is None
    with pytest.raises(ModelMissing, match="'nobody'"):
        stage.embedders.of(mode("nobody"))
    assert stage.embedders.status()["nobody"]["state"] == "failed"


async def test_general_loads_at_start(stage: EmbeddersUnderTest) -> None:
    assert (await stage.ready(GENERAL_MODE)).fingerprint.embedder == "all-MiniLM-L6-v2"
    assert stage.embedders.status()["general"] == {"state": "ready", "error": None}


async def test_model_is_loaded_on_first_use_and_announced_once(stage: EmbeddersUnderTest) -> None:
    with pytest.raises(ModelMissing, match="'tiny'"):
        stage.embedders.of(mode("tiny"))
    embedder = await stage.ready(mode("tiny"))
    assert stage.loaded.count("tiny") == 1
    assert (await embedder.passage("the red house")).pooled.shape == (32,)
    assert stage.embedders.status()["tiny"] == {"state": "ready", "error": None}


async def test_missing_model_is_loaded_once_its_files_exist(stage: EmbeddersUnderTest) -> None:
    await stage.ready(GENERAL_MODE)
    waiting = asyncio.create_task(stage.ready(mode("late")))
    while stage.embedders.status().get("late", {}).get("state") != "failed":
        await asyncio.sleep(0.01)
    with pytest.raises(ModelMissing, match="'late'"):
        stage.embedders.of(mode("late"))
    assert stage.embedders.status()["late"]["error"]
    stage.bring("late")
    assert (await waiting).fingerprint.dim == 16
    assert "late" in stage.loaded
    assert stage.embedders.status()["late"] == {"state": "ready", "error": None}


async def test_mode_may_name_the_model_and_gets_the_same_space(stage: EmbeddersUnderTest) -> None:
    own = await stage.ready(mode("all-MiniLM-L6-v2"))
    by_model = stage.embedders.of(mode("sentence-transformers/all-MiniLM-L6-v2"))
    assert by_model.fingerprint.digest == own.fingerprint.digest


async def test_passage_prefix_is_applied_and_part_of_the_fingerprint(stage: EmbeddersUnderTest) -> None:
    plain = await stage.ready(mode("tiny"))
    prefixed = stage.embedders.of(mode("tiny", passage_prefix="note "))
    assert prefixed.fingerprint == plain.fingerprint.model_copy(update={"passage_prefix": "note "})
    assert close(await prefixed.passage("the house"), await plain.passage("note the house"))
    assert not close(await prefixed.passage("the house"), await plain.passage("the house"))
    assert close(await prefixed.query("the house"), await plain.query("the house"))


async def test_mode_query_prefix_applies_to_its_queries_only(stage: EmbeddersUnderTest) -> None:
    plain = await stage.ready(mode("tiny"))
    prefixed = stage.embedders.of(mode("tiny", query_prefix="note "))
    assert prefixed.fingerprint == plain.fingerprint
    assert close(await prefixed.query("the house"), await plain.query("note the house"))
    assert not close(await prefixed.query("the house"), await plain.query("the house"))
    assert close(await prefixed.passage("the house"), await plain.passage("the house"))


async def test_without_its_own_prefixes_a_mode_has_the_embedders(stage: EmbeddersUnderTest) -> None:
    own = await stage.ready(mode("prefixed"))
    bare = stage.embedders.of(mode("prefixed", query_prefix="", passage_prefix=""))
    assert own.fingerprint.passage_prefix == "passage: "
    assert bare.fingerprint.passage_prefix == ""
    assert close(await own.passage("the house"), await bare.passage("passage: the house"))
    assert close(await own.query("the house"), await bare.query("query: the house"))
    described = stage.embedders.described("prefixed")
    assert described
    assert described.query_prefix == "query: "
    assert described.passage_prefix == "passage: "


async def test_modes_with_equal_passage_prefix_share_one_inference(stage: EmbeddersUnderTest) -> None:
    first = await stage.ready(mode("tiny"))
    second = stage.embedders.of(mode("tiny", query_prefix="note "))
    other = stage.embedders.of(mode("tiny", passage_prefix="note "))
    vectors = await asyncio.gather(*(embedder.passage("the red house") for embedder in (first, second, other)))
    assert vectors[0].pooled is vectors[1].pooled is (await second.passage("the red house")).pooled
    assert not close(vectors[0], vectors[2])
    assert not vectors[0].pooled.flags.writeable
    assert vectors[0].pooled.dtype == np.float32


async def test_shared_inference_has_the_token_vectors(stage: EmbeddersUnderTest) -> None:
    embedder = await stage.ready(mode("tiny"))
    first, again = [await embedder.passage("the red house") for _ in range(2)]
    assert first.tokens.shape == again.tokens.shape == (2, embedder.fingerprint.token_dim)
    assert np.array_equal(first.tokens, again.tokens)


async def test_cancelled_caller_does_not_cancel_a_shared_inference(stage: EmbeddersUnderTest) -> None:
    embedder = await stage.ready(mode("tiny"))
    first, second = (asyncio.create_task(embedder.passage("the red house")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).pooled.shape == (32,)
    assert first.cancelled()


async def test_english_does_not_wait_for_the_multilingual_model(stage: EmbeddersUnderTest) -> None:
    general = await stage.ready(GENERAL_MODE)
    for read in (general.passage, general.query):
        with pytest.raises(ModelMissing, match=OTHERS):
            await read(GERMAN)
        assert (await read("the red house")).pooled.shape == (384,)
    with pytest.raises(ModelMissing, match=OTHERS):
        stage.embedders.for_text(GENERAL_MODE, GERMAN)
    assert stage.embedders.for_text(GENERAL_MODE, "the red house").fingerprint == general.fingerprint
    assert stage.embedders.for_text(mode("all-MiniLM-L6-v2"), GERMAN).fingerprint.others is None


async def test_general_uses_the_multilingual_model_once_loaded(stage: EmbeddersUnderTest) -> None:
    general = await stage.ready(GENERAL_MODE)
    before = general.fingerprint
    with pytest.raises(ModelMissing):
        await general.passage(GERMAN)
    stage.bring(OTHERS)
    await stage.until(OTHERS)
    alone = await stage.ready(mode(OTHERS))
    assert close(await general.passage(GERMAN), await alone.passage(GERMAN))
    assert close(await general.query(GERMAN), await alone.query(GERMAN))
    assert (await stage.ready(GENERAL_MODE)).fingerprint == before


async def test_general_embedder_by_model_name_embeds_every_language(stage: EmbeddersUnderTest) -> None:
    english, general = await stage.ready(mode("all-MiniLM-L6-v2")), await stage.ready(GENERAL_MODE)
    assert (await english.passage(GERMAN)).pooled.shape == (384,)
    assert close(await english.passage("the red house"), await general.passage("the red house"))
    assert general.fingerprint.others
    assert general.fingerprint.digest != english.fingerprint.digest


async def test_multilingual_model_embeds_any_text_once_loaded(stage: EmbeddersUnderTest) -> None:
    general = await stage.ready(GENERAL_MODE)
    texts = ("the red house", GERMAN)
    assert [stage.embedders.cross_lingual(GENERAL_MODE, text) for text in texts] == [None, None]
    stage.bring(OTHERS)
    await stage.until(OTHERS)
    english, others = await stage.ready(mode("all-MiniLM-L6-v2")), await stage.ready(mode(OTHERS))
    for text, model in zip(texts, (others, english), strict=True):
        other = stage.embedders.cross_lingual(GENERAL_MODE, text)
        assert other is not None
        assert close(await other.query(text), await model.query(text))
        assert not close(await other.query(text), await general.query(text))


async def test_mode_with_one_model_has_no_cross_lingual_model(stage: EmbeddersUnderTest) -> None:
    await stage.ready(mode("tiny"))
    assert stage.embedders.cross_lingual(mode("tiny"), GERMAN) is None
    assert stage.embedders.cross_lingual(mode("late"), GERMAN) is None
