"""Embed a question once by every model that its modes need, and weight its tokens."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.ports.embedder import Embedder
from agents.retrieval.lexical_features import LexicalFeatures
from agents.rules.query.plans import SearchPlan
from agents.rules.ranking.late_interaction import weight_query_tokens
from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded

EncoderKey = tuple[str, str | None, bool]
"""What determines a question's vector: embedder, query prefix, `cross_lingual`; not the prefix of passages."""

EncodingResult = Encoded | ModelMissing | Unavailable
"""A question's vectors, or the reason why there are none."""


@dataclass(frozen=True, slots=True)
class QueryEncoder:
    """A model that embeds a question; `cross_lingual`: for memories in other languages."""

    model: Embedder
    embedder: str
    query_prefix: str | None
    cross_lingual: bool = False

    @property
    def key(self) -> EncoderKey:
        """The key under which modes share an encoding."""
        return self.embedder, self.query_prefix, self.cross_lingual


async def encode_query(
    encoders: Iterable[QueryEncoder], text: str, meanwhile: Callable[[], object], boundary: str = ""
) -> Mapping[EncoderKey, EncodingResult]:
    """Embed a question once by every model; runs `meanwhile` while the models work."""
    models = {one.key: one.model for one in encoders}
    tasks = [asyncio.ensure_future(_encode(model, text, boundary)) for model in models.values()]
    # Let the tasks run until they wait for the models.
    await asyncio.sleep(0)
    meanwhile()
    found = [await tasks[0]] if len(tasks) == 1 else await asyncio.gather(*tasks)
    return dict(zip(models, found, strict=True))


def usable_encodings(
    encoders: Sequence[QueryEncoder], questions: Mapping[EncoderKey, EncodingResult]
) -> Mapping[bool, Encoded]:
    """Return a mode's encodings by `cross_lingual`. Raises the failure of its first encoder; ignores others."""
    found = {one.cross_lingual: questions[one.key] for one in encoders}
    first = questions[encoders[0].key]
    if not isinstance(first, Encoded):
        raise first
    return {cross_lingual: one for cross_lingual, one in found.items() if isinstance(one, Encoded)}


async def _encode(model: Embedder, text: str, boundary: str) -> EncodingResult:
    try:
        return await model.query(text, boundary=boundary)
    except (ModelMissing, Unavailable) as failure:
        return failure


def weigh_tokens(question: EncodingResult, search: SearchPlan, words: LexicalFeatures) -> EncodingResult:
    """Scale the token vectors of a question by the weights of its tokens among these memories."""
    if not isinstance(question, Encoded):
        return question
    asked, features = search.question, words.now()
    frequencies = {term: len(where.numbers) for term, where in zip(asked.terms, features.postings, strict=True)}
    spans = np.zeros((len(question.tokens), 2), np.int32) if question.spans is None else question.spans
    tokens = weight_query_tokens(question.tokens, spans, asked.text, frequencies, features.documents)
    return replace(question, tokens=tokens)
