"""What every embedder promises, on the fake, on a tiny model and on the real one."""

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from agents.ports.models import Embedder
from schemas.failures import Unavailable
from schemas.models.vectors import Encoded, Matrix
from streams.adapters.embedding.inference.token_vectors import QUANTISATION_STEPS
from tests.fakes.embedder import FakeEmbedder
from tests.harnesses.embedder_kinds import KINDS, WORDS, Closable, Make

pytestmark = pytest.mark.asyncio(loop_scope="module")

ODD_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "emoji": "👩‍👩‍👧 done 🎉",
    "lone surrogate": "half \ud83d of a pair",
    "null and controls": "a\x00b\x07c",
    "right to left": "שלום עולם",
    "no spaces": "東京都は日本の首都です",
    "combining": "e\u0301\u0301\u0301\u0301 z\u0351",
    "special tokens": "[CLS] [SEP] [PAD]",
    "punctuation": "?!… —",
    "one endless word": "a" * 5000,
    "longer than any limit": "word " * 2000,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=KINDS, ids=lambda maker: maker.__name__)
async def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Make]:
    """Embedders shared by all tests of a kind, since loading dominated their time."""
    made: list[Closable] = []
    shared: dict[tuple[str, str], Closable] = {}
    build = request.param(tmp_path_factory)

    def make_one(*, query_prefix: str = "", passage_prefix: str = "", anew: bool = False) -> Embedder:
        prefixes = query_prefix, passage_prefix
        if anew or prefixes not in shared:
            made.append(build(*prefixes))
            shared[prefixes] = made[-1]
        return shared[prefixes]

    yield make_one
    for embedder in made:
        await embedder.close()


@pytest.fixture
def embedder(make: Make) -> Embedder:
    return make()


def close(first: Encoded, other: Encoded) -> bool:
    return np.allclose(first.pooled, other.pooled, atol=1e-6) and np.allclose(first.tokens, other.tokens, atol=1e-6)


def cosine(first: Encoded, other: Encoded) -> float:
    return float(first.pooled @ other.pooled)


async def test_vectors_have_the_dimensions_of_the_fingerprint(embedder: Embedder) -> None:
    fingerprint = embedder.fingerprint
    for encoded in (await embedder.passage("red house"), await embedder.query("red house")):
        assert encoded.pooled.shape == (fingerprint.dim,)
        assert encoded.tokens.shape == (2, fingerprint.token_dim)
        assert encoded.pooled.dtype == encoded.tokens.dtype == np.float32
    assert fingerprint.tokens is not None


async def test_vectors_have_length_one(embedder: Embedder) -> None:
    passage, query = await embedder.passage("the red house"), await embedder.query("the red house")
    for encoded in (passage, query):
        assert np.linalg.norm(encoded.pooled) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(query.tokens, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert np.linalg.norm(passage.tokens, axis=1) == pytest.approx(np.ones(2), abs=0.02)


async def test_passages_token_vectors_lie_on_a_grid_of_8_bit_integers(embedder: Embedder) -> None:
    steps = (await embedder.passage("the red house")).tokens * QUANTISATION_STEPS
    assert np.array_equal(steps, np.rint(steps))
    assert 1 < np.abs(steps).max() < QUANTISATION_STEPS


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("the cat sat on the mat", ["cat", "sat", "mat"]),
        ("On the red, red house?!", ["red", "red", "house"]),
        ("on the", ["on", "the"]),
    ],
)
async def test_passage_keeps_tokens_of_content_words_or_else_all(
    embedder: Embedder, text: str, kept: list[str]
) -> None:
    passage, words = await embedder.passage(text), await embedder.query(text)
    assert words.spans is not None
    telling = [number for number, (start, end) in enumerate(words.spans) if text[start:end] in kept or text == "on the"]
    assert len(passage.tokens) == len(kept)
    assert_alike(passage.tokens, words.tokens[telling])


def assert_alike(rows: Matrix, others: Matrix) -> None:
    """Check that each row is most similar to its counterpart, up to 0.25: projections may differ."""
    products = rows @ others.T
    assert (np.diag(products) >= products.max(axis=1) - 0.25).all()
    assert np.diag(products).min() > 0.5


@pytest.mark.parametrize("prefix", ["", "query: "])
@pytest.mark.parametrize("before", ["", "\u00c9\u00e9 ", "e\u0301 ", "\u6771 ", "\U0001f389 ", "half \ud83d "])
async def test_query_tokens_carry_their_spans_in_the_text(make: Make, prefix: str, before: str) -> None:
    text = f"{before}the red house"
    encoded = await make(query_prefix=prefix).query(text)
    assert encoded.spans is not None
    assert encoded.spans.shape == (len(encoded.tokens), 2)
    assert [text[start:end] for start, end in encoded.spans[-3:]] == ["the", "red", "house"]


async def test_token_vectors_follow_the_order_of_the_text(embedder: Embedder) -> None:
    house = (await embedder.passage("house")).tokens[0]
    first, second = (await embedder.passage("house cat")).tokens
    assert float(house @ first) > float(house @ second)


