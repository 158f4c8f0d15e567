"""Requests to the in-memory pipeline, as records that any Kafka client would write, and what comes back."""

import json
from collections.abc import Iterator
from typing import Any

from modestream_client.operations import OPERATING_COMMANDS

from schemas.messages.records import Headers, Outgoing, Record
from schemas.state.policies import OPERATOR
from streams.topics import Topics
from tests.worlds.in_memory_topics import InMemoryTopics

Json = dict[str, Any]


class PipelineRequests:
    names: Topics
    topics: InMemoryTopics
    numbers: Iterator[int]
    """Numbers for turns and correlation ids."""

    async def publish(self, topic: str, message: Json | bytes, **how: Any) -> Record:
        """Write a record keyed by its user, unless `how` overrides the key or partition."""
        value = message if isinstance(message, bytes) else json.dumps(message).encode()
        if "key" not in how:
            how["key"] = message["scope"]["user_id"].encode() if isinstance(message, dict) else b"u1"
        return await self.topics.append(Outgoing(topic, value=value, **how))

    async def remember(self, text: str, turn_id: str | None = None, user: str = "u1", **fields: Any) -> Record:
        return await self.publish(
            self.names.turns, turn_message(text, turn_id or f"t-{next(self.numbers)}", user, **fields)
        )

    async def ask(self, topic: str, message: Json | bytes, headers: Headers = (), **how: Any) -> Json:
        """Publish a request, and wait for its final reply."""
        correlation = str(next(self.numbers)).encode()
        ours = (("reply_to", self.names.replies.encode()), ("correlation_id", correlation))
        await self.publish(topic, message, headers=(*ours, *headers), **how)
        await self.topics.until(lambda: bool(self.final_replies(correlation)))
        [reply] = self.final_replies(correlation)
        return reply

    async def retrieve(self, query: str, user: str = "u1", **fields: Any) -> Json:
        request = {"schema": "retrieve.v1", "scope": {"user_id": user}, "query": query, **fields}
        return await self.ask(self.names.retrieve, request)

    async def list_page(self, what: str = "memories", user: str = "u1", **fields: Any) -> Json:
        request = {"schema": "list.v1", "scope": {"user_id": user, "project_id": "*"}, "what": what, **fields}
        return await self.ask(self.names.retrieve, request)

    async def command(self, command: str, user: str = "u1", project: str = "default", **arguments: Any) -> Json:
        """Send a command; those of operators as the operator."""
        headers = (("principal", OPERATOR.encode()),) if command in OPERATING_COMMANDS else ()
        return await self.ask(self.names.commands, command_message(command, user, project, **arguments), headers)

    async def assemble(self, query: str, user: str = "u1", **fields: Any) -> Json:
        """Send an assemble request, for the full format unless another one is named."""
        request = {"schema": "assemble.v1", "scope": {"user_id": user}, "query": query, "format": "full", **fields}
        return await self.ask(self.names.retrieve, request)

    async def answer(self, query: str, user: str = "u1", headers: Headers = (), **fields: Any) -> Json:
        """Send a question to the language model; return the final reply."""
        request = {"schema": "answer.v1", "scope": {"user_id": user}, "query": query, **fields}
        return await self.ask(self.names.retrieve, request, headers)

    def replies(self, correlation: bytes) -> list[Json]:
        records = self.topics.records(self.names.replies)
        return [json.loads(record.value or b"") for record in records if record.header("correlation_id") == correlation]

    def final_replies(self, correlation: bytes) -> list[Json]:
        return [reply for reply in self.replies(correlation) if reply["status"] != "partial"]

    def dead_letters(self) -> list[Record]:
        return self.topics.records(self.names.dead_letters)

    async def texts(self, query: str, **fields: Any) -> list[str]:
        """Return the texts of the hits, best first, once all records are processed."""
        await self.topics.settled()
        return [hit["text"] for hit in (await self.retrieve(query, **fields))["result"]["hits"]]


def command_message(command: str, user: str = "u1", project: str = "default", **arguments: Any) -> Json:
    scope = {"user_id": user, "project_id": project}
    return {"schema": "command.v1", "command": command, "scope": scope, "arguments": arguments}


def turn_message(text: str, turn_id: str, user: str = "u1", **fields: Any) -> Json:
    known = {"scope": {"user_id": user}, "conversation_id": "c1", "role": "user", "content": text}
    return {"schema": "turn.v1", "turn_id": turn_id, **known, **fields}
