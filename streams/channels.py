"""The input channels: the messages of each request topic, with the deployment's scope model, and how it is served.

The topology and the API documents are built from them.
"""

from dataclasses import dataclass
from typing import Any

from schemas.internal.changes import Change, Job
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.messages.assemble import AnswerRequest, AssembleRequest
from schemas.messages.commands import Command
from schemas.messages.retrieval import ListRequest, MapRequest, RetrieveRequest
from schemas.messages.turns import Turn
from schemas.scope_models import bind_scope
from schemas.scopes import Scope
from streams.flow.requests.channel import Channel
from streams.topics import Topics


@dataclass(frozen=True, slots=True)
class InputChannels:
    """The channels by name: the first four are public, the others internal to the workers."""

    turns: Channel
    retrieve: Channel
    commands: Channel
    triggers: Channel
    changes: Channel
    jobs: Channel
    asked: Channel

    def public(self) -> list[Channel]:
        """Return the channels that producers and clients write to."""
        return [self.turns, self.retrieve, self.commands, self.triggers]


def input_channels(topics: Topics, scope: type[Scope]) -> InputChannels:
    """Build the channels of all records that may name a reply address, with scopes of this model."""
    queries: dict[str, type[Any]] = {
        "retrieve.v1": bind_scope(RetrieveRequest, scope),
        "assemble.v1": bind_scope(AssembleRequest, scope),
        "list.v1": bind_scope(ListRequest, scope),
        "map.v1": bind_scope(MapRequest, scope),
        "answer.v1": bind_scope(AnswerRequest, scope),
    }
    turn, command = bind_scope(Turn, scope), bind_scope(Command, scope)
    # Commands that only read are kept no longer than questions, if their senders choose this topic.
    queries["command.v1"] = command
    trigger, change, job = bind_scope(ConsolidationTrigger, scope), bind_scope(Change, scope), bind_scope(Job, scope)
    return InputChannels(
        turns=Channel(topics.turns, {"turn.v1": turn}, "write", keeps_rejected=True, outlives_deadline=True),
        retrieve=Channel(topics.retrieve, queries, "read", concurrent=True),
        commands=Channel(topics.commands, {"command.v1": command}, "manage"),
        triggers=Channel(topics.consolidate, {"consolidate.v1": trigger}, "manage", concurrent=True),
        changes=Channel(topics.changes, {"change.v1": change}, None, keeps_rejected=True, outlives_deadline=True),
        # As they came, so that what a sender may read is checked again.
        asked=Channel(topics.asked, {"answer.v1": queries["answer.v1"]}, "read", concurrent=True),
        jobs=Channel(topics.jobs, {"job.v1": job}, None, keeps_rejected=True, outlives_deadline=True, concurrent=True),
    )
