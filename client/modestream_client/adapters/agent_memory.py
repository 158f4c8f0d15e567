"""The memory of an agent that must answer without it, too: the adapters' common part.

A call that fails, or takes longer than `LIMIT_S`, is logged and returns nothing. Open the client with an `outbox`:
while the service is away, turns then wait on this machine's disk, and a program that is killed loses none.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from typing import Any, Required, TypedDict, TypeVar, Unpack

from modestream_client.calls import MemoryCalls
from modestream_client.failures import MemoryClientError
from modestream_client.hits import Hit
from modestream_client.sync import SyncMemoryCalls
from modestream_client.vocabulary import Role

log = logging.getLogger(__name__)

T = TypeVar("T")

LIMIT_S = 2.0
"""Seconds that an agent waits for a context, or until a turn is stored."""

AnyMemory = MemoryCalls | SyncMemoryCalls
"""An open client. One without `await` serves every thread and event loop: frameworks that start their own need it."""


class AgentOptions(TypedDict, total=False):
    """Whose memory an agent has, and how much of it."""

    user_id: Required[str]
    project_id: str
    """Default: `default`."""
    budget_tokens: int
    """Limit of a context, at least 300; default: 2,000."""
    user_name: str
    agent_name: str
    """Speakers of the turns, where the framework does not name them."""


class AgentMemory:
    """Recalls and stores for one user."""

    def __init__(self, memory: AnyMemory, **options: Unpack[AgentOptions]) -> None:
        self._memory = memory
        self._user_id = options["user_id"]
        self._project_id = options.get("project_id", "default")
        self._budget_tokens = options.get("budget_tokens", 2000)
        self._speakers: dict[Role, str | None] = {
            "user": options.get("user_name"),
            "assistant": options.get("agent_name"),
        }

    async def recall(self, query: str) -> str | None:
        """Return memories about a query as one text of quoted data, for a message of the user; None without any.

        Recall before the query is stored: a stored one would find itself.
        """
        if not query.strip():
            return None
        context = await self._call(
            "assemble",
            query,
            budget_tokens=self._budget_tokens,
            append_query=False,
            user_id=self._user_id,
            projects=self._project_id,
        )
        return context.messages[1]["content"] if context is not None and context.references else None

    async def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Return memories about a query, best first."""
        answer = await self._call("retrieve", query, top_k=top_k, users=self._user_id, projects=self._project_id)
        return () if answer is None else answer.hits

    async def store(
        self,
        text: str,
        *,
        role: Role,
        conversation_id: str,
        turn_id: str | None,
        speaker: str | None = None,
        **more: Any,
    ) -> bool:
        """Store a turn that has a text; False if it is lost. The same `turn_id` and text again changes nothing."""
        if not text.strip():
            return True
        # Its time is that of the call, also for a turn that waits in the outbox.
        more.setdefault("occurred_at", datetime.now(UTC))
        stored = await self._call(
            "remember",
            text,
            role=role,
            conversation_id=conversation_id,
            turn_id=turn_id,
            speaker=speaker or self._speakers.get(role),
            user_id=self._user_id,
            project_id=self._project_id,
            **more,
        )
        return stored is not None

    async def _call(self, name: str, *positional: Any, **named: Any) -> Any:
        call = getattr(self._memory, name)
        if isinstance(self._memory, SyncMemoryCalls):
            answer = asyncio.to_thread(call, *positional, timeout=LIMIT_S, **named)
        else:
            answer = call(*positional, timeout=LIMIT_S, **named)
        # The client's own limit is later: the service may use all of `timeout`.
        return await unless_away(name, asyncio.wait_for(answer, 2 * LIMIT_S))


async def unless_away(name: str, answer: Awaitable[T]) -> T | None:
    """Return an answer of the memory; None, with a line in the log, if it does not answer."""
    try:
        return await answer
    except (MemoryClientError, TimeoutError) as problem:
        log.warning("the agent goes on without its memory: %s: %s", name, str(problem) or "no answer")
        return None


def turn_id_of(*parts: str | int | None) -> str:
    """Return a deterministic id of these parts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
