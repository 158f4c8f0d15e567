"""Sum up what a boundary has, from counts of its memories. Pure.

Enters: the counted memories that nothing supersedes, turns and distilled ones, and the declared modes. Leaves: the
record that tells of the boundary.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.vocabulary import EmbeddingStatus

from schemas.messages.boundaries import Boundary, BoundaryMode, EmbeddingCounts
from schemas.moments import EPOCH
from schemas.state.modes import ModeDeclarations


class KindCount(NamedTuple):
    """The number of memories of one project, mode and status, their earliest and latest times in milliseconds."""

    project: str
    mode: str
    status: EmbeddingStatus
    memories: int
    first_ms: int
    last_ms: int


class CountedMemories(NamedTuple):
    """The memories of a boundary that nothing supersedes, and the number of their conversations."""

    kinds: Sequence[KindCount] = ()
    conversations: int = 0


def summarise_boundary(
    boundary: str, counted: CountedMemories, declared: ModeDeclarations, fields: BoundaryFields = USER_BOUNDARY
) -> Boundary:
    """Return what a boundary has; `fields` are those of its scope."""
    kinds = counted.kinds
    statuses = _sums((one.status, one.memories) for one in kinds)
    return Boundary(
        boundary=boundary,
        scope=fields.values_of_key(boundary),
        projects=len({one.project for one in kinds}),
        conversations=counted.conversations,
        memories=sum(statuses.values()),
        modes=_modes(_sums((one.mode, one.memories) for one in kinds), declared),
        embedding=EmbeddingCounts(**{name: statuses[name] for name in EmbeddingCounts.model_fields}),
        corrections=declared.corrections,
        first=_moment(min(one.first_ms for one in kinds)) if kinds else None,
        last=_moment(max(one.last_ms for one in kinds)) if kinds else None,
    )


def _moment(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def _modes(memories: Mapping[str, int], declared: ModeDeclarations) -> dict[str, BoundaryMode]:
    """Return the modes by name; one that several projects declare has the user's embedder, else the first one's."""
    # In the order of `visible`: of one name, the user's mode comes before those of projects.
    embedders = {mode.name: mode.embedder for mode in reversed(declared.visible(None))}
    names = sorted({*embedders, *memories})
    return {name: BoundaryMode(memories=memories.get(name, 0), embedder=embedders.get(name)) for name in names}


def _sums(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    summed: Counter[str] = Counter()
    for name, number in counts:
        summed[name] += number
    return summed
