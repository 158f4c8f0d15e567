"""Which turns of a stretch were put into their mode by somebody, and which by default. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from schemas.memories import Memory, VectorLocation
from schemas.modes import ModeSource

EXPLICIT_SOURCES: frozenset[ModeSource] = frozenset({"caller", "model"})
"""Where a mode comes from that was chosen for this very turn."""

Segment = Sequence[Memory]
"""Turns of one conversation that follow each other."""


def default_segments_by_location(stretches: Iterable[Segment]) -> Mapping[VectorLocation, list[Segment]]:
    """The stretches as far as nobody chose their mode, by where their vectors lie; none without vectors."""
    found: defaultdict[VectorLocation, list[Segment]] = defaultdict(list)
    for stretch in stretches:
        ready = [memory for memory in stretch if memory.mode_source not in EXPLICIT_SOURCES and memory.embedding.space]
        places = Counter(memory.embedding.place for memory in ready if memory.embedding.place is not None)
        for place, _ in places.most_common(1):
            found[place].append([memory for memory in ready if memory.embedding.place == place])
    return found


def chosen_segments_by_mode(stretches: Iterable[Segment]) -> Mapping[str, list[Segment]]:
    """The stretches as far as somebody chose their mode, by the mode's name."""
    found: defaultdict[str, list[Segment]] = defaultdict(list)
    for stretch in stretches:
        chosen = [memory for memory in stretch if memory.mode_source in EXPLICIT_SOURCES]
        for mode in dict.fromkeys(memory.mode for memory in chosen):
            found[mode].append([memory for memory in chosen if memory.mode == mode])
    return found
