"""Translate a request into an index filter."""

from datetime import datetime

from schemas.messages.retrieval import RetrieveRequest
from schemas.models.vectors import MemoryFilter
from schemas.moments import milliseconds_of


def where_of(request: RetrieveRequest) -> MemoryFilter:
    """Return the filter for the selector, types and times of a request, over all modes."""
    return MemoryFilter(
        boundary=request.scope.boundary,
        scope=request.scope.fields(),
        types=None if request.types is None else tuple(request.types),
        since_ms=_milliseconds(request.since),
        until_ms=_milliseconds(request.until),
    )


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else milliseconds_of(moment)
