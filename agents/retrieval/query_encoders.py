"""Embed a question by the model of its language, by the one for memories in other languages, or by both concurrently.

A model that several modes share embeds the question once. If the model of the question's language answers, failures of
the other are ignored.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents.ports.embedder import Embedder
from schemas.failures import ModelMissing, Unavailable
from schemas.vectors import Encoded

EncoderKey = tuple[str, str, str | None, bool]
"""What determines a question's vector: digest of the space, embedder, query prefix, `cross_lingual`."""

EncodingResult = Encoded | ModelMissing | Unavailable
"""A question's vectors, or the reason why there are none."""


@dataclass(frozen=True, slots=True)
class QueryEncoder:
    """A model that embeds a question; `cross_lingual`: for memories in other languages."""

    model: Embedder
    space: str
    embedder: str
    query_prefix: str | None
    cross_lingual: bool = False

    @property
    def key(self) -> EncoderKey:
        """The key under which modes share an encoding."""
        return self.space, self.embedder, self.query_prefix, self.cross_lingual


async def encode_query(
    encoders: Iterable[QueryEncoder], text: str, meanwhile: Callable[[], object]
) -> Mapping[EncoderKey, EncodingResult]:
    """Embed a question once by every model; runs `meanwhile` while the models work."""
    models = {one.key: one.model for one in encoders}
    tasks = [asyncio.ensure_future(_encode(model, text)) for model in models.values()]
    # Let the tasks run until they wait for the models.
    await asyncio.sleep(0)
    meanwhile()
    return dict(zip(models, await asyncio.gather(*tasks), strict=True))


def usable_encodings(
    encoders: Sequence[QueryEncoder], questions: Mapping[EncoderKey, EncodingResult]
) -> Mapping[bool, Encoded]:
    """Return a mode's encodings by `cross_lingual`. Raises the failure of its first encoder; ignores others."""
    found = {one.cross_lingual: questions[one.key] for one in encoders}
    first = questions[encoders[0].key]
    if not isinstance(first, Encoded):
        raise first
    return {cross_lingual: one for cross_lingual, one in found.items() if isinstance(one, Encoded)}


async def _encode(model: Embedder, text: str) -> EncodingResult:
    try:
        return await model.query(text)
    except (ModelMissing, Unavailable) as failure:
        return failure
