"""Look at single memories, move them, correct them, forget."""

from collections.abc import Sequence
from typing import Unpack

from pydantic import BaseModel

from modestream_client import operations as rows
from modestream_client.answers import parse_as
from modestream_client.calls.session import CallOptions, Session
from modestream_client.hits import WholeMemory
from modestream_client.vocabulary import InteractionMode


class _Moved(BaseModel):
    moved: int


class _Changed(BaseModel):
    changed: int


class SingleMemoryCalls(Session):
    """A session that looks at single memories and changes them. A foreign id is answered as one that is not there."""

    async def get_memory(self, memory_id: str, **options: Unpack[CallOptions]) -> WholeMemory:
        """Return the whole record of a memory of this project, with evidence and versions.

        >>> said = await memory.remember("The kettle is blue.", speaker="Ana")
        >>> (await memory.get_memory(said.memory_id)).text
        'The kettle is blue.'
        """
        return await self._run(rows.GET_MEMORY, {"memory_id": memory_id}, **options)

    async def set_memory_mode(self, memory_id: str, mode: str, **options: Unpack[CallOptions]) -> WholeMemory:
        """Assign a memory of this project to another mode; return its record.

        No language model changes the mode again. Until the new vector exists, lexical search finds the memory.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> said = await memory.remember("I was afraid of the move.")
        >>> (await memory.set_memory_mode(said.memory_id, "journal")).mode
        'journal'
        """
        arguments = {"memory_id": memory_id, "mode": mode}
        return await self._run(rows.SET_MEMORY_MODE, arguments, **options)

    async def set_memory_modes(self, memory_ids: Sequence[str], mode: str, **options: Unpack[CallOptions]) -> int:
        """Assign up to 500 memories of this project to another mode; return how many there are.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> said = [await memory.remember(text) for text in ("I was afraid.", "I was glad.")]
        >>> await memory.set_memory_modes([one.memory_id for one in said], "journal")
        2
        """
        arguments = {"memory_ids": list(memory_ids), "mode": mode}
        return parse_as(_Moved, await self.command("set_memory_mode", arguments, **options)).moved

    async def set_memory_visibility(
        self,
        memory_id: str,
        *,
        searchable: bool | None = None,
        private: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> WholeMemory:
        """Say whether searches find a turn or a summary, and whether a language model of the service may read it.

        None leaves a flag as it is. What was extracted from a turn follows it. Its mode may filter it as well.

        >>> said = await memory.remember("The safe code is 4711.")
        >>> (await memory.set_memory_visibility(said.memory_id, searchable=False)).searchable
        False
        """
        arguments = {"memory_id": memory_id, "searchable": searchable, "private": private}
        return await self._run(rows.SET_MEMORY_VISIBILITY, arguments, **options)

    async def set_memory_visibilities(
        self,
        memory_ids: Sequence[str],
        *,
        searchable: bool | None = None,
        private: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> int:
        """Do the same for up to 500 memories of this project; return how many there are.

        >>> said = [await memory.remember(text) for text in ("The safe code is 4711.", "The safe is green.")]
        >>> await memory.set_memory_visibilities([one.memory_id for one in said], private=True)
        2
        """
        arguments = {"memory_ids": list(memory_ids), "searchable": searchable, "private": private}
        return parse_as(_Changed, await self.command("set_memory_visibility", arguments, **options)).changed

    async def set_interaction_mode(
        self, memory_id: str, interaction_mode: InteractionMode, **options: Unpack[CallOptions]
    ) -> WholeMemory:
        """Correct the interaction mode of a turn; counted as a correction of the classifier.

        >>> said = await memory.remember("Why does the login fail?")
        >>> (await memory.set_interaction_mode(said.memory_id, "DEBUGGING")).interaction_mode
        'DEBUGGING'
        """
        arguments = {"memory_id": memory_id, "interaction_mode": interaction_mode}
        return await self._run(rows.SET_INTERACTION_MODE, arguments, **options)

    async def forget(
        self,
        *,
        memory_id: str | None = None,
        turn_id: str | None = None,
        conversation_id: str | None = None,
        project: bool = False,
        user: bool = False,
        **options: Unpack[CallOptions],
    ) -> int:
        """Forget for good, with all that was derived; return the number of memories, 0 the second time.

        Exactly one of: `memory_id`; `turn_id` with `conversation_id`; `conversation_id`; `project`, this project;
        `user`, everything of the user. Turns that were written before are covered, replayed ones are not stored again.

        >>> said = await memory.remember("The kettle is blue.")
        >>> await memory.forget(memory_id=said.memory_id)
        1
        >>> await memory.forget(memory_id=said.memory_id)
        0
        """
        named = {"memory_id": memory_id, "turn_id": turn_id, "conversation_id": conversation_id}
        whole = {name: True for name, wanted in (("project", project), ("user", user)) if wanted}
        arguments = {name: value for name, value in named.items() if value is not None} | whole
        return (await self._run(rows.FORGET, arguments, **options)).forgotten
