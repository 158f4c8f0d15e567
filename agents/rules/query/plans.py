"""Plan the searches of a retrieve request: index, modes, filter and parsed question. Pure.

A boundary has two indexes: turns, together with the memories distilled from them, and extracted items. Items appear
inside their turns, and are separate hits only if the requested types leave turns out, or their turns are in modes that
are not searched. Parts of files have a search apart, and are shown in their turns. The type `working` selects the
last turns of the request's conversation, as for an assembled context. Most requests need one search.

A mode search is a mode, as declared for some projects, with the filter for its memories. A project may redeclare a mode
of its user; with another embedder or prefix, one mode name needs two searches.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from modestream_client.vocabulary import MemoryType

from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns, MemoryKind, last_turns
from agents.rules.modes.declaring import unknown_mode_error
from agents.rules.query.questions import Question, parse_question
from schemas.failures import Rejected
from schemas.messages.retrieval import ListRequest, RetrieveRequest
from schemas.models.vectors import MemoryFilter
from schemas.moments import milliseconds_of
from schemas.scopes import ANY_VALUE, PROJECT_FIELD
from schemas.state.memories import item_index_name
from schemas.state.modes import GENERAL, Mode, ModeDeclarations

MAX_SEARCHED_MODES = 129
"""Maximum modes of one request: each is a search in its own vector space, about 2 ms."""

MAX_QUERY_ENCODINGS = 16
"""Maximum pairs of embedder and query prefix in one request: each embeds the question, 5 to 60 ms of a model."""

FilteredRequest = RetrieveRequest | ListRequest
"""A request with a selector, types and times."""

Projects = Collection[str] | None
"""Selected projects, None for all."""


@dataclass(frozen=True, slots=True)
class ModeSearch:
    mode: Mode
    where: MemoryFilter


def requested_modes(requested: str | list[str], declared: ModeDeclarations, projects: Projects) -> list[str]:
    """Return the requested mode names in order, without duplicates; `*` is every mode of the selected projects.

    Raises Rejected: `unknown_mode` for a name that no selected project knows, `invalid_value` for an empty list,
    `too_large` for more modes than one request may search.
    """
    names, modes = declared_names(requested, declared, projects), declared.visible(projects)
    visible = [mode.name for mode in modes]
    selected = list(dict.fromkeys(mode for name in names for mode in (visible if name == ANY_VALUE else [name])))
    encodings = {(mode.embedder, mode.query_prefix) for mode in modes if mode.name in selected}
    if len(selected) > MAX_SEARCHED_MODES or len(encodings) > MAX_QUERY_ENCODINGS:
        message = (
            f"the request selects {len(selected)} modes with {len(encodings)} combinations of embedder and query"
            f" prefix; at most {MAX_SEARCHED_MODES} modes with {MAX_QUERY_ENCODINGS} combinations are searched:"
            " name fewer"
        )
        raise Rejected("too_large", message, "mode")
    return selected


def declared_names(requested: str | list[str], declared: ModeDeclarations, projects: Projects) -> list[str]:
    """Return the requested mode names as they are, `*` included.

    Raises Rejected: `unknown_mode` for a name that no selected project knows, `invalid_value` for an empty list.
    """
    names = [requested] if isinstance(requested, str) else requested
    if not names:
        raise Rejected("invalid_value", f"the list of modes is empty; use {ANY_VALUE!r} for all modes", "mode")
    visible = {mode.name for mode in declared.visible(projects)}
    for name in names:
        if name != ANY_VALUE and name not in visible:
            raise unknown_mode_error(name, "mode")
    return names


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
    selected, searches = where.scope.get(PROJECT_FIELD), list[ModeSearch]()
    for name in names:
        of_projects = {mode.project for mode in declared.modes if mode.name == name and mode.project is not None}
        everywhere = declared.find(name, None)
        if not of_projects and everywhere is not None:
            searches.append(ModeSearch(everywhere, replace(where, modes=(name,))))
            continue
        # Projects with the same embedders and prefixes share a search.
        shared: dict[Hashable, tuple[Mode, list[str]]] = {}
        for project in sorted(projects | of_projects) if selected is None else selected:
            if mode := declared.find(name, project):
                key = mode.embedder, mode.query_prefix, mode.passage_prefix, mode.former
                shared.setdefault(key, (mode, []))[1].append(project)
        for mode, sharing in shared.values():
            scope = {**where.scope, PROJECT_FIELD: tuple(sharing)}
            searches.append(ModeSearch(mode, replace(where, modes=(name,), scope=scope)))
    return searches


def count_other_modes(columns: MemoryColumns, where: MemoryFilter, *, include_superseded: bool) -> Mapping[str, int]:
    """Count the memories that match `where` in modes that it excludes, by mode name, without empty modes."""
    searched = where.modes or ()
    if all(kind.mode in searched for kind in columns.kinds):
        return {}
    admitted = columns.admitted(replace(where, modes=None), include_superseded=include_superseded)
    numbers = np.bincount(columns.columns.kinds[admitted], minlength=len(columns.kinds)).tolist()
    counts: dict[str, int] = {}
    for kind, number in columns.kinds.items():
        if kind.mode not in searched and numbers[number]:
            counts[kind.mode] = counts.get(kind.mode, 0) + numbers[number]
    return dict(sorted(counts.items()))


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """One search in the index that `where.boundary` names; it has at least one mode search.

    `where` covers all mode searches. `within` restricts the result to these memories, None for no restriction;
    `shown_as` replaces the type of the hits. Memories of `asked_project` are preferred, None prefers none.
    """

    request: RetrieveRequest
    modes: list[str]
    where: MemoryFilter
    mode_searches: list[ModeSearch]
    question: Question
    within: frozenset[str] | None = None
    shown_as: MemoryType | None = None
    of_parts: bool = False
    """True if it finds parts of files, which are shown in their turns' hits."""
    asked_project: str | None = None

    def restricted_to(self, memory_ids: frozenset[str]) -> "SearchPlan":
        return replace(self, within=memory_ids if self.within is None else self.within & memory_ids)


