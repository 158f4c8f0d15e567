"""A search with the deployment's own steps around it: they may change the query, and narrow or reorder the hits.

Enters: retrieve requests. Leaves: results. Guaranteed: without own steps it is the search itself; no step adds a hit.
"""

from functools import partial

from agents.ports.pipelines import ActivePipelines
from agents.retrieval.retrieve import Retrieve, Warnings
from agents.rules.answer.layer_judging import Depth, Layers
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult

RECEIVE, RANK, RERANK = "retrieve.receive", "retrieve.rank", "retrieve.rerank"


class SearchWithOwnSteps:
    """Retrieve requests in, results out. Writes nothing."""

    def __init__(self, retrieve: Retrieve, pipelines: ActivePipelines) -> None:
        self._retrieve = retrieve
        self._pipelines = pipelines
        self._has_own = pipelines.has_own(RECEIVE) or pipelines.has_own(RANK)

    async def answer(self, request: RetrieveRequest, decided: Depth | None = None) -> tuple[RetrieveResult, Warnings]:
        """Return result and warnings, as `Retrieve.answer`."""
        return await self._searched(request, bare=False, decided=decided)

    async def layers(self, request: RetrieveRequest) -> tuple[Layers, Warnings]:
        """Return the layers that match the question as own steps have left it, as `Retrieve.layers`."""
        if not self._pipelines.has_own(RECEIVE):
            return await self._retrieve.layers(request)
        query = await self._pipelines.run_own(RECEIVE, {"query": request.query})
        return await self._retrieve.layers(request.model_copy(update={"query": query.value}))

    async def turns(self, request: RetrieveRequest) -> tuple[RetrieveResult, Warnings]:
        """Return the same without details of hits."""
        return await self._searched(request, bare=True)

    async def ordered(self, request: RetrieveRequest, result: RetrieveResult) -> tuple[RetrieveResult, Warnings]:
        """Return a result after the own steps that follow, or replace, the language model's order."""
        return await self._after(RERANK, request, result)

    async def _searched(
        self, request: RetrieveRequest, *, bare: bool, decided: Depth | None = None
    ) -> tuple[RetrieveResult, Warnings]:
        search = self._retrieve.turns if bare else partial(self._retrieve.answer, decided=decided)
        if not self._has_own:
            return await search(request)
        query = await self._pipelines.run_own(RECEIVE, {"query": request.query})
        asked = request.model_copy(update={"query": query.value})
        result, warnings = await search(asked)
        result, more = await self._after(RANK, asked, result)
        return result, [*((one.code, one.message) for one in query.warnings), *warnings, *more]

    async def _after(
        self, place: str, request: RetrieveRequest, result: RetrieveResult
    ) -> tuple[RetrieveResult, Warnings]:
        if not self._pipelines.has_own(place):
            return result, []
        own = await self._pipelines.run_own(place, {"query": request.query, "hits": result.hits})
        warnings = [(one.code, one.message) for one in own.warnings]
        return result.model_copy(update={"hits": own.value[: request.top_k]}), warnings
