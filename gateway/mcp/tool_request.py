"""A request of the protocol: the call with its user, and the project that holds unless a tool names one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext

from gateway.service.access import PROJECT
from gateway.service.calls import Call
from gateway.service.wire import Json

DEFAULT_PROJECT = "default"
"""The project of requests that name none (docs/contract.md)."""


def unlimited() -> None:
    """Count nothing: on stdio the only caller is the program that started this process."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One request's call and project. The connection decides about both: no argument of a tool names a user."""

    call: Call
    project: str = DEFAULT_PROJECT
    count_write: Callable[[], None] = unlimited
    """Called before a tool writes. Raises Refused, `too_many_requests`."""

    def scope(self, project: str | None = None) -> Json:
        """Return the scope without its user."""
        return {PROJECT: project or self.project}


RequestOf = Callable[[ServerRequestContext[Any, Any]], ToolRequest]
"""Returns the call and the project of a request. Raises Refused."""
