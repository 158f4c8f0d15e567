"""CrewAI's memory: the memories for a task in its prompt, its result stored after it.

    crew = Crew(agents=[…], tasks=[…], memory=ModestreamMemory.of(memory, conversation_id="c1", user_id="u1"))

A task and its result are one turn of its agent: the same text again in the same conversation changes nothing. Agents
get CrewAI's tools to search and to save. CrewAI's own language model, embedder and store for memories are not used.
`memory` is an open `SyncHttpMemoryClient` or `SyncMemoryClient`: CrewAI's memories have no `await`. Needs the extra
`crewai`.
"""

import re
from typing import Any, Self

from crewai.memory.types import MemoryMatch, MemoryRecord
from crewai.memory.unified_memory import Memory
from pydantic import PrivateAttr

from modestream_client.adapters.agent_memory import LIMIT_S, turn_id_of
from modestream_client.hits import Hit
from modestream_client.sync import SyncMemoryCalls

MAX_FOUND = 100
"""Maximum memories found for a query."""


class _NoStorage:
    """In place of CrewAI's storage, for calls that `ModestreamMemory` does not have."""

    def __getattr__(self, name: str) -> Any:
        """Raise NotImplementedError."""
        raise NotImplementedError(f"{name}: use the client or the pages of modestream")


class ModestreamMemory(Memory):
    """The memories of one user and project. Calls raise MemoryClientError, with which CrewAI goes on.

    A `scope` selects the memories that were saved with it, and not those below it.
    """

    _memory: SyncMemoryCalls = PrivateAttr()
    _user_id: str = PrivateAttr()
    _project_id: str = PrivateAttr()
    _conversation_id: str = PrivateAttr()

    @classmethod
    def of(cls, memory: SyncMemoryCalls, *, user_id: str, conversation_id: str, project_id: str = "default") -> Self:
        """Return the memory of a user's conversation, for one run of a crew or several."""
        made = cls(storage=_NoStorage())
        made._memory, made._conversation_id = memory, conversation_id
        made._user_id, made._project_id = user_id, project_id
        return made

    def extract_memories(self, content: str) -> list[str]:
        """Return the text without the agent's thoughts before its answer: the service extracts."""
        return [re.sub(r"(?s)(\nResult: ).*\bFinal Answer:\s*", r"\1", content)]

    def remember(self, content: str, scope: str | None = None, **about: Any) -> MemoryRecord | None:  # type: ignore[override]
        """Store a turn of an agent. Of `about` categories, metadata, importance, source and agent_role are kept."""
        if self.read_only:
            return None
        kept = {"scope": scope, "categories": about.get("categories"), "source": about.get("source")}
        metadata = {**(about.get("metadata") or {}), **{name: value for name, value in kept.items() if value}}
        said = self._memory.remember(
            content,
            role="assistant",
            speaker=about.get("agent_role"),
            conversation_id=self._conversation_id,
            turn_id=turn_id_of(self._conversation_id, scope, content),
            importance=about.get("importance"),
            metadata=metadata,
            timeout=LIMIT_S,
            user_id=self._user_id,
            project_id=self._project_id,
        )
        identity = {"id": said.memory_id} if said.memory_id else {}
        return MemoryRecord(content=content, scope=scope or "/", metadata=metadata, **identity)

    def remember_many(self, contents: list[str], scope: str | None = None, **about: Any) -> list[MemoryRecord]:  # type: ignore[override]
        """Store turns in the background; the next `recall` finds them."""
        for content in contents:
            self._submit_save(self.remember, content, scope, **about)
        return []

    def recall(self, query: str, scope: str | None = None, limit: int = 10, **_: Any) -> list[MemoryMatch]:  # type: ignore[override]
        """Return memories about a query, best first, each with its day and speaker."""
        self.drain_writes()
        answer = self._memory.retrieve(
            query,
            users=self._user_id,
            projects=self._project_id,
            filters={"metadata": {"scope": scope}} if scope else None,
            top_k=min(limit, MAX_FOUND),
            timeout=LIMIT_S,
        )
        return [MemoryMatch(record=_record_of(hit), score=hit.score) for hit in answer.hits]


def _record_of(hit: Hit) -> MemoryRecord:
    said = {"speaker": hit.speaker or hit.role, "said_on": hit.occurred_at[:10]}
    return MemoryRecord(id=hit.memory_id, content=hit.text, metadata=said, created_at=hit.occurred_at)
