"""Google ADK's memory service: stores sessions, and finds memories that answer a question.

    runner = Runner(agent=agent, app_name="shop", memory_service=ModestreamMemoryService(memory), …)

The app's name is the project, the user's id the user, a session a conversation, an event a turn. Adding a session again
stores only new events. Needs the extra `adk`.
"""

from datetime import UTC, datetime

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from modestream_client.adapters.agent_memory import AgentMemory, AnyMemory
from modestream_client.hits import Hit

USER = "user"
"""The author of a user's events; all others are agents."""


class ModestreamMemoryService(BaseMemoryService):
    """Stores sessions, and searches them by user and app."""

    def __init__(self, memory: AnyMemory, *, top_k: int = 10) -> None:
        """`top_k` is the number of memories that answer a question, 1 to 100."""
        self._memory = memory
        self._top_k = top_k

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the session's events that have text, in order; stop at the first that can't be stored."""
        memory = AgentMemory(self._memory, user_id=session.user_id, project_id=session.app_name)
        for event in session.events:
            parts = event.content.parts if event.content else None
            is_stored = await memory.store(
                "\n".join(part.text for part in parts or () if part.text and not part.thought).strip(),
                role="user" if event.author == USER else "assistant",
                speaker=event.author,
                conversation_id=session.id,
                turn_id=event.id,
                occurred_at=datetime.fromtimestamp(event.timestamp, UTC),
            )
            if not is_stored:
                # The session is added again later; each event would wait for the memory.
                break

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories of the user in the app that answer a question, best first."""
        hits = await AgentMemory(self._memory, user_id=user_id, project_id=app_name).search(query, self._top_k)
        return SearchMemoryResponse(memories=[_entry_of(hit) for hit in hits])


def _entry_of(hit: Hit) -> MemoryEntry:
    role = "model" if hit.role == "assistant" else "user"
    content = types.Content(role=role, parts=[types.Part(text=hit.text)])
    return MemoryEntry(id=hit.memory_id, content=content, author=hit.speaker, timestamp=hit.occurred_at)
