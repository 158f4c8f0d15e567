"""Commands: what each gives, and what each refuses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.govern import Govern
from agents.remember import Remember
from schemas.commands import Command
from schemas.failures import Rejected
from schemas.memories import Embedding
from schemas.modes import Mode, VectorSpace
from schemas.scopes import Scope
from streams.adapters.words.sqlite_words import SqliteWords
from tests.fake_embedder import FakeEmbedder
from tests.fake_index import FakeIndex
from tests.fake_memories import FakeMemories
from tests.made_turns import record, turn

PARTITION = record().partition
FINGERPRINT = FakeEmbedder().fingerprint


class Governed:
    """The keeper of commands over two users' memories."""

    def __init__(self, words: SqliteWords) -> None:
        self.memories = FakeMemories()
        self.words = words
        self.index = FakeIndex()
        self.keeper = Remember(self.memories, words)
        self.govern = Govern(
            self.memories,
            words,
            self.index,
            lambda mode: VectorSpace(mode, FINGERPRINT),
            Mode(name="general", embedder="general", embedding_dim=64, is_default=True),
            lambda: {"lag": {"memory.turns": 0}},
        )

    def tell(self, text: str, offset: int, **changes: Any) -> str:
        """Remember a turn; returns the memory's id."""
        accepted = self.keeper.turn(turn(text, turn_id="t", **changes), record(offset=offset))
        return accepted.result.memory_id

    async def __call__(self, command: str, project: str = "p1", **arguments: Any) -> dict[str, Any]:
        """Give a command as u1."""
        scope = Scope(user_id="u1", project_id=project)
        return await self.govern.command(Command(command=command, scope=scope, arguments=arguments), PARTITION)


@pytest.fixture
def governed(tmp_path: Path) -> Iterator[Governed]:
    words = SqliteWords(tmp_path)
    words.open(PARTITION)
    yield Governed(words)
    words.close()


async def test_get_memory_shows_the_record_with_evidence_and_versions(governed: Governed) -> None:
    governed.tell("violin", 1)
    memory_id = governed.tell("cello", 2, speaker="Ana")
    shown = await governed("get_memory", memory_id=memory_id)
    assert (shown["memory_id"], shown["text"], shown["version"], shown["speaker"]) == (memory_id, "cello", 2, "Ana")
    assert shown["scope"] == {"user_id": "u1", "project_id": "p1"}
    assert shown["occurred_at"] == "2026-03-01T09:30:00.001000Z"
    assert [(one["version"], one["current"]) for one in shown["versions"]] == [(1, False), (2, True)]
    assert shown["evidence"] == [{"turn_id": "t", "start": 0, "end": 5}]
    assert not shown.keys() & {"boundary", "source", "latest"}


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        ({}, "invalid_value", "arguments.memory_id"),
        ({"memory_id": 17}, "invalid_value", "arguments.memory_id"),
        ({"memory_id": ""}, "invalid_value", "arguments.memory_id"),
        ({"memory_id": "unknown"}, "not_found", "arguments.memory_id"),
        ({"memory_id": "\x00" * 100_000}, "not_found", "arguments.memory_id"),
    ],
)
async def test_get_memory_of_nothing_is_refused(
    governed: Governed, arguments: dict[str, Any], code: str, field: str
) -> None:
    with pytest.raises(Rejected) as refused:
        await governed("get_memory", **arguments)
    assert (refused.value.code, refused.value.field) == (code, field)


@pytest.mark.parametrize("scope", [{"user_id": "u2", "project_id": "p1"}, {"user_id": "u1", "project_id": "p2"}])
async def test_a_memory_of_another_scope_is_not_found(governed: Governed, scope: dict[str, str]) -> None:
    memory_id = governed.tell("violin", 1, scope=scope)
    with pytest.raises(Rejected, match="not_found"):
        await governed("get_memory", memory_id=memory_id)


async def test_a_new_user_has_one_mode(governed: Governed) -> None:
    listed = await governed("list_modes")
    assert [mode["name"] for mode in listed["modes"]] == ["general"]
    assert (listed["user_default"], listed["project_default"]) == ("general", None)


async def test_health_counts_this_boundary_alone(governed: Governed) -> None:
    memory_id = governed.tell("violin", 1)
    governed.tell("cello", 2, scope={"user_id": "u2"})
    counted = (await governed("health"))["modes"]["general"]
    assert {name: counted[name] for name in ("eligible", "pending", "ready", "stale", "failed")} == {
        "eligible": 1,
        "pending": 1,
        "ready": 0,
        "stale": 0,
        "failed": 0,
    }
    assert (counted["fingerprint"], counted["last_backfill"]) == (FINGERPRINT.digest, None)
    memory = governed.memories.get(PARTITION, memory_id)
    assert memory is not None
    ready = memory.model_copy(update={"embedding": Embedding(status="ready", space=FINGERPRINT.digest)})
    governed.words.put(PARTITION, ready)
    assert (await governed("health"))["modes"]["general"]["ready"] == 1


async def test_health_of_nobody_has_zeros(governed: Governed) -> None:
    health = await governed("health")
    assert health["modes"]["general"]["eligible"] == 0
    assert (health["lag"], health["vector_index"], health["language_model"]) == ({"memory.turns": 0}, "ready", "none")


async def test_health_says_why_the_vector_index_is_away_and_answers_all_the_same(governed: Governed) -> None:
    governed.index.down()
    assert (await governed("health"))["vector_index"].startswith("unavailable: ")


@pytest.mark.parametrize("command", ["fly", "__class__", "get_memory ", "x" * 1_000_000])
async def test_another_command_is_unknown_and_the_known_ones_are_named(governed: Governed, command: str) -> None:
    with pytest.raises(Rejected) as refused:
        await governed(command)
    assert (refused.value.code, refused.value.field) == ("unknown_command", "command")
    assert "list_modes" in refused.value.message
    assert len(refused.value.message) < 300
