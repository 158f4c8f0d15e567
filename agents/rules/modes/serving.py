"""Say whether a mode's former embedder still serves: derived from the memories, so that no state can be lost. Pure.

When a mode gets another embedder, its memories keep the vectors that they have until those of the new one are made. The
former one serves as long as a memory of the mode has a vector, but none of the declared embedder. So the switch is the
write of the last memory's record, and a memory whose text the new model can't embed does not prevent it.
"""

import numpy as np

from agents.rules.index.columns import MISSING, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.traits import MemoryKind
from schemas.scopes import PROJECT_FIELD
from schemas.state.modes import Mode, ModeDeclarations


def awaits_declared(columns: MemoryColumns, declared: ModeDeclarations, mode: Mode, digest: str | None) -> bool:
    """True if a memory of the mode has a vector, but none in the space of its declared embedder.

    `digest` names that space, None while the model is not loaded: what is `ready` counts as made then.
    """

    def is_of_mode(kind: MemoryKind) -> bool:
        found = declared.find(mode.name, dict(kind.scope).get(PROJECT_FIELD)) if kind.mode == mode.name else None
        return found is not None and has_same_vectors(found, mode)

    of_mode = columns.of_kind(is_of_mode).astype(np.bool_)
    is_made: Mask = columns.columns.spaces != MISSING
    if digest is None:
        return bool((columns.held() & of_mode & ~is_made).any())
    has_vector = columns.held() | (columns.columns.live & is_made)
    return bool((has_vector & of_mode & ~columns.embedded(digest)).any())


def has_same_vectors(one: Mode, other: Mode) -> bool:
    """True if two declarations of a mode make the same vectors, and have the same former ones."""
    vectors = [(mode.embedder, mode.passage_prefix, mode.former) for mode in (one, other)]
    return vectors[0] == vectors[1]