async def test_same_text_has_the_same_vectors(embedder: Embedder) -> None:
    assert close(await embedder.passage("the red house"), await embedder.passage("the red house"))


async def test_query_and_passage_vectors_agree_without_prefixes(embedder: Embedder) -> None:
    query, passage = await embedder.query("the red house"), await embedder.passage("the red house")
    assert np.allclose(query.pooled, passage.pooled, atol=1e-6)
    assert list((passage.tokens @ query.tokens.T).argmax(axis=1)) == [1, 2]


async def test_texts_that_share_words_are_nearer_than_texts_that_do_not(embedder: Embedder) -> None:
    question = await embedder.query("where is the red house")
    near, far = await embedder.passage("the house is red"), await embedder.passage("deploy on target")
    assert cosine(question, near) > cosine(question, far) + 0.2


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
async def test_odd_texts_have_finite_vectors_of_length_one(embedder: Embedder, text: str) -> None:
    passage, query = await embedder.passage(text), await embedder.query(text)
    for encoded in (passage, query):
        assert np.linalg.norm(encoded.pooled) == pytest.approx(1, abs=1e-5)
        assert np.isfinite(encoded.tokens).all()
        assert len(encoded.tokens) <= embedder.fingerprint.max_tokens
    assert len(passage.tokens) <= len(query.tokens)
    assert query.spans is not None
    assert query.spans.shape == (len(query.tokens), 2)
    assert (query.spans >= 0).all()
    assert (query.spans <= len(text)).all()
    assert (np.diff(query.spans) > 0).all()


@pytest.mark.parametrize("text", ["", " \n\t "], ids=["empty", "blank"])
async def test_text_without_words_has_no_token_vectors(embedder: Embedder, text: str) -> None:
    for encoded in (await embedder.passage(text), await embedder.query(text)):
        assert encoded.tokens.shape == (0, embedder.fingerprint.token_dim)


async def test_concurrent_calls_equal_sequential_calls(embedder: Embedder) -> None:
    texts = [" ".join(WORDS[: 1 + number % len(WORDS)]) + f" {number}" for number in range(40)]
    one_by_one = [await embedder.passage(text) for text in texts]
    together = await asyncio.gather(*(embedder.passage(text) for text in texts))
    assert all(close(*pair) for pair in zip(one_by_one, together, strict=True))


async def test_query_does_not_wait_for_the_passages_before_it(embedder: Embedder) -> None:
    finished: list[str] = []

    async def passage() -> None:
        await embedder.passage("the cat sat on the mat " * 300)
        finished.append("passage")

    async def query() -> None:
        await embedder.query("cat")
        finished.append("query")

    await asyncio.gather(*(passage() for _ in range(50)), query())
    assert finished.index("query") < 25


async def test_passage_prefix_applies_to_passages_only(make: Make) -> None:
    plain, prefixed = make(), make(passage_prefix="passage: ")
    expected = await plain.passage("passage: the red house")
    found = await prefixed.passage("the red house")
    assert np.allclose(found.pooled, expected.pooled, atol=1e-6)
    assert not np.allclose(found.pooled, (await plain.passage("the red house")).pooled, atol=1e-3)
    assert close(await prefixed.query("the red house"), await plain.query("the red house"))


async def test_query_prefix_applies_to_queries_only(make: Make) -> None:
    plain, prefixed = make(), make(query_prefix="query: ")
    expected = await plain.query("query: the red house")
    found = await prefixed.query("the red house")
    assert np.allclose(found.pooled, expected.pooled, atol=1e-6)
    assert not np.allclose(found.pooled, (await plain.query("the red house")).pooled, atol=1e-3)
    assert close(await prefixed.passage("the red house"), await plain.passage("the red house"))


async def test_token_vectors_are_those_of_the_text_without_its_prefix(make: Make) -> None:
    plain, prefixed = make(), make(query_prefix="query: ")
    with_prefix = (await plain.query("query: the red house")).tokens
    assert np.allclose((await prefixed.query("the red house")).tokens, with_prefix[-3:], atol=1e-6)
    assert len((await prefixed.query("")).tokens) == 0


async def test_fingerprint_has_the_passage_prefix_but_no_query_prefix(make: Make) -> None:
    plain = make().fingerprint
    assert make(anew=True).fingerprint.digest == plain.digest
    assert make(query_prefix="query: ").fingerprint.digest == plain.digest
    assert make(passage_prefix="passage: ").fingerprint.digest != plain.digest


async def test_cancelled_passage_does_not_affect_others(embedder: Embedder) -> None:
    tasks = [asyncio.create_task(embedder.passage("the red house")) for _ in range(10)]
    await asyncio.sleep(0)
    tasks[5].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[5], asyncio.CancelledError)
    assert all(isinstance(result, Encoded) for number, result in enumerate(results) if number != 5)


async def test_fake_is_unavailable_during_an_outage_and_works_after_it() -> None:
    embedder = FakeEmbedder()
    embedder.outage = True
    for call in (embedder.passage, embedder.query):
        with pytest.raises(Unavailable):
            await call("the red house")
    embedder.outage = False
    assert len((await embedder.passage("the red house")).tokens) == 2
