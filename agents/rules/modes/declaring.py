"""Mode commands, the choice of a turn's mode, and the embedder that serves a mode. Pure.

A command returns new `ModeDeclarations` or raises the contract's error; it is idempotent, as commands are delivered at
least once. The mode of a turn: the caller's, then a model's, the project's default, the user's default, `general`.
"""

import numpy as np
from modestream_client.arguments import DeclareMode, DeleteMode, RenameMode, SetDefaultMode
from modestream_client.vocabulary import ModeSource

from agents.rules.index.columns import MISSING, Mask
from agents.rules.index.memory_columns import MemoryColumns, MemoryKind
from schemas.failures import Rejected
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Memory
from schemas.state.modes import GENERAL, EmbedderDescription, FormerEmbedder, Mode, ModeDeclarations

MAX_SHOWN_NAME_CHARS = 80
"""Maximum characters of an unknown name repeated in an error."""


MAX_MODES_PER_SCOPE = 64
"""Maximum modes that a user declares for all projects, and for each project: every question may search all of them, and
each with memories is a vector collection."""

MAX_MODES = 256
"""Maximum modes of a user (they share one row of the table)."""

MAX_FORMER_MODE_NAMES = 32
"""Maximum earlier names of a mode, the latest. They answer a repeated `rename_mode`, and model answers about an earlier
name: both concern the last ones."""

MAX_DELETED_MODES = 256
"""Maximum deleted modes remembered for a user, the latest: a later repetition of `delete_mode` is refused as
`unknown_mode`. A redelivered one is among the very last."""


def require_mode(declared: ModeDeclarations, name: str, project: str | None, field: str) -> Mode:
    """Return the mode of that name that is valid in a project. Raises Rejected, `unknown_mode`."""
    mode = declared.find(name, project)
    if mode is None:
        raise unknown_mode_error(name, field)
    return mode


def unknown_mode_error(name: str, field: str) -> Rejected:
    shown = name[:MAX_SHOWN_NAME_CHARS]
    return Rejected("unknown_mode", f"the mode {shown!r} is not declared; declare_mode declares it", field)


def declare_mode(
    declared: ModeDeclarations,
    wanted: DeclareMode,
    embedder: EmbedderDescription,
    project: str,
    offset: int = -1,
    *,
    created_at: str | None = None,
    former_serves: bool = False,
) -> ModeDeclarations:
    """Add a mode, or change the one of that name; omitted fields keep their values.

    `offset` is the command's; an added mode keeps `created_at`.

    The embedder before becomes the former one, unless the vectors of the former one still serve (`former_serves`): then
    that one stays, and the intermediate one is given up. Declaring the former embedder again restores its prefixes.

    Raises Rejected, `too_large`, beyond the limits of modes.
    """
    target = project if wanted.for_project else None
    before = next((mode for mode in declared.modes if (mode.name, mode.project) == (wanted.name, target)), None)
    if before is None:
        if sum(mode.project == target for mode in declared.modes) >= MAX_MODES_PER_SCOPE:
            where = "all projects" if target is None else "one project"
            raise _no_room(f"a user declares at most {MAX_MODES_PER_SCOPE} modes for {where} (MAX_MODES_PER_SCOPE)")
        if len(declared.modes) >= MAX_MODES:
            raise _no_room(f"a user declares at most {MAX_MODES} modes (MAX_MODES)")
    fields = wanted.model_dump(exclude={"embedder", "is_default", "for_project", "keep_former"}, exclude_none=True)
    effective = declared.find(wanted.name, target)
    # The declaration that this one replaces: for a project that of the user, else the deployment's `general`.
    former = None if effective is None else effective.former
    added = Mode(name=wanted.name, embedder="", embedding_dim=0, project=target, former=former, created_at=created_at)
    old = before or added
    if old.former is not None and old.former.embedder == embedder.name != old.embedder:
        fields = {"query_prefix": old.former.query_prefix, "passage_prefix": old.former.passage_prefix} | fields
    mode = old.model_copy(update=fields | {"embedder": embedder.name, "embedding_dim": embedder.dim})
    if effective is not None and needs_reembedding(effective, mode):
        former = next_former(effective, mode, former_serves=former_serves)
        mode = mode.model_copy(update={"embedded_since": offset, "former": former})
    if needs_refiltering(effective, mode):
        mode = mode.model_copy(update={"filtered_since": offset})
    modes = (*(other for other in declared.modes if other is not before), mode)
    deleted = {key: fate for key, fate in declared.deleted.items() if key != _deleted_key(mode.name, target)}
    after = declared.model_copy(update={"modes": modes, "deleted": deleted})
    return _with_default(after, wanted.name, target) if wanted.is_default else after


