"""Calls that read: retrieve memories, assemble a prompt, lists page by page or whole, maps."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from modestream_client.answers import (
    Answer,
    ChatMessage,
    Context,
    Item,
    Json,
    Page,
    answer_of,
    context_of,
    merge_answers,
    page_of,
    parse_as,
)
from modestream_client.calls.session import ScopeSelector, Session, UserId
from modestream_client.hits import ListedConversation, ListedMemory, ListedProject, ListResult
from modestream_client.operations import (
    ASSEMBLE_CONTEXT,
    GET_MAP,
    LIST_CONVERSATIONS,
    LIST_MEMORIES,
    LIST_PROJECTS,
    SEARCH_MEMORIES,
    Operation,
)
from modestream_client.results import MemoryMap
from modestream_client.transport import OWN_WRITES, ReadAfter
from modestream_client.vocabulary import (
    DEFAULT_BUDGET_TOKENS,
    ContextFormat,
    EmbeddingStatus,
    InteractionMode,
    MemoryType,
    Role,
)

ITERATED_PAGE = 200
"""Page size while all items are iterated: a few milliseconds of the service, about 100 kB."""


class ListOptions(TypedDict, total=False):
    """Keywords of every list.

    `user_id`, `projects`, `scope`: the owner, one project, several or `"*"`, and further scope fields. `mode`: one,
    several or `"*"` (default). `conversation_id`, `types`, `role`, `embedding_status`: only memories with these;
    `filters` and `as_of` as in `retrieve`. `since` ≤ time < `until`. `contains`: a part of the text, letter case
    ignored. `include_superseded`: also memories replaced by a later one. `order`: `newest` (default) or `oldest` first.
    `read_after`, `principal`, `timeout`: as in `retrieve`. Conversations and projects are those of the memories that
    match.
    """

    user_id: UserId | None
    projects: str | Sequence[str] | None
    scope: ScopeSelector | None
    mode: str | Sequence[str] | None
    conversation_id: str | None
    types: Sequence[MemoryType] | None
    role: Role | None
    filters: Mapping[str, Any] | None
    as_of: datetime | str | None
    since: datetime | str | None
    until: datetime | str | None
    contains: str | None
    embedding_status: EmbeddingStatus | None
    include_superseded: bool
    order: Literal["newest", "oldest"]
    read_after: ReadAfter
    principal: str | None
    timeout: float | None


class ReadingCalls(Session):
    """Calls that ask questions and list."""

    appends_query = False
    """Whether contexts end with the question by default."""

    async def retrieve(
        self,
        query: str,
        *,
        user_id: UserId | None = None,
        users: UserId | Sequence[UserId] | None = None,
        projects: str | Sequence[str] | None = None,
        scope: ScopeSelector | None = None,
        mode: str | Sequence[str] | None = None,
        conversation_id: str | None = None,
        top_k: int = 10,
        min_score: float | None = None,
        types: Sequence[MemoryType] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        depth: Literal["items", "auto"] = "items",
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        read_after: ReadAfter = OWN_WRITES,
        explain: bool = False,
        include_superseded: bool = False,
        rerank: bool | Literal["local"] | None = None,
        sufficiency: Literal["rules", "model"] | None = None,
        partial: bool = False,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """Retrieve memories, best first, each with its scope and evidence.

        >>> _ = await memory.remember("The deploy target is fly.io now.", speaker="Ana")
        >>> answer = await memory.retrieve("where do we deploy?")
        >>> answer.hits[0].speaker, answer.hits[0].text
        ('Ana', 'The deploy target is fly.io now.')
        >>> (await memory.retrieve("where do we deploy?", filters={"speaker": "Ben"})).hits
        ()

        Parameters
        ----------
        query
            A question or search terms.
        user_id, users
            One user, or several: each takes a concurrent request, and the hits are merged by rank to `top_k`.
        projects
            One project, several, or `"*"` for all.
        scope
            The same for further fields of the service's scope model.
        mode
            One mode, several, or `"*"`; default: the current mode of the scope.
        conversation_id
            Selects the mode only; filters nothing.
        top_k
            1 to 100.
        min_score
            Leave out hits with a lower score, 0..1.
        types
            Memory types, such as `["episodic"]`; default: all.
        since, until
            `since` ≤ time < `until`, with a zone.
        depth
            `items`, or `auto`: from intention and categories down to items, only as far as needed.
        filters
            Memories that match all of `conversation_id`, `speaker`, `role` and `metadata`, a mapping of names to
            values; any value of a list, as in `{"speaker": ["Ana", "Ben"], "metadata": {"source": "mail"}}`.
        as_of
            A time: search the memories known then. Memories accepted later are left out, and later supersessions do not
            count. A text edited since is today's, and its hit has `edited_since`.
        read_after
            `OWN_WRITES`: the answer includes the earlier writes of this client for the user. The `read_after` of
            any client's write for the user (or the offset alone): that turn and all before it. None: no wait. If the
            service does not catch up in time, the answer has the warning `not_caught_up`.
        explain
            Add `scores` to each hit.
        include_superseded
            Include memories that a later one has replaced.
        rerank
            True: a language model of the service orders the best hits. `"local"`: the service's own cross-encoder,
            which reads English, orders the first 30. Default: as the service is set. If it can't in time, the hits
            keep their order, and the answer has the warning `not_reranked`.
        sufficiency
            Let a language model of the service say with `depth="auto"` which layer suffices, or rules; default: as the
            service is set. If the model can't in time, rules do, with the warning `sufficiency_by_rules`.
        partial
            False: the first failed request fails the call. True: a failed request becomes a warning, and the call
            fails only if the requests of all users failed.
        """
        if user_id is not None and users is not None:
            raise ValueError("a question is for one `user_id` or several `users`: pass either")
        user_ids = self._users(user_id if users is None else users)
        if read_after not in (None, OWN_WRITES) and len(user_ids) > 1:
            raise ValueError("read_after is an offset in one user's partition: pass one user with it")
        fields = {
            "query": query,
            "mode": mode,
            "conversation_id": conversation_id,
            "top_k": top_k,
            "min_score": min_score,
            "types": types,
            "since": since,
            "until": until,
            "depth": depth,
            "filters": filters,
            "as_of": as_of,
            "explain": explain,
            "include_superseded": include_superseded,
            "rerank": rerank,
            "sufficiency": sufficiency,
        }
        afters = [await self._transport.resolve_read_after(user, read_after) for user in user_ids]
        records = [
            SEARCH_MEMORIES.record_of(self._selector(user, projects, scope), {**fields, "read_after": after})
            for user, after in zip(user_ids, afters, strict=True)
        ]

        async def ask(record: Json) -> Answer:
            return answer_of(await self._ask(SEARCH_MEMORIES.topic, record, principal, timeout))

        replies = await asyncio.gather(*map(ask, records), return_exceptions=True)
        return merge_answers(dict(zip(user_ids, replies, strict=True)), top_k, partial=partial)

    async def assemble(
        self,
        query: str,
        *,
        conversation_id: str | None = None,
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
        reserve_tokens: int = 0,
        context_format: ContextFormat = "compact",
        min_score: float | None = None,
        interaction_mode: InteractionMode | None = None,
        intent: str | None = None,
        system_prompt: str | None = None,
        examples: Sequence[ChatMessage] = (),
        prefix: str | None = None,
        suffix: str | None = None,
        append_query: bool | None = None,
        question_prefix: str | None = None,
        question_suffix: str | None = None,
        remember: Sequence[ChatMessage] = (),
        pins: Sequence[str] = (),
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        mode: str | Sequence[str] | None = None,
        read_after: ReadAfter = OWN_WRITES,
        user_id: UserId | None = None,
        projects: str | Sequence[str] | None = None,
        scope: ScopeSelector | None = None,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> Context:
        """Assemble a prompt with the memories that matter for a query, within a token budget.

        >>> _ = await memory.remember("The deploy target is fly.io now.", speaker="Ana")
        >>> context = await memory.assemble("where do we deploy?", budget_tokens=1000, append_query=True)
        >>> [message["role"] for message in context.messages], context.tokens["total"] <= 1000
        (['system', 'user', 'assistant', 'user'], True)

        Parameters
        ----------
        query
            The message that the prompt is for; not stored.
        conversation_id
            The conversation to take recent turns from; default: none.
        budget_tokens
            Limit of all messages together, at least 300.
        reserve_tokens
            Tokens of the budget reserved for the model's answer.
        context_format
            `compact`: days with one string for each memory; `full`: an object with its id for each memory.
        min_score
            Minimum score of evidence, 0..1; default: the floor of the service.
        interaction_mode
            The purpose of the query; by default it is classified from the query and the last turns.
        intent
            The intent of the query, such as `debug`; decides the interaction mode unless you pass one.
        system_prompt
            The system message, verbatim; default: a short one of the service.
        examples
            Messages between the system message and the memories.
        prefix, suffix
            Texts before and after the memories in the user message.
        append_query
            Whether the messages end with the query, ready for a model; default: over HTTP, and not over Kafka.
        question_prefix, question_suffix
            Texts before and after the query in that last message.
        remember
            Texts added to the memories of this request, without storing them.
        pins
            Memory ids that must be included. Ids of other scopes are ignored with the warning `unknown_pin`.
        filters
            As in `retrieve`. They do not exclude safety requirements, `pins` and `remember`.
        as_of
            As in `retrieve`; for all sections.
        mode, projects, scope, read_after
            As in `retrieve`.
        """
        [user] = self._users(user_id)
        fields = {
            "query": query,
            "conversation_id": conversation_id,
            "mode": mode,
            "budget_tokens": budget_tokens,
            "reserve_tokens": reserve_tokens,
            "format": context_format,
            "min_score": min_score,
            "interaction_mode": interaction_mode,
            "intent": intent,
            "system_prompt": system_prompt,
            "messages": examples,
            "prefix": prefix,
            "suffix": suffix,
            "append_query": self.appends_query if append_query is None else append_query,
            "question_prefix": question_prefix,
            "question_suffix": question_suffix,
            "remember": remember,
            "pins": pins,
            "filters": filters,
            "as_of": as_of,
            "read_after": await self._transport.resolve_read_after(user, read_after),
        }
        record = ASSEMBLE_CONTEXT.record_of(self._selector(user, projects, scope), fields)
        return context_of(await self._ask(ASSEMBLE_CONTEXT.topic, record, principal, timeout))

    async def list_memories(
        self, *, limit: int = 50, cursor: str | None = None, **options: Unpack[ListOptions]
    ) -> Page[ListedMemory]:
        """Return one page of memories; `cursor` is the `next` of the page before, with the same options.

        Each memory present when paging began is listed exactly once, regardless of later writes.

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
        >>> [kitchen] = (await memory.list_conversations()).items
        >>> kitchen.conversation_id, kitchen.turns, kitchen.speakers
        ('kitchen', 1, ['Ana'])
        """
        return await self._page(LIST_CONVERSATIONS, ListedConversation, limit, cursor, options)

    async def list_projects(
        self, *, limit: int = 50, cursor: str | None = None, **options: Unpack[ListOptions]
    ) -> Page[ListedProject]:
        """Return one page of the user's projects, all of them unless `projects` names some.

        >>> _ = await memory.remember("The kettle is blue.", project_id="kitchen")
        >>> [kitchen] = (await memory.list_projects()).items
        >>> kitchen.scope["project_id"], kitchen.memories
        ('kitchen', 1)
        """
        return await self._page(LIST_PROJECTS, ListedProject, limit, cursor, {"projects": "*", **options})

    def iter_memories(
        self, *, page_size: int = ITERATED_PAGE, **options: Unpack[ListOptions]
    ) -> AsyncIterator[ListedMemory]:
        """Iterate over all memories, page by page.

        >>> for text in ("one", "two", "three"):
        ...     _ = await memory.remember(text)
        >>> sorted([listed.text async for listed in memory.iter_memories(page_size=2)])
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
        """Return positions of memories in a plane, for display: one cloud for each vector space.

        `mode` is one, several or `"*"`; by default the current mode of the scope. `limit` is 1 to 20,000 points of a
        cloud. An answer never waits for a long layout: `settled` is False until the better one is ready.

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
