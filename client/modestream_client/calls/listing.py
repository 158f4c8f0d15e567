"""See what is there without a question: lists page by page or whole, and maps."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from modestream_client.answers import Item, Page, page_of, parse_as
from modestream_client.calls.session import ScopeSelector, Session, UserId
from modestream_client.hits import ListedConversation, ListedMemory, ListedProject, ListResult
from modestream_client.operations import GET_MAP, LIST_CONVERSATIONS, LIST_MEMORIES, LIST_PROJECTS, Operation
from modestream_client.results import MemoryMap
from modestream_client.transport import OWN_WRITES, ReadAfter
from modestream_client.vocabulary import EmbeddingStatus, MemoryType, Role

ITERATED_PAGE = 200
"""Items of a page while all are iterated: a few milliseconds of the service, some 100 kB."""


class ListOptions(TypedDict, total=False):
    """Keywords of every list.

    `user_id`, `projects`, `scope`: the owner, one project, several or `"*"`, and further scope fields. `mode`: one,
    several or `"*"` (default). `conversation_id`, `types`, `role`, `embedding_status`: memories with these alone.
    `since` ≤ time < `until`. `contains`: a part of the text, letter case ignored. `include_superseded`: also what a
    later memory has replaced. `order`: `newest` (default) or `oldest` first. `read_after`, `principal`, `timeout`: as
    in `retrieve`. Conversations and projects are those of the memories that match.
    """

    user_id: UserId | None
    projects: str | Sequence[str] | None
    scope: ScopeSelector | None
    mode: str | Sequence[str] | None
    conversation_id: str | None
    types: Sequence[MemoryType] | None
    role: Role | None
    since: datetime | str | None
    until: datetime | str | None
    contains: str | None
    embedding_status: EmbeddingStatus | None
    include_superseded: bool
    order: Literal["newest", "oldest"]
    read_after: ReadAfter
    principal: str | None
    timeout: float | None


class ListCalls(Session):
    """A session that lists."""

    async def list_memories(
        self, *, limit: int = 50, cursor: str | None = None, **options: Unpack[ListOptions]
    ) -> Page[ListedMemory]:
        """Return one page of memories; `cursor` is the `next` of the page before, with the same options.

        Paging shows everything that was there when it began exactly once, whatever is written meanwhile.

        >>> for text in ("one", "two", "three"):
        ...     _ = await memory.remember(text)
        >>> page = await memory.list_memories(limit=2)
        >>> len(page.items), page.total
        (2, 3)
        >>> rest = await memory.list_memories(limit=2, cursor=page.next)
        >>> len(rest.items), rest.next
        (1, None)
        """
        return await self._page(LIST_MEMORIES, ListedMemory, limit, cursor, options)

    async def list_conversations(
        self, *, limit: int = 50, cursor: str | None = None, **options: Unpack[ListOptions]
    ) -> Page[ListedConversation]:
        """Return one page of conversations, by the time of their last turn.

        >>> _ = await memory.remember("The kettle is blue.", conversation_id="kitchen", speaker="Ana")
        >>> [one] = (await memory.list_conversations()).items
        >>> one.conversation_id, one.turns, one.speakers
        ('kitchen', 1, ['Ana'])
        """
        return await self._page(LIST_CONVERSATIONS, ListedConversation, limit, cursor, options)

    async def list_projects(
        self, *, limit: int = 50, cursor: str | None = None, **options: Unpack[ListOptions]
    ) -> Page[ListedProject]:
        """Return one page of the user's projects, all of them unless `projects` names some.

        >>> _ = await memory.remember("The kettle is blue.", project_id="kitchen")
        >>> [one] = (await memory.list_projects()).items
        >>> one.scope["project_id"], one.memories
        ('kitchen', 1)
        """
        return await self._page(LIST_PROJECTS, ListedProject, limit, cursor, {"projects": "*", **options})

    def iter_memories(
        self, *, page_size: int = ITERATED_PAGE, **options: Unpack[ListOptions]
    ) -> AsyncIterator[ListedMemory]:
        """Iterate over all memories, page by page.

        >>> for text in ("one", "two", "three"):
        ...     _ = await memory.remember(text)
        >>> sorted([one.text async for one in memory.iter_memories(page_size=2)])
        ['one', 'three', 'two']
        """
        return self._iterate(LIST_MEMORIES, ListedMemory, page_size, options)

    def iter_conversations(
        self, *, page_size: int = ITERATED_PAGE, **options: Unpack[ListOptions]
    ) -> AsyncIterator[ListedConversation]:
        """Iterate over all conversations, page by page."""
        return self._iterate(LIST_CONVERSATIONS, ListedConversation, page_size, options)

    def iter_projects(
        self, *, page_size: int = ITERATED_PAGE, **options: Unpack[ListOptions]
    ) -> AsyncIterator[ListedProject]:
        """Iterate over all projects of the user, page by page."""
        return self._iterate(LIST_PROJECTS, ListedProject, page_size, {"projects": "*", **options})

    async def map(
        self,
        *,
        user_id: UserId | None = None,
        projects: str | Sequence[str] | None = None,
        scope: ScopeSelector | None = None,
        mode: str | Sequence[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int = 5000,
        read_after: ReadAfter = OWN_WRITES,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> MemoryMap:
        """Return where memories lie in a plane, for a person to look at: one cloud for each vector space.

        `mode` is one, several or `"*"`; by default the current mode of the scope. `limit` is 1 to 20,000 points of a
        cloud. An answer never waits for a long layout: `settled` is False until the better one is made.

        >>> _ = await memory.remember("The kettle is blue.")
        >>> [cloud.mode for cloud in (await memory.map(mode="general")).clouds]
        ['general']
        """
        [user] = self._users(user_id)
        after = await self._transport.resolve_read_after(user, read_after)
        fields = {"mode": mode, "since": since, "until": until, "limit": limit, "read_after": after}
        record = GET_MAP.record_of(self._selector(user, projects, scope), fields)
        reply = await self._ask(GET_MAP.topic, record, principal, timeout)
        return parse_as(GET_MAP.result, reply.result)

    async def _page(
        self, listed: Operation[ListResult], model: type[Item], limit: int, cursor: str | None, options: ListOptions
    ) -> Page[Item]:
        filters: dict[str, Any] = dict(options)
        [user] = self._users(filters.pop("user_id", None))
        principal, timeout = filters.pop("principal", None), filters.pop("timeout", None)
        scope = self._selector(user, filters.pop("projects", None), filters.pop("scope", None))
        after = await self._transport.resolve_read_after(user, filters.pop("read_after", OWN_WRITES))
        record = listed.record_of(scope, {"limit": limit, "cursor": cursor, "read_after": after, **filters})
        return page_of(await self._ask(listed.topic, record, principal, timeout), model)

    async def _iterate(
        self, listed: Operation[ListResult], model: type[Item], page_size: int, options: ListOptions
    ) -> AsyncIterator[Item]:
        cursor = None
        while True:
            page = await self._page(listed, model, page_size, cursor, options)
            for item in page.items:
                yield item
            if (cursor := page.next) is None:
                return
