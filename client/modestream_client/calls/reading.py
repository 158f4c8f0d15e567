"""Ask: retrieve memories, assemble a prompt."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from modestream_client.answers import Answer, ChatMessage, Context, Json, answer_of, context_of, merge_answers
from modestream_client.calls.session import ScopeSelector, Session, UserId
from modestream_client.operations import ASSEMBLE_CONTEXT, SEARCH_MEMORIES
from modestream_client.transport import OWN_WRITES, ReadAfter
from modestream_client.vocabulary import DEFAULT_BUDGET_TOKENS, ContextFormat, InteractionMode, MemoryType


class ReadCalls(Session):
    """A session that asks questions."""

    async def retrieve(
        self,
        query: str,
        *,
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

        Parameters
        ----------
        query
            A question or search terms.
        users
            One user or several. Several users take one concurrent request each; their hits are merged by rank to
            `top_k`.
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
        user_ids = self._users(users)
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
        asked = [self._retrieve(record, principal, timeout) for record in records]
        replies = await asyncio.gather(*asked, return_exceptions=True)
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
        remember: Sequence[ChatMessage] = (),
        pins: Sequence[str] = (),
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
        >>> context = await memory.assemble("where do we deploy?", budget_tokens=1000)
        >>> [message["role"] for message in context.messages], context.tokens["total"] <= 1000
        (['system', 'user', 'assistant'], True)

        Parameters
        ----------
        query
            The message that the prompt is for; not stored.
        conversation_id
            The conversation to take recent turns from; default: none.
        budget_tokens
            Limit of all messages together, at least 300.
        reserve_tokens
            Tokens of the budget that are left for the model's answer.
        context_format
            `compact`: days with one string for each memory; `full`: an object with its id for each memory.
        min_score
            Memories with a lower score are no evidence, 0..1; default: the floor of the service.
        interaction_mode
            The purpose of the query; by default it is classified from the query and the last turns.
        intent
            The intent of the query, such as `debug`; decides the interaction mode unless that is given.
        system_prompt
            The system message, verbatim; default: a short one of the service.
        examples
            Messages between the system message and the memories.
        prefix, suffix
            Texts before and after the memories in the user message.
        remember
            Texts that stand among the memories of this request and are stored nowhere.
        pins
            Memory ids that must be included. Ids of other scopes are ignored with the warning `unknown_pin`.
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
            "remember": remember,
            "pins": pins,
            "read_after": await self._transport.resolve_read_after(user, read_after),
        }
        record = ASSEMBLE_CONTEXT.record_of(self._selector(user, projects, scope), fields)
        return context_of(await self._ask(ASSEMBLE_CONTEXT.topic, record, principal, timeout))

    async def _retrieve(self, record: Json, principal: str | None, timeout: float | None) -> Answer:
        return answer_of(await self._ask(SEARCH_MEMORIES.topic, record, principal, timeout))
