"""Load the scope model of a deployment from its dotted path. The path is a setting: its code is trusted."""

import importlib
from typing import Annotated

from pydantic import BeforeValidator

from schemas.scope_models import deployed_scope
from schemas.scopes import Scope


def load_scope(path: object) -> object:
    """Return the scope made from the model at `package.module.Model`; the built-in one for an empty path.

    Raises ValueError if the model can't be imported or can't be a scope.
    """
    if not isinstance(path, str):
        return path
    return deployed_scope(_import(path)) if path else Scope


def _import(path: str) -> object:
    module, _, name = path.replace(":", ".").rpartition(".")
    if not module:
        raise ValueError(f"{path!r} is not a dotted path such as package.module.Model")
    try:
        found: object = getattr(importlib.import_module(module), name)
    # The import of a module may raise anything.
    except Exception as problem:
        raise ValueError(f"{path!r} can't be imported: {problem}") from problem
    return found


DeployedScope = Annotated[type[Scope], BeforeValidator(load_scope)]
"""A scope model, set by its dotted path."""
