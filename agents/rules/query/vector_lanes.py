"""Which modes a question is asked in, and the lanes that they are searched in. Pure.

A **lane** is a vector space with the memories of a read that lie in it: a mode, as it is declared for some projects.
A project may declare its own mode of a name that its user has too; with another embedder the name is two lanes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.traits import MemoryKind
from agents.rules.modes.declaring import unknown_mode_error
from schemas.failures import Rejected
from schemas.modes import GENERAL, Mode, ModeDeclarations
from schemas.scopes import ANY_VALUE, PROJECT_FIELD
from schemas.vectors import MemoryFilter

Projects = Collection[str] | None
"""The projects that a read selects, None for all."""


@dataclass(frozen=True, slots=True)
class ModeSearch:
    """A mode and the memories of it that a read may see."""

    mode: Mode
    where: MemoryFilter


def requested_modes(asked: str | list[str], declared: ModeDeclarations, projects: Projects) -> list[str]:
    """The names that a request asks for, each once, in its order; `*` is every mode of the selected projects.

    Raises Rejected: `unknown_mode_error` for a name that none of the projects knows, `invalid_value` for no name at all.
    """
    names = [asked] if isinstance(asked, str) else asked
    if not names:
        raise Rejected("invalid_value", f"an empty list names no mode; {ANY_VALUE!r} names them all", "mode")
    visible = [mode.name for mode in declared.visible(projects)]
    for name in names:
        if name != ANY_VALUE and name not in visible:
            raise unknown_mode_error(name, "mode")
    return list(dict.fromkeys(one for name in names for one in (visible if name == ANY_VALUE else [name])))


def current_mode(spoken: str | None, declared: ModeDeclarations, projects: Projects) -> str:
    """The mode that a scope is in, for a request that names none.

    `spoken` is the mode of the conversation's latest turn; then come the default of the one selected project, the
    user's, and `general`. What is not declared there is passed over.
    """
    chosen = set(projects or ())
    default, _ = declared.default(chosen.pop() if len(chosen) == 1 else None)
    visible = {mode.name for mode in declared.visible(projects)}
    return next((name for name in (spoken, default) if name in visible), None) or GENERAL


def mode_searches_of(
    names: Iterable[str], declared: ModeDeclarations, where: MemoryFilter, kinds: Iterable[MemoryKind]
) -> list[ModeSearch]:
    """The lanes of these modes. `where` is the read in all of them; `kinds` are those that its boundary has."""
    held = frozenset(dict(kind.scope).get(PROJECT_FIELD, "") for kind in kinds)
    return [lane for name in names for lane in _lanes_of_one(name, declared, where, held)]


def count_other_modes(roster: MemoryColumns, where: MemoryFilter, *, include_superseded: bool) -> Mapping[str, int]:
    """How many memories a read would see in each mode that it does not look into, by name; only modes with any."""
    searched = where.modes or ()
    if all(kind.mode in searched for kind in roster.kinds):
        return {}
    admitted = roster.admitted(replace(where, modes=None), include_superseded=include_superseded)
    numbers = np.bincount(roster.columns.kinds[admitted], minlength=len(roster.kinds)).tolist()
    counts: dict[str, int] = {}
    for kind, place in roster.kinds.items():
        if kind.mode not in searched and numbers[place]:
            counts[kind.mode] = counts.get(kind.mode, 0) + numbers[place]
    return dict(sorted(counts.items()))


def _lanes_of_one(name: str, declared: ModeDeclarations, where: MemoryFilter, held: frozenset[str]) -> list[ModeSearch]:
    """The lanes of one name: projects whose modes make the same vectors share one."""
    selected = where.scope.get(PROJECT_FIELD)
    own = {mode.project for mode in declared.modes if mode.name == name and mode.project is not None}
    everywhere = declared.find(name, None)
    if not own and everywhere is not None:
        return [ModeSearch(everywhere, replace(where, modes=(name,)))]
    shared: dict[tuple[str | None, ...], tuple[Mode, list[str]]] = {}
    for project in sorted(held | own) if selected is None else selected:
        if mode := declared.find(name, project):
            shared.setdefault((mode.embedder, mode.query_prefix, mode.passage_prefix), (mode, []))[1].append(project)
    return [
        ModeSearch(mode, replace(where, modes=(name,), scope={**where.scope, PROJECT_FIELD: tuple(projects)}))
        for mode, projects in shared.values()
    ]
