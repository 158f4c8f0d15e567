"""Which mode a turn gets, and why (DESIGN §6)."""

from collections.abc import Collection

from schemas.failures import Rejected
from schemas.modes import GENERAL, ModeSource


def decided_mode(asked: str | None, declared: Collection[str]) -> tuple[str, ModeSource]:
    """The caller's mode, else `general`. Raises Rejected `unknown_mode` for one that is not declared."""
    if asked is None:
        return GENERAL, "fallback"
    if asked not in declared:
        raise Rejected("unknown_mode", f"the mode {asked[:80]!r} is not declared; declare_mode declares it", "mode")
    return asked, "caller"
