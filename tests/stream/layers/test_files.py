"""Files through the whole pipeline: read, found in their turns, moved, edited and forgotten with them."""

import asyncio
import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from agents.rules.memory.resources import derive_part_id
from schemas.state.files import FileText, ReadFailed, boundary_prefix, file_key, upload_key
from schemas.state.memories import Memory, Resource, derive_memory_id
from streams.flow.background import reading_files
from tests.fakes.file_reader import InProcessFileReader
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message, turn_message

SCOPE = {"user_id": "u1", "project_id": "default"}
QUESTION = "Where is the spare key of the boat house?"
KEY = "The spare key of the boat house is under the third flower pot."
TEXT = "\n\n".join([f"Day {n}: the train to Faro left at {n}:15, and nobody was late. " * 8 for n in range(9)] + [KEY])


async def upload(
    pipeline: InMemoryPipeline, text: str = TEXT, turn_id: str = "f-1", user: str = "u1", **fields: object
) -> str:
    """Store bytes as the gateway does, and publish their turn; return the hash."""
    body = text.encode()
    sha256 = hashlib.sha256(body).hexdigest()
    place = upload_key(user, sha256, turn_id_of(turn_id, user), uuid4().hex)
    await pipeline.file_bytes.put(place, io.BytesIO(body))
    await pipeline.ask(pipeline.names.turns, naming(sha256, turn_id, user, **fields))
    return sha256


def naming(sha256: str, turn_id: str, user: str = "u1", **fields: object) -> Json:
    resource = {"uri": f"file:{sha256}", "media_type": "text/plain", "name": "house.txt"}
    said = {"content": f"Here is file {turn_id}.", "resources": [resource], **fields}
    return turn_message("", turn_id, user) | said


def turn_id_of(turn_id: str, user: str = "u1") -> str:
    return derive_memory_id(SCOPE | {"user_id": user}, "c1", turn_id)


def resource(pipeline: InMemoryPipeline, turn_id: str = "f-1", user: str = "u1") -> Resource:
    for memory in pipeline.memories.all():
        if memory.memory_id == turn_id_of(turn_id, user):
            return memory.resources[0]
    raise AssertionError("no such turn")


def parts(pipeline: InMemoryPipeline) -> list[Memory]:
    found = [memory for memory in pipeline.memories.all() if memory.type == "document"]
    return sorted(found, key=lambda part: (part.boundary, part.evidence[0].start))


async def is_read(pipeline: InMemoryPipeline, turn_id: str = "f-1", user: str = "u1") -> Resource:
    """Wait until a file is read, with all that follows, or failed."""
    files, memory_id = pipeline.tables.stores.files, turn_id_of(turn_id, user)

    def waits() -> bool:
        # The turn says `ready` before its items are written, the table after them.
        pending = map(files.pending, range(pipeline.partitions))
        return any(memory_id in memory_ids for each in pending for memory_ids in each.values())

    await pipeline.until(lambda: not waits() and resource(pipeline, turn_id, user).status in ("ready", "failed"))
    await pipeline.topics.settled()
    return resource(pipeline, turn_id, user)


async def upload_and_read(pipeline: InMemoryPipeline, text: str = TEXT, **fields: Any) -> str:
    """Upload a file, and wait until it is read; return the hash."""
    sha256 = await upload(pipeline, text, **fields)
    await is_read(pipeline)
    return sha256


async def stored(pipeline: InMemoryPipeline, user: str = "u1") -> list[str]:
    return [found.key for found in await pipeline.file_bytes.find(boundary_prefix(user))]


async def test_a_file_is_read_after_its_turn_was_stored(pipeline: InMemoryPipeline) -> None:
    await upload(pipeline)
    read = await is_read(pipeline)
    assert read.status == "ready"
    assert read.reader == "text"
    assert read.characters == len(TEXT)


