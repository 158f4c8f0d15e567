"""Declare, rename, delete and suggest modes, and set the default one."""

from typing import Unpack

from modestream_client import operations as rows
from modestream_client.calls.session import CallOptions, Session
from modestream_client.results import DeclaredModes, DefaultModes, DeletedMode, ModeSuggestions, ShownMode
from modestream_client.vocabulary import Decay


class ModeCalls(Session):
    """A session that governs modes."""

    async def declare_mode(
        self,
        name: str,
        embedder: str,
        *,
        description: str | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        extraction_hints: str | None = None,
        decay: Decay | None = None,
        searchable: bool | None = None,
        private: bool | None = None,
        is_default: bool = False,
        for_project: bool = False,
        keep_former: bool = True,
        **options: Unpack[CallOptions],
    ) -> ShownMode:
        """Declare a mode, or change the given fields of an existing one.

        `embedder` is a preset or a configured name; a change re-embeds the mode's memories, which are found by the
        vectors of the former embedder until then, and keeps these vectors: without `keep_former` they are removed. With
        `for_project` the mode and its default hold in this project alone. No search finds the memories of a mode that
        is not `searchable`, and no language model of the service reads those of a `private` one.

        >>> (await memory.declare_mode("journal", "general", decay="slow")).decay
        'slow'
        """
        arguments = {
            "name": name,
            "embedder": embedder,
            "description": description,
            "query_prefix": query_prefix,
            "passage_prefix": passage_prefix,
            "extraction_hints": extraction_hints,
            "decay": decay,
            "is_default": is_default,
            "for_project": for_project,
            **({} if keep_former else {"keep_former": False}),
            **{name: flag for name, flag in (("searchable", searchable), ("private", private)) if flag is not None},
        }
        return await self._run(rows.DECLARE_MODE, arguments, **options)

    async def list_modes(self, **options: Unpack[CallOptions]) -> DeclaredModes:
        """Return the modes visible in a project; every user has `general`.

        >>> [mode.name for mode in (await memory.list_modes()).modes]
        ['general']
        """
        return await self._run(rows.LIST_MODES, **options)

    async def rename_mode(self, name: str, new_name: str, **options: Unpack[CallOptions]) -> ShownMode:
        """Rename a mode; its memories follow.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> (await memory.rename_mode("journal", "diary")).name
        'diary'
        """
        return await self._run(rows.RENAME_MODE, {"name": name, "new_name": new_name}, **options)

    async def delete_mode(self, name: str, memories: str, **options: Unpack[CallOptions]) -> DeletedMode:
        """Delete a mode. `memories` says what becomes of its memories: `"forget"`, or `"move:<mode>"`.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> _ = await memory.remember("I was afraid of the move.", mode="journal")
        >>> (await memory.delete_mode("journal", "move:general")).moved
        1
        """
        arguments = {"name": name, "memories": memories}
        return await self._run(rows.DELETE_MODE, arguments, **options)

    async def set_default_mode(
        self, name: str | None, *, for_project: bool = False, **options: Unpack[CallOptions]
    ) -> DefaultModes:
        """Set the mode of turns that name none, for the user or for this project alone; None clears it.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> (await memory.set_default_mode("journal")).user_default
        'journal'
        """
        arguments = {"name": name, "for_project": for_project}
        return await self._run(rows.SET_DEFAULT_MODE, arguments, **options)

    async def suggest_modes(self, **options: Unpack[CallOptions]) -> ModeSuggestions:
        """Return groups of turns that fit no declared mode; changes nothing.

        >>> (await memory.suggest_modes()).suggestions
        ()
        """
        return await self._run(rows.SUGGEST_MODES, **options)
