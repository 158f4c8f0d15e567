"""Write turns."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from modestream_client.answers import Remembered, remembered_of
from modestream_client.calls.session import Session, UserId
from modestream_client.records import TURNS_TOPIC, build_record
from modestream_client.vocabulary import Role


class TurnCalls(Session):
    """A session that writes turns."""

    async def remember(
        self,
        content: str,
        *,
        role: Role = "user",
        conversation_id: str = "default",
        speaker: str | None = None,
        occurred_at: datetime | str | None = None,
        turn_id: str | None = None,
        mode: str | None = None,
        importance: float | None = None,
        resources: Sequence[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        searchable: bool | None = None,
        private: bool | None = None,
        user_id: UserId | None = None,
        project_id: str | None = None,
        wait: bool = True,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> Remembered:
        """Publish one turn and wait until the service has accepted it: then it can be found.

        >>> said = await memory.remember("The deploy target is fly.io now.", speaker="Ana", turn_id="t-17")
        >>> said.mode, said.version, said.duplicate
        ('general', 1, False)
        >>> (await memory.remember("The deploy target is fly.io now.", speaker="Ana", turn_id="t-17")).duplicate
        True

        Parameters
        ----------
        content
            The text, of 1 to 32,768 characters.
        role
            `user`, `assistant`, `system` or `tool`.
        conversation_id
            The conversation of the turn.
        speaker
            The speaker's name, if the role does not identify the speaker.
        occurred_at
            Time of the turn, with a zone; default: now.
        turn_id
            The caller's own id. The same id and content is a duplicate and changes nothing, so a retry after an error
            is safe; the same id with other content is a new version, which keeps its time unless `occurred_at` is
            given. By default it is derived from scope, conversation, role, content and time; the record has both.
        mode
            A declared mode; by default the service decides.
        importance
            0 to 1.
        resources
            Attachments: `{"uri": …, "media_type": …, "text": caption or transcript}`.
        metadata
            Anything else; stored with the memory.
        searchable, private
            False: no search and no context finds it. True: no language model of the service reads it. By default a new
            turn is searchable and not private, and another version is as the one before.
        user_id, project_id
            The scope of the turn; default: the client's.
        wait
            False returns as soon as Kafka has acknowledged the record: it will be accepted or become a dead letter,
            and only `partition` and `offset` are known. After a timeout it may still be written. Over HTTP it makes no
            difference.
        """
        turn = build_record(
            "turn.v1",
            turn_id=turn_id,
            scope=self._scope(user_id, project_id),
            conversation_id=conversation_id,
            role=role,
            speaker=speaker,
            content=content,
            occurred_at=occurred_at,
            mode=mode,
            importance=importance,
            resources=resources,
            metadata=metadata or {},
            **{name: flag for name, flag in (("searchable", searchable), ("private", private)) if flag is not None},
        )
        if not wait:
            written = await self._transport.write(TURNS_TOPIC, turn, principal=principal, timeout=timeout)
            return Remembered(*written)
        # No deadline: it would not prevent the turn from being stored, only its reply from being sent.
        reply, place = await self._transport.request(
            TURNS_TOPIC, turn, principal=principal, timeout=timeout, deadline=False
        )
        return remembered_of(reply, place)