def plan_searches(
    request: RetrieveRequest,
    declared: ModeDeclarations,
    columns_of: Callable[[str], MemoryColumns],
    *,
    turns_alone: bool = False,
    has_files: bool = False,
) -> list[SearchPlan]:
    """Return at least one search for a request; `turns_alone`: without items in another mode than their turns.

    `columns_of` reads the memories of an index by its name. Raises Rejected for an undeclared mode and for an empty
    list of modes.
    """
    turns, projects = columns_of(request.scope.boundary), request.scope.fields().get(PROJECT_FIELD)
    latest: MemoryKind | None = None
    if request.conversation_id is not None and (request.mode is None or request.prefers_project):
        last = turns.latest(_whole_scope(request), request.conversation_id, 1)
        latest = turns.kind_of(last[0]) if last else None
    asked_project: str | None = None
    if latest is not None and request.prefers_project and (projects is None or len(projects) > 1):
        asked_project = dict(latest.scope)[PROJECT_FIELD]
    if request.mode is None:
        names = [current_mode(None if latest is None else latest.mode, declared, projects)]
    else:
        names = requested_modes(request.mode, declared, projects)
    question = parse_question(request.query, turns.speakers)

    def search(selection: IndexSelection) -> SearchPlan:
        where = replace(where_of(request), boundary=selection.index_name, types=selection.types, modes=tuple(names))
        mode_searches = mode_searches_of(names, declared, where, columns_of(selection.index_name).kinds)
        return SearchPlan(
            request,
            names,
            where,
            mode_searches,
            question,
            selection.within,
            selection.shown_as,
            selection.of_parts,
            asked_project,
        )

    selections = select_indexes(request, turns)
    shows_items_in_turns = request.types is None or "episodic" in request.types
    # Items' columns are read only for the few users that have items in another mode than their turns.
    if shows_items_in_turns and not turns_alone and any(kind.turn_mode not in (None, *names) for kind in turns.kinds):
        selections += _select_apart(request, names, columns_of(item_index_name(request.scope.boundary)))
    if has_files and shows_items_in_turns and (request.types is None or "document" in request.types):
        selections.append(IndexSelection(item_index_name(request.scope.boundary), ("document",), of_parts=True))
    return [search(selection) for selection in selections]


def search_mask(search: SearchPlan, columns: MemoryColumns) -> Mask:
    """Return which memories of the index a search may find."""
    mask = columns.admitted(search.where, include_superseded=search.request.include_superseded)
    if search.within is not None:
        only: Mask = np.zeros(len(mask), np.bool_)
        only[[columns.number_of[memory_id] for memory_id in search.within if memory_id in columns.number_of]] = True
        mask &= only
    return mask


@dataclass(frozen=True, slots=True)
class IndexSelection:
    """One index to search, for these types (None: all); `within`, `shown_as` and `of_parts` as in `SearchPlan`."""

    index_name: str
    types: tuple[str, ...] | None = None
    within: frozenset[str] | None = None
    shown_as: MemoryType | None = None
    of_parts: bool = False


def select_indexes(request: FilteredRequest, turns: MemoryColumns) -> list[IndexSelection]:
    """Return the indexes to search, at least one; `turns` are the columns of the index of turns."""
    boundary, types = request.scope.boundary, request.types
    if types is None or "episodic" in types:
        return [IndexSelection(boundary, None if types is None else tuple(types))]
    others = tuple(type_ for type_ in types if type_ != "working")
    selections = [IndexSelection(item_index_name(boundary), others)] if others else []
    if any(kind.type in others for kind in turns.kinds):
        selections.append(IndexSelection(boundary, others))
    if "working" in types:
        window = frozenset(last_turns(turns, _whole_scope(request), request.conversation_id))
        selections.append(IndexSelection(boundary, ("episodic",), window, "working"))
    return selections or [IndexSelection(boundary, ())]


def _select_apart(request: RetrieveRequest, names: Collection[str], items: MemoryColumns) -> list[IndexSelection]:
    """Return the search for items in these modes whose turns are in others: no hit of their turns has them."""

    def is_apart(kind: MemoryKind) -> bool:
        return kind.turn_mode is not None and kind.mode in names and kind.turn_mode not in names

    if not any(map(is_apart, items.kinds)):
        return []
    numbers = np.flatnonzero(items.columns.live & items.of_kind(is_apart).astype(np.bool_)).tolist()
    types = None if request.types is None else tuple(request.types)
    within = frozenset(items.id_of[number] for number in numbers)
    return [IndexSelection(item_index_name(request.scope.boundary), types, within)]


def _whole_scope(request: FilteredRequest) -> MemoryFilter:
    return MemoryFilter(boundary=request.scope.boundary, scope=request.scope.fields(), as_of_ms=_as_of_ms(request))


def _as_of_ms(request: FilteredRequest) -> int | None:
    return None if request.as_of is None else milliseconds_of(request.as_of)


def where_of(request: FilteredRequest) -> MemoryFilter:
    """Return the filter for the selector, types, times and filters of a request, over all modes."""
    return MemoryFilter(
        boundary=request.scope.boundary,
        scope=request.scope.fields(),
        types=None if request.types is None else tuple(request.types),
        since_ms=None if request.since is None else milliseconds_of(request.since),
        until_ms=None if request.until is None else milliseconds_of(request.until),
        filters=request.filters,
        as_of_ms=_as_of_ms(request),
    )