def _no_room(limit: str) -> Rejected:
    return Rejected("too_large", f"{limit}; delete_mode removes one", "arguments.name")


def needs_reembedding(before: Mode | None, after: Mode) -> bool:
    """True if the change moves the mode's memories to another vector space."""
    return before is not None and (before.embedder, before.passage_prefix) != (after.embedder, after.passage_prefix)


def next_former(before: Mode, after: Mode, *, former_serves: bool) -> FormerEmbedder:
    """Return the embedder whose vectors are kept when another one is declared; `former_serves`: as in `before`."""
    switched = before.with_former
    if switched is not None and former_serves and needs_reembedding(switched, after):
        return switched.as_former
    return before.as_former


def drop_former(declared: ModeDeclarations, mode: Mode) -> ModeDeclarations:
    """Return the declarations with no former embedder of this mode."""
    without = mode.model_copy(update={"former": None})
    return declared.model_copy(update={"modes": tuple(without if other == mode else other for other in declared.modes)})


def needs_refiltering(before: Mode | None, after: Mode) -> bool:
    """True if the change filters the mode's memories differently; a deleted mode has none."""
    return before is not None and before.visibility != after.visibility


def rename_mode(declared: ModeDeclarations, wanted: RenameMode, project: str) -> tuple[ModeDeclarations, Mode]:
    """Rename a mode and the defaults that name it. Raises Rejected, `unknown_mode` or `conflict`."""
    old = _own(declared, wanted.name, project)
    new = _own(declared, wanted.new_name, project)
    # Redelivery: a renamed project mode no longer hides the user's mode of its old name, which must not be renamed too.
    may_be_renamed = old is None or (new is not None and old.project is None and new.project is not None)
    if may_be_renamed and new is not None and wanted.name in new.formerly:
        return declared, new
    if wanted.name == GENERAL:
        raise Rejected("conflict", "general is every user's mode and keeps its name", "arguments.name")
    if old is None:
        raise unknown_mode_error(wanted.name, "arguments.name")
    if wanted.name == wanted.new_name:
        return declared, old
    if new is not None or wanted.new_name == GENERAL:
        message = f"the mode {wanted.new_name!r} exists; to merge the two, delete_mode with move:{wanted.new_name}"
        raise Rejected("conflict", message, "arguments.new_name")
    formerly = (*old.formerly, old.name)[-MAX_FORMER_MODE_NAMES:]
    mode = old.model_copy(update={"name": wanted.new_name, "formerly": formerly, "former": None})
    modes = tuple(mode if other is old else other for other in declared.modes)
    return _with_defaults(declared, old, mode.name).model_copy(update={"modes": modes}), mode


def delete_mode(declared: ModeDeclarations, wanted: DeleteMode, project: str) -> tuple[ModeDeclarations, Mode]:
    """Delete a mode and clear its defaults. Raises Rejected, `unknown_mode`, `conflict` or `invalid_value`.

    The fate of its memories is recorded in `deleted`, so that a redelivered command can run again.
    """
    mode = _own(declared, wanted.name, project)
    if wanted.name == GENERAL:
        raise Rejected("conflict", "general is every user's mode and can't be deleted", "arguments.name")
    # Redelivery: a deleted project mode no longer hides the user's mode of its name, which must not be deleted too.
    candidates = [] if mode is not None and mode.project is not None else [project, *([None] if mode is None else [])]
    for deleted_in in candidates:
        is_target = wanted.target_mode is None or declared.find(wanted.target_mode, deleted_in) is not None
        if is_target and declared.deleted.get(_deleted_key(wanted.name, deleted_in)) == wanted.memories:
            return declared, Mode(name=wanted.name, embedder="", embedding_dim=0, project=deleted_in)
    if mode is None:
        raise unknown_mode_error(wanted.name, "arguments.name")
    key = _deleted_key(mode.name, mode.project)
    others = [(name, fate) for name, fate in declared.deleted.items() if name != key]
    without = {
        "modes": tuple(other for other in declared.modes if other is not mode),
        "deleted": dict([*others, (key, wanted.memories)][-MAX_DELETED_MODES:]),
    }
    if wanted.target_mode is not None:
        if wanted.target_mode == wanted.name:
            raise Rejected("invalid_value", "a mode's memories can't move to itself", "arguments.memories")
        require_mode(declared.model_copy(update=without), wanted.target_mode, mode.project, "arguments.memories")
    return _with_defaults(declared, mode, None).model_copy(update=without), mode


