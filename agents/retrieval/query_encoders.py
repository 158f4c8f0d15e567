"""Who reads a question: the model of its own language, that of memories in another, or both at the same time.

Enters: models, and the text. Leaves: the question's vectors by each. Guaranteed: a model that several lanes share is
asked once; where the question's own model answers, another that can't keeps nobody from an answer.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents.ports.embedder import Embedder
from schemas.failures import ModelMissing, Unavailable
from schemas.vectors import Encoded

EncoderKey = tuple[str, str, str | None, bool]
"""What decides where the question lies: digest of the space, embedder, query prefix, whether it crosses."""

EncodingResult = Encoded | ModelMissing | Unavailable
"""A question's vectors, or why there are none."""


@dataclass(frozen=True, slots=True)
class QueryEncoder:
    """A model that is to read a question; one that crosses reads for memories in another language."""

    model: Embedder
    space: str
    embedder: str
    query_prefix: str | None
    cross_lingual: bool = False

    @property
    def key(self) -> EncoderKey:
        """What lanes share that need the question only once."""
        return self.space, self.embedder, self.query_prefix, self.cross_lingual


async def encode_query(
    readers: Iterable[QueryEncoder], text: str, meanwhile: Callable[[], object]
) -> Mapping[EncoderKey, EncodingResult]:
    """The question by every model that is to see it, once each, or why it has none."""
    models = {one.key: one.model for one in readers}
    asked = [asyncio.ensure_future(_asked(model, text)) for model in models.values()]
    # The tasks run up to where they wait for the models.
    await asyncio.sleep(0)
    meanwhile()
    return dict(zip(models, await asyncio.gather(*asked), strict=True))


def usable_encodings(
    readers: Sequence[QueryEncoder], questions: Mapping[EncoderKey, EncodingResult]
) -> Mapping[bool, Encoded]:
    """A lane's question by whether it crosses. Raises what its first reader failed with; others are done without."""
    found = {one.cross_lingual: questions[one.key] for one in readers}
    first = questions[readers[0].key]
    if not isinstance(first, Encoded):
        raise first
    return {crosses: one for crosses, one in found.items() if isinstance(one, Encoded)}


async def _asked(model: Embedder, text: str) -> EncodingResult:
    try:
        return await model.query(text)
    except (ModelMissing, Unavailable) as failure:
        return failure
