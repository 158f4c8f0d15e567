"""From the dotted path of a Pydantic model to the scope of a deployment. The path is a setting: its code is trusted."""

import importlib
from typing import Annotated

from pydantic import BeforeValidator

from schemas.scope_models import deployed_scope
from schemas.scopes import Scope


def load_scope(path: object) -> object:
    """The scope made from the model at `package.module.Model`; nothing: the built-in one.

    Raises ValueError for what can't be imported or can't be a scope, and says why.
    """
    if not isinstance(path, str):
        return path
    return deployed_scope(_imported(path)) if path else Scope


def _imported(path: str) -> object:
    module, _, name = path.replace(":", ".").rpartition(".")
    if not module:
        raise ValueError(f"{path!r} is no dotted path, such as package.module.Model")
    try:
        found: object = getattr(importlib.import_module(module), name)
    # Whatever a module does on import may fail in any way.
    except Exception as problem:
        raise ValueError(f"{path!r} can't be imported: {problem}") from problem
    return found


DeployedScope = Annotated[type[Scope], BeforeValidator(load_scope)]
"""A scope model, given by its dotted path."""
