"""`command.v1`: commands of clients and operators on a scope (docs/contract.md)."""

from datetime import datetime
from typing import Annotated, Any, Self

from modestream_client.operations import COMMANDS
from pydantic import BaseModel, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from schemas.failures import Rejected
from schemas.scopes import ANY_VALUE, PROJECT_FIELD, Scope, scope_of_user
from schemas.state.modes import ForgottenBefore

BESIDE_COMMANDS = frozenset({"list_runs", "get_context", "rate"})
"""Commands that read a log and write no table: they don't delay the commands after them."""


class Command(BaseModel, extra="ignore", strict=True, frozen=True):
    """A command; its arguments are validated by the command's own model."""

    command: Annotated[str, Field(min_length=1)]
    scope: Scope
    arguments: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _of_whole_user(cls, value: Any, validated: ModelWrapValidatorHandler[Self]) -> Self:
        """Admit any project where the operation may concern the whole user."""
        scope = value.get("scope") if isinstance(value, dict) else None
        if not isinstance(scope, dict) or scope.get(PROJECT_FIELD) != ANY_VALUE:
            return validated(value)
        operation = COMMANDS.get(str(value.get("command")))
        if operation is None or not operation.may_concern_user:
            return validated(value)
        command = validated({**value, "scope": {name: scope[name] for name in scope if name != PROJECT_FIELD}})
        found, fields = command.scope, type(command.scope).model_fields
        whole = scope_of_user(found.boundary, fields, found.boundary_fields)
        return command.model_copy(update={"scope": found.model_copy(update=whole)})

    _permitted_projects: tuple[str, ...] | None = PrivateAttr(default=None)
    _author: str | None = PrivateAttr(default=None)
    _turns_before: ForgottenBefore | None = PrivateAttr(default=None)
    _sent_at: datetime | None = PrivateAttr(default=None)

    @property
    def author(self) -> str | None:
        """The principal of the sender; None without one."""
        return self._author

    @property
    def turns_before(self) -> ForgottenBefore | None:
        """The turns written before a `forget`; None if all of them are applied before any command."""
        return self._turns_before

    @property
    def sent_at(self) -> datetime | None:
        """The timestamp of its record: the same when it is delivered again. None if it was passed on without one."""
        return self._sent_at

    @property
    def permitted_projects(self) -> tuple[str, ...] | None:
        """The projects of the user for which the sender has the command's permission; None for all."""
        return self._permitted_projects

    def require_all_projects(self) -> None:
        """Raise Rejected, `not_allowed`, unless the sender is permitted in all projects of the user.

        Called before any action beyond the project of the scope.
        """
        if self._permitted_projects is not None:
            message = f"this {self.command} concerns all projects of the user: it needs a grant without project_id"
            raise Rejected("not_allowed", message)

    def limited_to(self, projects: tuple[str, ...] | None) -> Self:
        """Return the command of a sender that is permitted in these projects, None for all."""
        limited = self.model_copy()
        limited._permitted_projects = projects  # noqa: SLF001 - its own, and no field that a client could send
        return limited

    def by(self, author: str | None) -> Self:
        """Return the command with the principal of its sender."""
        if author is None:
            return self
        signed = self.model_copy()
        signed._author = author  # noqa: SLF001 - as above
        return signed

    def sent(self, at: datetime) -> Self:
        """Return the command with the timestamp of its record."""
        dated = self.model_copy()
        dated._sent_at = at  # noqa: SLF001 - as above
        return dated

    def after(self, turns: ForgottenBefore | None) -> Self:
        """Return the command with the turns that were written before it."""
        dated = self.model_copy()
        dated._turns_before = turns  # noqa: SLF001 - as above
        return dated
