"""Resolve the modes of a request, and the searches in vector space that they need. Pure.

A **mode search** is a mode, as declared for some projects, with the filter for its memories. A project may redeclare
a mode of its user; with another embedder or prefix, one mode name needs two searches.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.traits import MemoryKind
from agents.rules.modes.declaring import unknown_mode_error
from schemas.failures import Rejected
from schemas.models.vectors import MemoryFilter
from schemas.scopes import ANY_VALUE, PROJECT_FIELD
from schemas.state.modes import GENERAL, Mode, ModeDeclarations

Projects = Collection[str] | None
"""Selected projects, None for all."""


@dataclass(frozen=True, slots=True)
class ModeSearch:
    """A mode, and the filter for its memories."""

    mode: Mode
    where: MemoryFilter


def requested_modes(requested: str | list[str], declared: ModeDeclarations, projects: Projects) -> list[str]:
    """Return the requested mode names in order, without duplicates; `*` is every mode of the selected projects.

    Raises Rejected: `unknown_mode` for a name that no selected project knows, `invalid_value` for an empty list.
    """
    names = [requested] if isinstance(requested, str) else requested
    if not names:
        raise Rejected("invalid_value", f"the list of modes is empty; use {ANY_VALUE!r} for all modes", "mode")
    visible = [mode.name for mode in declared.visible(projects)]
    for name in names:
        if name != ANY_VALUE and name not in visible:
            raise unknown_mode_error(name, "mode")
    return list(dict.fromkeys(one for name in names for one in (visible if name == ANY_VALUE else [name])))


def current_mode(conversation_mode: str | None, declared: ModeDeclarations, projects: Projects) -> str:
    """Return the mode for a request without one.

    Order: `conversation_mode`, that of the conversation's latest turn; the default of the only selected project; the
    user's default; `general`. Undeclared modes are skipped.
    """
    chosen = set(projects or ())
    default, _ = declared.default(chosen.pop() if len(chosen) == 1 else None)
    visible = {mode.name for mode in declared.visible(projects)}
    return next((name for name in (conversation_mode, default) if name in visible), None) or GENERAL


def mode_searches_of(
    names: Iterable[str], declared: ModeDeclarations, where: MemoryFilter, kinds: Iterable[MemoryKind]
) -> list[ModeSearch]:
    """Return the searches of these modes; `where` is the filter over all modes, `kinds` those of the index."""
    projects = frozenset(dict(kind.scope).get(PROJECT_FIELD, "") for kind in kinds)
    return [search for name in names for search in _mode_searches_of_one(name, declared, where, projects)]


def count_other_modes(
    memory_columns: MemoryColumns, where: MemoryFilter, *, include_superseded: bool
) -> Mapping[str, int]:
    """Count the memories that match `where` in modes that it excludes, by mode name; modes without any are left out."""
    searched = where.modes or ()
    if all(kind.mode in searched for kind in memory_columns.kinds):
        return {}
    admitted = memory_columns.admitted(replace(where, modes=None), include_superseded=include_superseded)
    numbers = np.bincount(memory_columns.columns.kinds[admitted], minlength=len(memory_columns.kinds)).tolist()
    counts: dict[str, int] = {}
    for kind, place in memory_columns.kinds.items():
        if kind.mode not in searched and numbers[place]:
            counts[kind.mode] = counts.get(kind.mode, 0) + numbers[place]
    return dict(sorted(counts.items()))


def _mode_searches_of_one(
    name: str, declared: ModeDeclarations, where: MemoryFilter, stored_projects: frozenset[str]
) -> list[ModeSearch]:
    """Return the searches of one mode name; projects with the same embedder and prefixes share one."""
    selected = where.scope.get(PROJECT_FIELD)
    own = {mode.project for mode in declared.modes if mode.name == name and mode.project is not None}
    everywhere = declared.find(name, None)
    if not own and everywhere is not None:
        return [ModeSearch(everywhere, replace(where, modes=(name,)))]
    shared: dict[tuple[str | None, ...], tuple[Mode, list[str]]] = {}
    for project in sorted(stored_projects | own) if selected is None else selected:
        if mode := declared.find(name, project):
            shared.setdefault((mode.embedder, mode.query_prefix, mode.passage_prefix), (mode, []))[1].append(project)
    return [
        ModeSearch(mode, replace(where, modes=(name,), scope={**where.scope, PROJECT_FIELD: tuple(projects)}))
        for mode, projects in shared.values()
    ]
