"""Which turns of a stretch were put into their mode by somebody, and which by default. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from schemas.memories import Memory, Place
from schemas.modes import ModeSource

CHOSEN: frozenset[ModeSource] = frozenset({"caller", "model"})
"""Where a mode comes from that was chosen for this very turn."""

Stretch = Sequence[Memory]
"""Turns of one conversation that follow each other."""


def by_default(stretches: Iterable[Stretch]) -> Mapping[Place, list[Stretch]]:
    """The stretches as far as nobody chose their mode, by where their vectors lie; none without vectors."""
    found: defaultdict[Place, list[Stretch]] = defaultdict(list)
    for stretch in stretches:
        ready = [memory for memory in stretch if memory.mode_source not in CHOSEN and memory.embedding.space]
        places = Counter(memory.embedding.place for memory in ready if memory.embedding.place is not None)
        for place, _ in places.most_common(1):
            found[place].append([memory for memory in ready if memory.embedding.place == place])
    return found


def by_choice(stretches: Iterable[Stretch]) -> Mapping[str, list[Stretch]]:
    """The stretches as far as somebody chose their mode, by the mode's name."""
    found: defaultdict[str, list[Stretch]] = defaultdict(list)
    for stretch in stretches:
        chosen = [memory for memory in stretch if memory.mode_source in CHOSEN]
        for mode in dict.fromkeys(memory.mode for memory in chosen):
            found[mode].append([memory for memory in chosen if memory.mode == mode])
    return found