def set_default_mode(declared: ModeDeclarations, wanted: SetDefaultMode, project: str) -> ModeDeclarations:
    """Set or clear a default. Raises Rejected, `unknown_mode`."""
    target = project if wanted.for_project else None
    if wanted.name is not None:
        require_mode(declared, wanted.name, target, "arguments.name")
    return _with_default(declared, wanted.name, target)


def _own(declared: ModeDeclarations, name: str, project: str) -> Mode | None:
    """Return the declared mode of that name, the project's before the user's; `general` only if it was declared."""
    mode = declared.find(name, project)
    return mode if mode in declared.modes else None


def _with_default(declared: ModeDeclarations, name: str | None, project: str | None) -> ModeDeclarations:
    if project is None:
        return declared.model_copy(update={"user_default": name})
    others = {other: mode for other, mode in declared.project_defaults.items() if other != project}
    return declared.model_copy(update={"project_defaults": others | ({project: name} if name else {})})


def _with_defaults(declared: ModeDeclarations, mode: Mode, name: str | None) -> ModeDeclarations:
    """Replace the defaults that resolve to this mode by `name`, or clear them where it is None."""
    renamed = {
        project: name if declared.find(default, project) is mode else default
        for project, default in declared.project_defaults.items()
    }
    user_default = declared.user_default
    if mode.project is None and user_default == mode.name:
        user_default = name
    project_defaults = {project: default for project, default in renamed.items() if default is not None}
    return declared.model_copy(update={"user_default": user_default, "project_defaults": project_defaults})


def _deleted_key(name: str, project: str | None) -> str:
    return name if project is None else f"{name}/{project}"


ModeChoice = tuple[str, ModeSource]
"""A mode's name and the source of the choice."""


def mode_on_arrival(asked: str | None, project: str, declared: ModeDeclarations, before: Memory | None) -> ModeChoice:
    """Return a turn's mode before any model has read it: the caller's, else that of `before`, else a default.

    `before` is the memory that the turn edits: its explicit mode stays while it is declared, so that an edit reverts
    neither a correction nor a model's choice. Raises Rejected, `unknown_mode`, if the caller's mode is not declared.
    """
    if asked is not None:
        return require_mode(declared, asked, project, "mode").name, "caller"
    if before is not None and before.mode_source in ("caller", "model") and declared.find(before.mode, project):
        return before.mode, before.mode_source
    return declared.default(project)


def mode_after_answer(memory: Memory, answered: str | None, project: str, declared: ModeDeclarations) -> ModeChoice:
    """Return the mode of a memory after a model's answer; an undeclared mode is ignored.

    A mode set by the caller or a command stays. A mode renamed meanwhile is recognised by its former name.
    """
    if memory.mode_source == "caller":
        return memory.mode, memory.mode_source
    if not answered:
        return memory.mode, memory.mode_source
    visible = (mode for mode in declared.modes if mode.project in (project, None))
    chosen = declared.find(answered, project) or next((mode for mode in visible if answered in mode.formerly), None)
    return (chosen.name, "model") if chosen else (memory.mode, memory.mode_source)


def with_mode_source(source: ModeSource, memory: Memory) -> Memory:
    """Change the source of the memory's mode, not the mode."""
    return memory.model_copy(update={"mode_source": source})


def with_decay(memory: Memory, declared: ModeDeclarations) -> Memory:
    """Set the memory's decay to its mode's value for its type."""
    mode = declared.find(memory.mode, memory.scope[PROJECT_FIELD])
    return memory if mode is None else memory.model_copy(update={"decay": mode.decay_of(memory.type)})


def awaits_declared(columns: MemoryColumns, declared: ModeDeclarations, mode: Mode, digest: str | None) -> bool:
    """True if a memory of the mode has a vector, but none in the space of its declared embedder.

    `digest` names that space, None while the model is not loaded: `ready` then counts as embedded.
    """

    def is_of_mode(kind: MemoryKind) -> bool:
        declared_mode = (
            declared.find(mode.name, dict(kind.scope).get(PROJECT_FIELD)) if kind.mode == mode.name else None
        )
        return declared_mode is not None and has_same_vectors(declared_mode, mode)

    of_mode = columns.of_kind(is_of_mode).astype(np.bool_)
    is_made: Mask = columns.columns.spaces != MISSING
    if digest is None:
        return bool((columns.held() & of_mode & ~is_made).any())
    has_vector = columns.held() | (columns.columns.live & is_made)
    return bool((has_vector & of_mode & ~columns.embedded(digest)).any())


def has_same_vectors(first: Mode, other: Mode) -> bool:
    """True if two declarations of a mode make the same vectors, and have the same former ones."""
    vectors = [(mode.embedder, mode.passage_prefix, mode.former) for mode in (first, other)]
    return vectors[0] == vectors[1]
