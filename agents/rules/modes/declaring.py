"""What the mode commands make of what is declared: a new `ModeDeclarations` each, or the contract's error. Pure.

Every rule gives the same again when it is applied a second time, as commands are delivered at least once.
"""

from schemas.commands import DeclareMode, DeleteMode, RenameMode, SetDefaultMode
from schemas.embedders import EmbedderDescription
from schemas.failures import Rejected
from schemas.modes import GENERAL, Mode, ModeDeclarations

MAX_SHOWN_NAME_CHARS = 80
"""Characters of an unknown name that the error repeats."""


def require_mode(declared: ModeDeclarations, name: str, project: str | None, field: str) -> Mode:
    """The mode of that name that holds in a project. Raises Rejected `unknown_mode_error`."""
    mode = declared.find(name, project)
    if mode is None:
        raise unknown_mode_error(name, field)
    return mode


def unknown_mode_error(name: str, field: str) -> Rejected:
    """What a name that nobody declared is refused with."""
    shown = name[:MAX_SHOWN_NAME_CHARS]
    return Rejected("unknown_mode", f"the mode {shown!r} is not declared; declare_mode declares it", field)


def declare_mode(
    declared: ModeDeclarations, wanted: DeclareMode, embedder: EmbedderDescription, project: str, offset: int = -1
) -> ModeDeclarations:
    """Add a mode, or change the one of that name; what is not said stays as it was. `offset` is the command's."""
    place = project if wanted.for_project else None
    before = next((mode for mode in declared.modes if (mode.name, mode.project) == (wanted.name, place)), None)
    said = wanted.model_dump(exclude={"embedder", "is_default", "for_project"}, exclude_none=True)
    old = before or Mode(name=wanted.name, embedder="", embedding_dim=0, project=place)
    mode = old.model_copy(update=said | {"embedder": embedder.name, "embedding_dim": embedder.dim})
    if needs_reembedding(declared.find(wanted.name, place), mode):
        mode = mode.model_copy(update={"embedded_since": offset})
    modes = (*(one for one in declared.modes if one is not before), mode)
    deleted = {key: fate for key, fate in declared.deleted.items() if key != _deleted_key(mode.name, place)}
    after = declared.model_copy(update={"modes": modes, "deleted": deleted})
    return _with_default(after, wanted.name, place) if wanted.is_default else after


def needs_reembedding(before: Mode | None, after: Mode) -> bool:
    """Whether memories of a mode that changes so lie in another vector space from now on."""
    return before is not None and (before.embedder, before.passage_prefix) != (after.embedder, after.passage_prefix)


def rename_mode(declared: ModeDeclarations, wanted: RenameMode, project: str) -> tuple[ModeDeclarations, Mode]:
    """Give a mode another name, and its defaults too. Raises Rejected `unknown_mode_error` or `conflict`."""
    old = _own(declared, wanted.name, project)
    new = _own(declared, wanted.new_name, project)
    # Once it is renamed, a project's mode no longer hides the user's mode of its old name.
    hidden = old is None or (new is not None and old.project is None and new.project is not None)
    if hidden and new is not None and wanted.name in new.formerly:
        return declared, new
    if wanted.name == GENERAL:
        raise Rejected("conflict", "general is every user's mode and keeps its name", "arguments.name")
    if old is None:
        raise unknown_mode_error(wanted.name, "arguments.name")
    if wanted.name == wanted.new_name:
        return declared, old
    if new is not None or wanted.new_name == GENERAL:
        message = f"there is a mode {wanted.new_name!r}; delete_mode with move:{wanted.new_name} would join them"
        raise Rejected("conflict", message, "arguments.new_name")
    mode = old.model_copy(update={"name": wanted.new_name, "formerly": (*old.formerly, old.name)})
    modes = tuple(mode if one is old else one for one in declared.modes)
    return _with_defaults(declared, old, mode.name).model_copy(update={"modes": modes}), mode


def delete_mode(declared: ModeDeclarations, wanted: DeleteMode, project: str) -> tuple[ModeDeclarations, Mode]:
    """Take a mode away, and the defaults that named it. Raises Rejected `unknown_mode_error` or `conflict`.

    The fate of its memories is kept, so that the command can be carried out again when it comes again.
    """
    mode = _own(declared, wanted.name, project)
    if wanted.name == GENERAL:
        raise Rejected("conflict", "general is every user's mode and can't be deleted", "arguments.name")
    # Once it is deleted, a project's mode no longer hides the user's mode of its name, which nobody meant.
    gone = [] if mode is not None and mode.project is not None else [project, *([None] if mode is None else [])]
    for place in gone:
        if declared.deleted.get(_deleted_key(wanted.name, place)) == wanted.memories:
            return declared, Mode(name=wanted.name, embedder="", embedding_dim=0, project=place)
    if mode is None:
        raise unknown_mode_error(wanted.name, "arguments.name")
    without = {
        "modes": tuple(one for one in declared.modes if one is not mode),
        "deleted": declared.deleted | {_deleted_key(mode.name, mode.project): wanted.memories},
    }
    if wanted.target_mode is not None:
        if wanted.target_mode == wanted.name:
            raise Rejected("invalid_value", "a mode's memories can't move to itself", "arguments.memories")
        require_mode(declared.model_copy(update=without), wanted.target_mode, mode.project, "arguments.memories")
    return _with_defaults(declared, mode, None).model_copy(update=without), mode


def set_default_mode(declared: ModeDeclarations, wanted: SetDefaultMode, project: str) -> ModeDeclarations:
    """Set or take back a default. Raises Rejected `unknown_mode_error`."""
    place = project if wanted.for_project else None
    if wanted.name is not None:
        require_mode(declared, wanted.name, place, "arguments.name")
    return _with_default(declared, wanted.name, place)


def _own(declared: ModeDeclarations, name: str, project: str) -> Mode | None:
    """The declared mode of that name, the project's before the user's; `general` only where it was declared."""
    mode = declared.find(name, project)
    return mode if mode in declared.modes else None


def _with_default(declared: ModeDeclarations, name: str | None, project: str | None) -> ModeDeclarations:
    if project is None:
        return declared.model_copy(update={"user_default": name})
    others = {place: mode for place, mode in declared.project_defaults.items() if place != project}
    return declared.model_copy(update={"project_defaults": others | ({project: name} if name else {})})


def _with_defaults(declared: ModeDeclarations, mode: Mode, name: str | None) -> ModeDeclarations:
    """Defaults that name a declared mode name another one, or none: each only where it means this very mode."""
    meant = {
        place: name if declared.find(default, place) is mode else default
        for place, default in declared.project_defaults.items()
    }
    user_default = declared.user_default
    if mode.project is None and user_default == mode.name:
        user_default = name
    kept = {place: default for place, default in meant.items() if default is not None}
    return declared.model_copy(update={"user_default": user_default, "project_defaults": kept})


def _deleted_key(name: str, project: str | None) -> str:
    return name if project is None else f"{name}/{project}"
