"""Have a cross-encoder order the best hits of a question, where the request asks for it.

Enters: a question with its hits. Leaves: their order, with scores. Writes nothing. The model runs on this machine, as
the embedders do: it reads private hits as well.
"""

from collections.abc import Sequence

from modestream_client.hits import Hit

from agents.ports.cross_encoder import CrossEncoder
from agents.retrieval.asking import NoModelAnswer
from agents.rules.answer.reranking import MAX_READ_HITS, READER_NAME, ReadHits, text_to_read
from agents.rules.text.non_english import is_non_english
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.retrieval import RetrieveRequest


class LocalRerank:
    """Hits in, their order out."""

    def __init__(self, cross_encoder: CrossEncoder, timeout_s: float, *, is_on: bool = True) -> None:
        """`timeout_s` is for the caller of `order`; `is_on`: the pipelines have this step."""
        self.timeout_s = timeout_s
        self._cross_encoder = cross_encoder
        self._is_on = is_on

    def is_asked(self, request: RetrieveRequest) -> bool:
        """True if the best hits of this request are to be ordered."""
        return self._is_on and request.rerank == READER_NAME

    def is_available(self) -> bool:
        """True: only a call shows whether the model can be loaded."""
        return True

    def widened(self, request: RetrieveRequest) -> RetrieveRequest:
        """Return the request with as many hits as are read, or more, whatever their scores: they will change."""
        return request.model_copy(update={"top_k": max(request.top_k, MAX_READ_HITS), "min_score": 0.0})

    def shown(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Return the hits that are read."""
        return hits[:MAX_READ_HITS]

    async def order(self, request: RetrieveRequest, hits: Sequence[Hit]) -> ReadHits:
        """Return the order of the best hits. Raises NoModelAnswer."""
        if is_non_english(request.query):
            raise NoModelAnswer("the question is not in English, the only language that the cross-encoder reads")
        read = self.shown(hits)
        texts = [text_to_read(hit) for hit in read]
        try:
            found = await self._cross_encoder.scores(request.query, texts, boundary=request.scope.boundary)
        except (ModelMissing, Unavailable, RuntimeError) as problem:
            raise NoModelAnswer(str(problem)) from problem
        return ReadHits({hit.memory_id: score for hit, score in zip(read, found, strict=True)})
