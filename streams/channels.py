"""The topics that records are asked on: what each carries, by the deployment's scope model, and how it is served.

Topics enter; a channel for each of them leaves. The wiring reads them, and the documents of the wire are made of them.
"""

from dataclasses import dataclass

from schemas.assemble import AssembleRequest
from schemas.changes import Change
from schemas.commands import Command
from schemas.consolidation import ConsolidationTrigger
from schemas.jobs import Job
from schemas.retrieval import RetrieveRequest
from schemas.scope_models import bind_scope
from schemas.scopes import Scope
from schemas.turns import Turn
from streams.flow.requests.channel import Channel
from streams.topics import Topics


@dataclass(frozen=True, slots=True)
class InputChannels:
    """The channels: the first four are everybody's, the others the worker's own."""

    turns: Channel
    retrieve: Channel
    commands: Channel
    triggers: Channel
    changes: Channel
    jobs: Channel

    def public(self) -> list[Channel]:
        """Those that producers and clients write to."""
        every = (self.turns, self.retrieve, self.commands, self.triggers, self.changes, self.jobs)
        return [channel for channel in every if channel.act is not None]


def input_channels(topics: Topics, scope: type[Scope]) -> InputChannels:
    """Every channel whose records may want a reply, with scopes of this model."""
    asked = {"retrieve.v1": bind_scope(RetrieveRequest, scope), "assemble.v1": bind_scope(AssembleRequest, scope)}
    turn, command, trigger = (
        bind_scope(Turn, scope),
        bind_scope(Command, scope),
        bind_scope(ConsolidationTrigger, scope),
    )
    change, job = bind_scope(Change, scope), bind_scope(Job, scope)
    return InputChannels(
        turns=Channel(topics.turns, {"turn.v1": turn}, "write", keeps_rejected=True, outlives_deadline=True),
        retrieve=Channel(topics.retrieve, asked, "read", concurrent=True),
        commands=Channel(topics.commands, {"command.v1": command}, "manage"),
        triggers=Channel(topics.consolidate, {"consolidate.v1": trigger}, "manage", concurrent=True),
        changes=Channel(topics.changes, {"change.v1": change}, None, keeps_rejected=True, outlives_deadline=True),
        jobs=Channel(topics.jobs, {"job.v1": job}, None, keeps_rejected=True, outlives_deadline=True, concurrent=True),
    )
