import asyncio
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from modestream_client.operations import COMMANDS

from schemas.messages.records import Record
from streams.api_docs.asyncapi import build_asyncapi
from streams.flow.runs.recorder import RunOptions
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]


class Documented:
    def __init__(self, document: Json) -> None:
        self._components = document["components"]
        self._messages: Json = document["components"]["messages"]

    def faults(self, name: str, record: Record) -> list[str]:
        message = self._messages[name]
        headers = {header: (value or b"").decode() for header, value in record.headers}
        wrong = self._wrong(message.get("headers", {"maxProperties": 0}), headers)
        is_json = message["contentType"] == "application/json"
        return wrong + (self._wrong(message["payload"], json.loads(record.value or b"")) if is_json else [])

    def _wrong(self, schema: Json, value: Any) -> list[str]:
        validator = Draft202012Validator({**schema, "components": self._components})
        return [error.message[:300] for error in validator.iter_errors(value)]


async def use_everything(pipeline: InMemoryPipeline) -> list[tuple[str, Record]]:
    """Send every kind of request; return each record with the name of its message."""
    names = pipeline.names
    for number in range(4):
        await pipeline.ask(names.turns, full_turn(f"We decided to water the tomatoes on day {number}.", number))
    await pipeline.topics.settled()
    found = await pipeline.retrieve("tomatoes", explain=True)
    await pipeline.retrieve("tomatoes", mode="*", depth="auto")
    made = await pipeline.assemble("water the tomatoes", conversation_id="c1")
    await pipeline.command("rate", context_id=made["result"]["context_id"], useful=made["result"]["references"][:1])
    pipeline.language.released.clear()
    asking = asyncio.create_task(pipeline.answer("when?", store=False, headers=(("stream", b"1"),)))
    await pipeline.topics.until(lambda: b'"partial"' in (pipeline.topics.records(names.replies)[-1].value or b""))
    pipeline.language.released.set()
    await asking
    for what in ("memories", "conversations", "projects"):
        await pipeline.list_page(what, limit=1)
    await pipeline.ask(names.retrieve, {"schema": "map.v1", "scope": {"user_id": "u1"}, "mode": "*", "limit": 3})
    memory_id = found["result"]["hits"][0]["memory_id"]
    await pipeline.command("declare_mode", name="garden", embedder="tiny32")
    await pipeline.command("set_memory_mode", memory_id=memory_id, mode="garden")
    await pipeline.command("set_intention", goals=["grow tomatoes"])
    await pipeline.command("declare_category", name="garden", description="tomatoes")
    await pipeline.command("list_categories", include_summary=True)
    await pipeline.command("rebuild")
    await pipeline.command("get_memory", memory_id=memory_id)
    await pipeline.command("health")
    await pipeline.command("get_memory", memory_id="nothing")
    await pipeline.ask(names.consolidate, {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None})
    forget = {"schema": "command.v1", "command": "forget", "scope": {"user_id": "u1"}, "arguments": {"user": True}}
    await pipeline.ask(names.commands, forget)
    await pipeline.topics.settled()
    asked = [
        (json.loads(record.value or b"")["schema"], record)
        for topic in (names.turns, names.retrieve, names.commands, names.consolidate)
        for record in pipeline.topics.records(topic)
    ]
    kinds = {record.header("correlation_id"): kind for kind, record in asked}
    replies = [
        (f"{kinds[record.header('correlation_id')]}.reply", record) for record in pipeline.topics.records(names.replies)
    ]
    return asked + replies


def full_turn(text: str, number: int) -> Json:
    return {
        "schema": "turn.v1",
        "turn_id": f"t-{number}",
        "scope": {"user_id": "u1"},
        "conversation_id": "c1",
        "role": "user",
        "speaker": "Ana",
        "content": text,
        "occurred_at": f"2026-03-0{number + 1}T09:30:00Z",
        "importance": 0.5,
        "resources": [{"uri": "s3://bucket/a.png", "text": "a photo of tomatoes"}],
        "metadata": {"app": "notes"},
    }


async def test_every_record_conforms_to_the_published_schema(tmp_path: Path) -> None:
    options = {"profiles": ONE_PROFILE, "run_options": RunOptions(sample=1), "more_settings": {"context_log": "ids"}}
    async with InMemoryPipeline(tmp_path, **options).running() as pipeline:  # type: ignore[arg-type]
        written = await use_everything(pipeline)
        await pipeline.publish(pipeline.names.turns, b"nonsense")
        await pipeline.topics.settled()
        letters = [("dead-letter", letter) for letter in pipeline.dead_letters()]
        await pipeline.remember("Something new.")
        await pipeline.topics.settled()
        for partition in range(pipeline.partitions):
            await pipeline.telling.publish(partition)
        told = pipeline.topics.records(pipeline.names.boundaries)
        letters += [("boundary.v1", record) for record in told if record.value is not None]
        runs = pipeline.topics.records(pipeline.names.runs)
        letters += [("run.v1", record) for record in runs if record.value is not None]
        for topic in (pipeline.names.contexts, pipeline.names.receipts):
            logged = [record for record in pipeline.topics.records(topic) if record.value is not None]
            letters += [(json.loads(record.value or b"")["schema"], record) for record in logged]
    document = Documented(build_asyncapi(pipeline.settings))
    assert {name for name, _ in [*written, *letters]} == {*build_asyncapi(pipeline.settings)["components"]["messages"]}
    assert {json.loads(record.value or b"").get("status") for name, record in written if name.endswith(".reply")} == {
        "ok",
        "error",
        "partial",
    }
    for name, record in [*written, *letters]:
        assert not document.faults(name, record), (name, record.value)


async def test_commands_of_the_document_are_those_that_a_worker_knows(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path).running() as pipeline:
        refused = await pipeline.command("no_such_command")
    known = refused["error"]["message"].partition("commands are: ")[2].split(", ")
    assert known == sorted(COMMANDS)
