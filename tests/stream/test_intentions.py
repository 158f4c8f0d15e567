"""What somebody is after, over the whole map: it follows what is said, and nothing of it outlives its turns."""

import json
from pathlib import Path
from typing import Any

from schemas.language import Profiles
from streams.wire.partitioning import partition_of
from tests.fakes.intentions import FakeIntentions
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryMap, commanded

PARTS = ("goals", "constraints", "blocking_errors", "decisions")

STORY = {
    "t-1": "We want to ship the beta in May.",
    "t-2": "We decided to use PostgreSQL for the ledger. The API must answer within 200 ms.",
    "t-3": "The login fails with a 500 error.",
    "t-4": "It works now.",
    "t-5": "We shipped the beta.",
}


async def tell(the_map: InMemoryMap, *turn_ids: str) -> None:
    """Publish turns of the story, each a minute after the one before it, and wait until all is settled."""
    for turn_id in turn_ids or STORY:
        minute = turn_id.removeprefix("t-")
        await the_map.remember(STORY[turn_id], turn_id, occurred_at=f"2026-03-01T09:0{minute}:00Z")
    await the_map.topics.settled()


async def intention(the_map: InMemoryMap, project: str = "default", user: str = "u1") -> dict[str, list[str]]:
    """The texts of what stands, by list, without the lists that are empty."""
    result = (await the_map.command("get_intention", user, project))["result"]
    return {part: [entry["text"] for entry in result[part]] for part in PARTS if result[part]}


async def forget(the_map: InMemoryMap, **what: Any) -> None:
    """Forget, and do not wait for anything but the answer."""
    message = commanded("forget") | {"arguments": what}
    assert (await the_map.ask(the_map.names.commands, message))["status"] == "ok"


def stored(the_map: InMemoryMap) -> str:
    """What the table holds for the scope of the story, whether it may be shown or not."""
    here = partition_of(b"u1", the_map.partitions)
    return the_map.intentions.get(here, {"user_id": "u1", "project_id": "default"}).model_dump_json()


def running(directory: Path, profiles: Profiles | None = None) -> Any:
    return InMemoryMap(directory / "data", profiles=profiles or Profiles()).running()


async def test_it_follows_what_is_said(tmp_path: Path) -> None:
    async with running(tmp_path) as the_map:
        await tell(the_map, "t-1", "t-2", "t-3")
        rules = {
            "constraints": ["The API must answer within 200 ms."],
            "decisions": ["We decided to use PostgreSQL for the ledger."],
        }
        goal, error = [STORY["t-1"]], [STORY["t-3"]]
        assert await intention(the_map) == {"goals": goal, "blocking_errors": error, **rules}
        await tell(the_map, "t-4")
        assert await intention(the_map) == {"goals": goal, **rules}
        await tell(the_map, "t-5")
        assert await intention(the_map) == rules


async def test_the_same_turns_again_change_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as the_map:
        await tell(the_map)
        before = await the_map.command("get_intention")
        await tell(the_map)
        assert await the_map.command("get_intention") == before


async def test_a_forgotten_turn_is_gone_the_moment_that_is_answered_and_leaves_the_table(tmp_path: Path) -> None:
    async with running(tmp_path) as the_map:
        await tell(the_map, "t-1", "t-2")
        await forget(the_map, turn_id="t-2", conversation_id="c1")
        assert await intention(the_map) == {"goals": [STORY["t-1"]]}
        await the_map.topics.settled()
        assert "PostgreSQL" not in stored(the_map)


async def test_a_goal_is_open_again_when_the_turn_that_ended_it_is_forgotten(tmp_path: Path) -> None:
    async with running(tmp_path) as the_map:
        await tell(the_map, "t-1", "t-5")
        assert await intention(the_map) == {}
        await forget(the_map, turn_id="t-5", conversation_id="c1")
        assert await intention(the_map) == {"goals": [STORY["t-1"]]}


async def test_an_edited_turn_counts_as_it_is_now(tmp_path: Path) -> None:
    async with running(tmp_path) as the_map:
        await tell(the_map, "t-1")
        await the_map.remember("We want to learn sailing.", "t-1", occurred_at="2026-03-01T09:01:00Z")
        await the_map.topics.settled()
        assert await intention(the_map) == {"goals": ["We want to learn sailing."]}


async def test_forgetting_a_project_takes_what_was_said_and_what_was_set_there(tmp_path: Path) -> None:
    async with running(tmp_path) as the_map:
        await tell(the_map, "t-1", "t-2")
        for project in ("default", "p2"):
            await the_map.command("set_intention", project=project, goals=["learn to row"], constraints=["no debts"])
        await forget(the_map, project=True)
        assert await intention(the_map) == {}
        assert await intention(the_map, "p2") == {"goals": ["learn to row"], "constraints": ["no debts"]}
        await the_map.topics.settled()
        kept = stored(the_map)
        assert not any(text in kept for text in ("learn", "debts", "beta", "PostgreSQL"))


async def test_forgetting_a_user_takes_it_in_every_project(tmp_path: Path) -> None:
    async with running(tmp_path) as the_map:
        for project in ("default", "p2"):
            await the_map.command("set_intention", project=project, goals=["learn to row"])
        await forget(the_map, user=True)
        assert [await intention(the_map, project) for project in ("default", "p2")] == [{}, {}]


async def test_an_intention_belongs_to_its_scope(tmp_path: Path) -> None:
    async with running(tmp_path) as the_map:
        await tell(the_map)
        assert [await intention(the_map, "p2"), await intention(the_map, user="u2")] == [{}, {}]


async def test_what_a_language_model_finds_is_added(tmp_path: Path) -> None:
    async with running(tmp_path, ONE_PROFILE) as the_map:
        the_map.language.answers = lambda _prompt: {"intention": {"goals": ["Move house by June"]}}
        await the_map.remember("Boxes everywhere.", "t-1")
        await the_map.topics.settled()
        await the_map.until(lambda: the_map.memory("Boxes everywhere.").reading.status == "model")
        await the_map.topics.settled()
        shown = (await the_map.command("get_intention"))["result"]
        assert [(entry["text"], entry["source"]) for entry in shown["goals"]] == [("Move house by June", "model")]
        assert json.dumps(shown["goals"]).count(the_map.memory("Boxes everywhere.").memory_id) == 1


async def test_what_is_set_and_not_written_yet_is_set_again_after_a_kill(tmp_path: Path) -> None:
    the_map = InMemoryMap(tmp_path / "data")
    ours = (("reply_to", the_map.names.replies.encode()), ("correlation_id", b"mine"))
    wish = commanded("set_intention", goals=["learn to row"])
    the_map.intentions.outage = True
    async with the_map.running():
        await the_map.publish(the_map.names.commands, wish, headers=ours)
        await the_map.until(lambda: len(the_map.replies(b"mine")) == 1)
    the_map.intentions = FakeIntentions()
    async with the_map.running():
        await the_map.until(lambda: len(the_map.replies(b"mine")) == 2)
        assert await intention(the_map) == {"goals": ["learn to row"]}