async def test_parts_lie_at_their_places_in_the_whole_text(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    quotes = [part.evidence[0] for part in parts(pipeline)]
    assert [TEXT[quote.start : quote.end] for quote in quotes] == [part.text for part in parts(pipeline)]


async def test_what_a_file_says_is_found_in_the_hit_of_its_turn(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    for number in range(5):
        await pipeline.remember(f"The weather in Faro was fine on day {number}.")
    await pipeline.topics.settled()
    hit = (await pipeline.retrieve(QUESTION))["result"]["hits"][0]
    assert hit["memory_id"] == turn_id_of("f-1")
    assert KEY in hit["items"][0]["text"]


async def test_a_part_is_a_hit_by_its_type(pipeline: InMemoryPipeline) -> None:
    sha256 = await upload_and_read(pipeline, metadata={"client": "Acme"})
    hit = (await pipeline.retrieve(QUESTION, types=["document"]))["result"]["hits"][0]
    assert hit["evidence"][0]["resource"] == f"file:{sha256}"
    assert hit["turn_id"] == "f-1"
    assert hit["metadata"] == {"client": "Acme"}


async def test_a_context_cites_the_file(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    context = (await pipeline.assemble(QUESTION, budget_tokens=4000, format="compact"))["result"]
    assert "house.txt: " in context["messages"][1]["content"]
    assert KEY in context["messages"][1]["content"]


async def test_a_repeated_turn_makes_no_second_part(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    before = parts(pipeline)
    for record in pipeline.topics.records(pipeline.names.turns):
        await pipeline.publish(pipeline.names.turns, record.value or b"")
    await pipeline.topics.settled()
    await is_read(pipeline)
    assert parts(pipeline) == before


async def test_a_retry_makes_no_second_part(pipeline: InMemoryPipeline) -> None:
    sha256 = hashlib.sha256(TEXT.encode()).hexdigest()
    await pipeline.ask(pipeline.names.turns, naming(sha256, "f-1"))
    assert (await is_read(pipeline)).code == "unavailable"
    await upload(pipeline, turn_id="f-2")
    await is_read(pipeline, "f-2")
    await pipeline.command("retry_failed")
    assert (await is_read(pipeline)).status == "ready"
    ids = [derive_part_id(turn_id_of(name), f"file:{sha256}", 0) for name in ("f-1", "f-2")]
    assert {part.memory_id for part in parts(pipeline)} >= set(ids)
    assert len(parts(pipeline)) == 2 * resource(pipeline).parts


@pytest.mark.parametrize("how", [{"turn_id": "f-1", "conversation_id": "c1"}, {"project": True}, {"user": True}])
async def test_what_is_forgotten_leaves_neither_parts_nor_bytes(pipeline: InMemoryPipeline, how: Json) -> None:
    await upload_and_read(pipeline)
    await upload(pipeline, user="u2")
    await is_read(pipeline, user="u2")
    message = command_message("forget") | {"arguments": how}
    await pipeline.ask(pipeline.names.commands, message)
    assert {part.boundary for part in parts(pipeline)} == {"u2"}
    await until_gone(pipeline)
    assert await stored(pipeline, "u2")


async def test_bytes_stay_until_the_last_turn_is_forgotten(pipeline: InMemoryPipeline) -> None:
    sha256 = await upload_and_read(pipeline)
    await pipeline.ask(pipeline.names.turns, naming(sha256, "f-2"))
    await pipeline.command("forget", turn_id="f-1", conversation_id="c1")
    assert (await is_read(pipeline, "f-2")).status == "ready"
    await no_removal_is_due(pipeline)
    assert await stored(pipeline)
    await pipeline.command("forget", turn_id="f-2", conversation_id="c1")
    await until_gone(pipeline)


async def test_a_forgotten_turn_that_is_uploaded_again_leaves_no_bytes(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    await pipeline.command("forget", turn_id="f-1", conversation_id="c1")
    await until_gone(pipeline)
    await upload(pipeline)
    await until_gone(pipeline)


async def test_parts_follow_their_turn_into_another_mode(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    await pipeline.command("declare_mode", name="code", embedder="tiny32")
    await pipeline.command("set_memory_mode", memory_id=turn_id_of("f-1"), mode="code")
    await pipeline.topics.settled()
    assert {(part.mode, part.embedding.status) for part in parts(pipeline)} == {("code", "ready")}


async def test_parts_are_filtered_with_their_turn(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    await pipeline.command("set_memory_visibility", memory_id=turn_id_of("f-1"), searchable=False)
    assert (await pipeline.retrieve(QUESTION, types=["document"]))["result"]["hits"] == []


async def test_an_edited_turn_keeps_the_parts_of_the_same_file(pipeline: InMemoryPipeline) -> None:
    sha256 = await upload_and_read(pipeline)
    texts = [part.text for part in parts(pipeline)]
    await pipeline.ask(pipeline.names.turns, naming(sha256, "f-1", content="Here it is, for the others."))
    await pipeline.topics.settled()
    assert resource(pipeline).status == "ready"
    assert [part.text for part in parts(pipeline)] == texts


async def test_an_edited_turn_loses_the_parts_of_a_file_that_it_no_longer_has(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    await pipeline.remember("There is no file any more.", "f-1")
    await pipeline.topics.settled()
    assert parts(pipeline) == []


async def test_bytes_that_an_edit_left_go_once_no_upload_of_the_turn_can_be_on_its_way(
    pipeline: InMemoryPipeline,
) -> None:
    await upload_and_read(pipeline)
    pipeline.clock.forward(10**9)
    await pipeline.remember("There is no file any more.", "f-1")
    await until_gone(pipeline)


async def test_bytes_that_an_edit_left_go_with_the_forgotten_turn(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    await pipeline.remember("There is no file any more.", "f-1")
    await pipeline.command("forget", turn_id="f-1", conversation_id="c1")
    await until_gone(pipeline)


async def test_a_file_that_is_uploaded_again_while_its_bytes_are_removed_is_kept(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await upload_and_read(pipeline)
    remove, again = pipeline.file_bytes.remove, asyncio.Event()

    async def remove_after_upload(keys: Sequence[str]) -> None:
        monkeypatch.setattr(pipeline.file_bytes, "remove", remove)
        await upload(pipeline)
        await remove(keys)
        again.set()

    monkeypatch.setattr(pipeline.file_bytes, "remove", remove_after_upload)
    pipeline.clock.forward(10**9)
    await pipeline.remember("There is no file any more.", "f-1")
    await again.wait()
    assert (await is_read(pipeline)).status == "ready"
    await no_removal_is_due(pipeline)
    assert len(await stored(pipeline)) == 1


async def test_bytes_of_an_upload_on_its_way_are_kept(pipeline: InMemoryPipeline) -> None:
    sha256 = await upload_and_read(pipeline)
    await pipeline.remember("There is no file any more.", "f-1")
    await pipeline.topics.settled()
    # Its bytes are there, and its turn comes later.
    on_its_way = upload_key("u1", sha256, turn_id_of("f-1"), "second")
    await pipeline.file_bytes.put(on_its_way, io.BytesIO(TEXT.encode()))
    await asyncio.sleep(2 * reading_files.WRITES_S)
    assert on_its_way in await stored(pipeline)
    await pipeline.ask(pipeline.names.turns, naming(sha256, "f-1"))
    assert (await is_read(pipeline)).status == "ready"


async def test_a_forgotten_part_is_not_made_again(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    first, *others = [part.memory_id for part in parts(pipeline)]
    await pipeline.command("forget", memory_id=first)
    await pipeline.remember("There is no file any more.", "f-1")
    await pipeline.topics.settled()
    await upload_and_read(pipeline)
    assert [part.memory_id for part in parts(pipeline)] == others


async def test_bytes_of_another_user_are_like_bytes_of_nobody(pipeline: InMemoryPipeline) -> None:
    sha256 = await upload_and_read(pipeline)
    await pipeline.ask(pipeline.names.turns, naming(sha256, "f-9", "u2"))
    assert (await is_read(pipeline, "f-9", "u2")).code == "unavailable"


class Stuck(InProcessFileReader):
    """A reader that is never done."""

    async def read(self, path: Path, *, media_type: str, name: str) -> FileText:
        await asyncio.Event().wait()
        raise ReadFailed("unreadable", f"{name} of {media_type} at {path} was never read.")


async def test_a_killed_worker_goes_on_reading(tmp_path: Path) -> None:
    stopped = InMemoryPipeline(tmp_path)
    reader, stopped.file_reader = stopped.file_reader, Stuck()
    async with stopped.running():
        await upload(stopped)
        await stopped.topics.settled()
    stopped.file_reader = reader
    async with stopped.running():
        assert (await is_read(stopped)).status == "ready"


async def test_reconcile_removes_bytes_whose_turn_never_came(pipeline: InMemoryPipeline) -> None:
    key = file_key("u1", "0" * 64, turn_id_of("f-7"))
    await pipeline.file_bytes.put(key, io.BytesIO(b"lost"))
    await upload_and_read(pipeline)
    assert (await pipeline.command("reconcile"))["result"]["orphans"] == 0
    pipeline.clock.forward(10**9)
    assert (await pipeline.command("reconcile"))["result"]["orphans"] == 1
    assert key not in await stored(pipeline)


async def test_reconcile_removes_what_an_interrupted_upload_left(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    whole = await stored(pipeline)
    # As the store names what it is writing; the upload of this turn before the one that succeeded.
    left = Path(pipeline.settings.file_place, f"{whole[0]}#1")
    left.write_bytes(b"lo")
    os.utime(left, (0, 0))
    assert (await pipeline.command("reconcile"))["result"]["orphans"] == 1
    assert not left.exists()
    assert await stored(pipeline) == whole


async def test_health_counts_files(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    await pipeline.ask(pipeline.names.turns, naming("0" * 64, "f-2"))
    await is_read(pipeline, "f-2")
    counted = (await pipeline.command("health"))["result"]["files"]
    assert counted == {"pending": 0, "ready": 1, "failed": 1, "stored": 2}


async def test_get_file_names_a_file_of_the_user_alone(pipeline: InMemoryPipeline) -> None:
    sha256 = await upload(pipeline)
    assert (await pipeline.command("get_file", sha256=sha256))["result"]["name"] == "house.txt"
    assert (await pipeline.command("get_file", "u2", sha256=sha256))["error"]["code"] == "not_found"


async def test_files_are_listed_newest_first_with_what_became_of_them(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline, occurred_at="2026-03-01T09:00:00Z")
    await pipeline.ask(pipeline.names.turns, naming("0" * 64, "f-2") | {"occurred_at": "2026-03-02T09:00:00Z"})
    await is_read(pipeline, "f-2")
    listed = (await pipeline.command("list_files"))["result"]
    assert [file["status"] for file in listed["files"]] == ["failed", "ready"]
    assert listed["counts"] == {"pending": 0, "ready": 1, "failed": 1}
    assert listed["files"][0]["error"] == "There are no bytes of this file."


async def test_a_list_of_files_has_its_filters(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    assert (await pipeline.command("list_files", status="failed"))["result"]["files"] == []
    assert (await pipeline.command("list_files", conversation_id="c9"))["result"]["total"] == 0
    assert (await pipeline.command("list_files", "u2"))["result"]["files"] == []
    assert (await pipeline.command("list_files", skip=1))["result"]["files"] == []


async def test_the_text_of_a_file_is_shown_part_by_part(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    shown = (await pipeline.command("get_file_parts", memory_id=turn_id_of("f-1")))["result"]
    assert KEY in shown["parts"][-1]["text"]
    assert shown["total"] == shown["file"]["parts"]
    assert shown["parts"][0]["memory_id"] == parts(pipeline)[0].memory_id
    at_end = (await pipeline.command("get_file_parts", memory_id=turn_id_of("f-1"), at=len(TEXT)))["result"]
    assert at_end["first"] == shown["total"] - 1
    [last] = (await pipeline.command("get_file_parts", memory_id=turn_id_of("f-1"), skip=shown["total"] - 1))["result"][
        "parts"
    ]
    assert last["start"] == shown["parts"][-1]["start"]


async def test_the_text_of_a_file_is_shown_to_its_user_alone(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline)
    refused = await pipeline.command("get_file_parts", "u2", memory_id=turn_id_of("f-1"))
    assert refused["error"]["code"] == "not_found"


async def no_removal_is_due(pipeline: InMemoryPipeline) -> None:
    await pipeline.topics.settled()
    files = pipeline.tables.stores.files
    await pipeline.until(lambda: not any(files.removals(number) for number in range(pipeline.partitions)))


async def until_gone(pipeline: InMemoryPipeline) -> None:
    await no_removal_is_due(pipeline)
    assert await stored(pipeline) == []


async def test_a_turn_wakes_the_reader_of_files(pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_files, "LOOK_INTERVAL_S", 1000.0)
    await upload(pipeline, turn_id="f-1")
    await is_read(pipeline, "f-1")
    await upload(pipeline, turn_id="f-2")
    assert (await is_read(pipeline, "f-2")).status == "ready"


async def test_turns_beyond_those_that_wait_are_read_when_one_has_ended(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_files, "LOOK_INTERVAL_S", 1000.0)
    turn_ids = [f"f-{number}" for number in range(reading_files.MAX_WAITING_OF_USER + 2)]
    for turn_id in turn_ids:
        await upload(pipeline, turn_id=turn_id)
    assert [(await is_read(pipeline, turn_id)).status for turn_id in turn_ids] == ["ready"] * len(turn_ids)


NOTE = "Notes of Monday.\n\nWe decided to use PostgreSQL for the ledger.\n\nThe train was late."
DECISION = "We decided to use PostgreSQL for the ledger."


def items(pipeline: InMemoryPipeline) -> list[Memory]:
    return [memory for memory in pipeline.memories.all() if memory.type == "semantic"]


async def test_a_note_has_items_with_their_place_in_it(pipeline: InMemoryPipeline) -> None:
    sha256 = await upload_and_read(pipeline, NOTE)
    [item] = items(pipeline)
    [quote] = item.evidence
    assert item.text == DECISION
    assert quote.resource == f"file:{sha256}"
    assert NOTE[quote.start : quote.end] == DECISION
    [hit] = (await pipeline.retrieve("What was decided about the ledger?", types=["semantic"]))["result"]["hits"]
    assert hit["text"] == DECISION


async def test_a_note_that_is_read_again_has_no_second_item(pipeline: InMemoryPipeline) -> None:
    sha256 = hashlib.sha256(NOTE.encode()).hexdigest()
    await pipeline.ask(pipeline.names.turns, naming(sha256, "f-1"))
    await is_read(pipeline)
    await upload(pipeline, NOTE, turn_id="f-2")
    await is_read(pipeline, "f-2")
    await pipeline.command("retry_failed")
    await is_read(pipeline)
    [item] = items(pipeline)
    assert {quote.turn_id for quote in item.evidence} == {"f-1", "f-2"}


@pytest.mark.parametrize("how", [{"turn_id": "f-1", "conversation_id": "c1"}, {"project": True}, {"user": True}])
async def test_items_of_a_forgotten_file_are_gone(pipeline: InMemoryPipeline, how: Json) -> None:
    await upload_and_read(pipeline, NOTE)
    await pipeline.ask(pipeline.names.commands, command_message("forget") | {"arguments": how})
    assert items(pipeline) == []


async def test_a_forgotten_item_of_a_file_is_not_made_again(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline, NOTE)
    await pipeline.command("forget", memory_id=items(pipeline)[0].memory_id)
    await upload(pipeline, NOTE, turn_id="f-2")
    await is_read(pipeline, "f-2")
    assert items(pipeline) == []


async def test_an_edited_turn_keeps_the_items_of_the_same_file(pipeline: InMemoryPipeline) -> None:
    sha256 = await upload_and_read(pipeline, NOTE)
    await pipeline.ask(pipeline.names.turns, naming(sha256, "f-1", content="Here it is, for the others."))
    await pipeline.topics.settled()
    assert [item.text for item in items(pipeline)] == [DECISION]


async def test_an_edited_turn_loses_the_items_of_a_file_that_it_no_longer_has(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline, NOTE)
    await pipeline.remember("There is no file any more.", "f-1")
    await pipeline.topics.settled()
    assert items(pipeline) == []


async def test_a_refresh_finds_nothing_new_in_a_file(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline, NOTE)
    reply = await pipeline.command("refresh", before_revision=10**6)
    assert reply["result"]["items_added"] == 0
    assert reply["result"]["items_removed"] == 0
    assert [item.text for item in items(pipeline)] == [DECISION]


async def test_a_file_changes_nothing_in_what_its_user_is_after(pipeline: InMemoryPipeline) -> None:
    await upload_and_read(pipeline, f"{NOTE}\n\nOur API must answer within 200 ms.")
    assert len(items(pipeline)) == 2
    intention = (await pipeline.command("get_intention"))["result"]
    assert [intention["constraints"], intention["decisions"]] == [[], []]


async def test_a_model_reads_a_file_with_its_turn(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as pipeline:
        fact = {"kind": "fact", "text": "The key is under the pot.", "quote": KEY, "confidence": 0.9}
        pipeline.language.answers = lambda prompt: {"items": [fact]} if KEY in prompt.user else {}
        await upload_and_read(pipeline)
        await pipeline.until(lambda: bool(items(pipeline)))
        [item] = items(pipeline)
        [quote] = item.evidence
        assert item.text == "The key is under the pot."
        assert TEXT[quote.start : quote.end] == KEY
        assert len(pipeline.language.asked) == 1


async def test_a_model_reads_no_file_of_a_private_turn(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as pipeline:
        await upload_and_read(pipeline, private=True)
        await pipeline.remember("The lamp is in the cellar.")
        await pipeline.until(lambda: bool(pipeline.language.asked))
        assert not any(KEY in prompt.user for prompt in pipeline.language.asked)
