"""A search with the deployment's own steps around it: they may change the query, and narrow or reorder the hits.

Enters: retrieve requests. Leaves: results. Guaranteed: without own steps it is the search itself; no step adds a hit.
`receive` decides the query of a request: the search, own steps and language models all have that one.
"""

from agents.ports.pipelines import ActivePipelines
from agents.retrieval.retrieve import Retrieve, Warnings
from agents.rules.answer.drill_down import Depth, Layers
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult

RECEIVE, RANK, RERANK = "retrieve.receive", "retrieve.rank", "retrieve.rerank"


class SearchWithOwnSteps:
    """Retrieve requests in, results out. Writes nothing."""

    def __init__(self, retrieve: Retrieve, pipelines: ActivePipelines) -> None:
        self._retrieve = retrieve
        self._pipelines = pipelines
        self.changes_query = pipelines.has_own(RECEIVE)
        """True if own steps may change the query of a request."""

    async def receive(self, request: RetrieveRequest) -> tuple[RetrieveRequest, Warnings]:
        """Return a request with the query that own steps have left. Raises Rejected if one fails."""
        if not self.changes_query:
            return request, []
        query = await self._pipelines.run_own(RECEIVE, {"query": request.query})
        return request.model_copy(update={"query": query.value}), [(one.code, one.message) for one in query.warnings]

    async def answer(self, received: RetrieveRequest, decided: Depth | None = None) -> tuple[RetrieveResult, Warnings]:
        """Return result and warnings of a request after `receive`, as `Retrieve.answer`."""
        result, warnings = await self._retrieve.answer(received, decided=decided)
        result, more = await self._after(RANK, received, result)
        return result, [*warnings, *more]

    async def layers(self, received: RetrieveRequest) -> tuple[Layers, Warnings]:
        """Return the layers that match a request after `receive`, as `Retrieve.layers`."""
        return await self._retrieve.layers(received)

    async def turns(self, request: RetrieveRequest) -> tuple[RetrieveResult, Warnings]:
        """Return the same without details of hits, of a request before `receive`."""
        received, warnings = await self.receive(request)
        result, found = await self._retrieve.turns(received)
        result, more = await self._after(RANK, received, result)
        return result, [*warnings, *found, *more]

    async def ordered(self, received: RetrieveRequest, result: RetrieveResult) -> tuple[RetrieveResult, Warnings]:
        """Return a result after the own steps that follow, or replace, the language model's order."""
        return await self._after(RERANK, received, result)

    async def _after(
        self, place: str, request: RetrieveRequest, result: RetrieveResult
    ) -> tuple[RetrieveResult, Warnings]:
        if not self._pipelines.has_own(place):
            return result, []
        own = await self._pipelines.run_own(place, {"query": request.query, "hits": result.hits})
        warnings = [(one.code, one.message) for one in own.warnings]
        return result.model_copy(update={"hits": own.value[: request.top_k]}), warnings
