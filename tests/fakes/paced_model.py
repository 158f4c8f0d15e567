"""A small real model in which passages and a query overlap in time, if the process lets them."""

import threading

from schemas.models.vectors import Encoded
from streams.adapters.embedding.inference.fastembed_model import FastembedModel, ModelOutput, PreparedText

MAX_QUERY_S = 0.3
"""Far longer than a thread needs to begin its next passage."""


class PacedModel(FastembedModel):
    """A passage lasts until the first query begins; a query until a passage begins beside it, or `MAX_QUERY_S`.

    `began` is released by each passage; `began_beside_query` are those that began while a query was under way.
    """

    def __init__(self, *loaded: object) -> None:
        """Take what `FastembedModel` takes."""
        super().__init__(*loaded)  # type: ignore[arg-type]
        self.began = threading.Semaphore(0)
        self.began_beside_query: list[str] = []
        self._query_is_under_way = False
        self._first_query = threading.Event()
        self._overlap = threading.Event()

    def run(self, prepared: PreparedText) -> ModelOutput:
        self.began.release()
        if self._query_is_under_way:
            self.began_beside_query.append(prepared.text)
            self._overlap.set()
        self._first_query.wait()
        return super().run(prepared)

    def query(self, text: str, prefix: str | None = None) -> Encoded:
        self._query_is_under_way = True
        self._first_query.set()
        self._overlap.wait(MAX_QUERY_S)
        self._query_is_under_way = False
        return super().query(text, prefix)
