"""Commands: what each gives, what it changes, and what each refuses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.commands import Governed
from agents.govern import Govern
from agents.mode_spaces import ModeSpaces
from agents.remember import Remember
from schemas.changes import Change
from schemas.commands import Command
from schemas.failures import Rejected
from schemas.modes import GENERAL, Declared
from schemas.scopes import Scope
from streams.adapters.words.sqlite_words import SqliteWords
from tests.fake_claims import FakeClaims
from tests.fake_clock import FakeClock
from tests.fake_embedders import FakeEmbedders
from tests.fake_memories import FakeMemories
from tests.fake_modes import FakeModes
from tests.made_turns import record, turn

PARTITION = record().partition


class Governing:
    """The keeper of what is declared, over two users' memories."""

    def __init__(self, words: SqliteWords) -> None:
        self.memories, self.modes, self.embedders = FakeMemories(), FakeModes(), FakeEmbedders()
        self.keeper = Remember(self.memories, words, self.modes, ModeSpaces(self.modes, self.embedders), FakeClaims())
        self.govern = Govern(self.memories, self.modes, self.embedders, self._health, FakeClock())
        self.offset = 0

    def tell(self, text: str, offset: int, **changes: Any) -> str:
        """Remember a turn; returns the memory's id."""
        accepted = self.keeper.turn(turn(text, **({"turn_id": "t"} | changes)), record(offset=offset))
        return accepted.result.memory_id

    async def carried_out(
        self, command: str, project: str = "p1", offset: int | None = None, /, **arguments: Any
    ) -> Governed:
        """Give a command as u1, at the next offset unless told otherwise."""
        self.offset = self.offset + 1 if offset is None else offset
        scope = Scope(user_id="u1", project_id=project)
        given = Command(command=command, scope=scope, arguments=arguments)
        return await self.govern.command(given, PARTITION, self.offset)

    async def __call__(self, command: str, project: str = "p1", /, **arguments: Any) -> dict[str, Any]:
        """The result of a command."""
        return (await self.carried_out(command, project, **arguments)).result

    async def change(self, command: str, project: str = "p1", /, **arguments: Any) -> Change | None:
        """What a command changes in memories."""
        return (await self.carried_out(command, project, **arguments)).change

    async def refused(self, command: str, project: str = "p1", /, **arguments: Any) -> tuple[str, str | None]:
        """The code and the field of an error; nothing is changed by it."""
        before = self.declared()
        with pytest.raises(Rejected) as error:
            await self(command, project, **arguments)
        assert self.declared() == before
        assert len(error.value.message) < 500
        return error.value.code, error.value.field

    def declared(self, user: str = "u1") -> Declared:
        """What is declared."""
        return self.modes.get(PARTITION, user)

    async def _health(self, command: Command, partition: int) -> dict[str, Any]:
        return {"of": command.scope.boundary, "partition": partition}


@pytest.fixture
def governing(tmp_path: Path) -> Iterator[Governing]:
    words = SqliteWords(tmp_path)
    words.open(PARTITION)
    yield Governing(words)
    words.close()


async def test_get_memory_shows_the_record_with_evidence_and_versions(governing: Governing) -> None:
    governing.tell("violin", 1)
    memory_id = governing.tell("cello", 2, speaker="Ana")
    shown = await governing("get_memory", memory_id=memory_id)
    assert (shown["memory_id"], shown["text"], shown["version"], shown["speaker"]) == (memory_id, "cello", 2, "Ana")
    assert shown["scope"] == {"user_id": "u1", "project_id": "p1"}
    assert shown["occurred_at"] == "2026-03-01T09:30:00.001000Z"
    assert [(one["version"], one["current"]) for one in shown["versions"]] == [(1, False), (2, True)]
    assert shown["evidence"] == [{"turn_id": "t", "start": 0, "end": 5}]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_value"),
        ({"memory_id": 17}, "invalid_value"),
        ({"memory_id": ""}, "invalid_value"),
        ({"memory_id": "unknown"}, "not_found"),
        ({"memory_id": "\x00" * 100_000}, "not_found"),
    ],
)
@pytest.mark.parametrize(("command", "more"), [("get_memory", {}), ("set_memory_mode", {"mode": GENERAL})])
async def test_nothing_is_done_with_a_memory_that_is_not_there(
    governing: Governing, command: str, more: dict[str, str], arguments: dict[str, Any], code: str
) -> None:
    assert await governing.refused(command, **arguments, **more) == (code, "arguments.memory_id")


@pytest.mark.parametrize("scope", [{"user_id": "u2", "project_id": "p1"}, {"user_id": "u1", "project_id": "p2"}])
@pytest.mark.parametrize(("command", "more"), [("get_memory", {}), ("set_memory_mode", {"mode": GENERAL})])
async def test_a_memory_of_another_scope_is_not_found(
    governing: Governing, scope: dict[str, str], command: str, more: dict[str, str]
) -> None:
    memory_id = governing.tell("violin", 1, scope=scope)
    refused = await governing.refused(command, memory_id=memory_id, **more)
    assert refused == ("not_found", "arguments.memory_id")


async def test_a_new_user_has_one_mode_and_no_defaults(governing: Governing) -> None:
    listed = await governing("list_modes")
    assert [(mode["name"], mode["is_default"]) for mode in listed["modes"]] == [(GENERAL, True)]
    assert (listed["user_default"], listed["project_default"]) == (None, None)


async def test_a_declared_mode_is_answered_with_its_dimension_and_listed(governing: Governing) -> None:
    declared = await governing("declare_mode", name="code", embedder="tiny32", description="programs", is_default=True)
    assert (declared["name"], declared["embedder"], declared["embedding_dim"]) == ("code", "tiny32", 32)
    assert (declared["description"], declared["is_default"]) == ("programs", True)
    listed = await governing("list_modes")
    assert declared in listed["modes"]
    assert [mode["name"] for mode in listed["modes"]] == ["code", GENERAL]
    assert listed["user_default"] == "code"


async def test_a_preset_is_an_embedder_and_no_mode(governing: Governing) -> None:
    assert (await governing("declare_mode", name="diary", embedder="journal"))["embedding_dim"] == 768
    assert [mode["name"] for mode in (await governing("list_modes"))["modes"]] == ["diary", GENERAL]


async def test_a_mode_of_a_project_is_seen_there_alone(governing: Governing) -> None:
    await governing("declare_mode", name="code", embedder="tiny32", for_project=True)
    names = {
        project: [mode["name"] for mode in (await governing("list_modes", project))["modes"]]
        for project in ("p1", "p2")
    }
    assert names == {"p1": ["code", GENERAL], "p2": [GENERAL]}


async def test_users_do_not_see_each_others_modes(governing: Governing) -> None:
    await governing("declare_mode", name="code", embedder="tiny32")
    assert governing.declared("u2") == Declared()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "arguments.name"),
        ({"name": "code"}, "arguments.embedder"),
        ({"name": "code", "embedder": "word2vec"}, "arguments.embedder"),
        ({"name": "code", "embedder": "x" * 250}, "arguments.embedder"),
        ({"name": "Code", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "a" * 65, "embedder": "tiny32"}, "arguments.name"),
        ({"name": "code\n", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "*", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "code", "embedder": "tiny32", "decay": "sudden"}, "arguments.decay"),
        ({"name": "code", "embedder": "tiny32", "is_default": "yes"}, "arguments.is_default"),
        ({"name": "code", "embedder": "tiny32", "query_prefix": 7}, "arguments.query_prefix"),
    ],
)
async def test_a_mode_that_cannot_be_declared(governing: Governing, arguments: dict[str, Any], field: str) -> None:
    assert await governing.refused("declare_mode", **arguments) == ("invalid_value", field)


@pytest.mark.parametrize("name", ["a", "a" * 64, "my-mode_2", "0"])
async def test_names_that_are_fine(governing: Governing, name: str) -> None:
    assert (await governing("declare_mode", name=name, embedder="tiny32"))["name"] == name


async def test_a_new_mode_changes_no_memory(governing: Governing) -> None:
    assert await governing.change("declare_mode", name="code", embedder="tiny32") is None


async def test_declaring_the_same_again_changes_no_memory(governing: Governing) -> None:
    first = await governing("declare_mode", name="code", embedder="tiny32", passage_prefix="p: ")
    again = await governing.carried_out("declare_mode", name="code", embedder="tiny32", query_prefix="q: ")
    assert again.change is None
    assert again.result == first | {"query_prefix": "q: "}


@pytest.mark.parametrize("anew", [{"embedder": "tiny48"}, {"embedder": "tiny32", "passage_prefix": "p: "}])
async def test_another_vector_space_has_the_memories_embedded_again(governing: Governing, anew: dict[str, str]) -> None:
    await governing("declare_mode", name="code", embedder="tiny32")
    governed = await governing.carried_out("declare_mode", name="code", **anew)
    change = governed.change
    assert change is not None
    assert (change.action, change.mode, change.project, change.except_projects) == ("stale", "code", None, ())
    assert change.result == governed.result


async def test_general_can_have_another_embedder(governing: Governing) -> None:
    change = await governing.change("declare_mode", name=GENERAL, embedder="tiny32")
    assert change is not None
    assert (change.action, change.mode, change.project) == ("stale", GENERAL, None)


@pytest.mark.parametrize("name", ["code", GENERAL])
async def test_a_projects_mode_takes_over_the_memories_of_the_users_mode_there(governing: Governing, name: str) -> None:
    await governing("declare_mode", "p2", name=name, embedder="tiny32")
    change = await governing.change("declare_mode", name=name, embedder="tiny48", for_project=True)
    assert change is not None
    assert (change.action, change.mode, change.project) == ("stale", name, "p1")
    assert await governing.change("declare_mode", "p3", name=name, embedder="tiny32", for_project=True) is None


async def test_a_users_mode_does_not_reach_into_projects_that_have_their_own(governing: Governing) -> None:
    await governing("declare_mode", name="code", embedder="tiny32")
    for project in ("p2", "p3"):
        await governing("declare_mode", project, name="code", embedder="tiny32", for_project=True)
    change = await governing.change("declare_mode", name="code", embedder="tiny48")
    assert change is not None
    assert (change.project, change.except_projects) == (None, ("p2", "p3"))
    change = await governing.change("delete_mode", "p2", name="code", memories="move:general")
    assert change is not None
    assert (change.project, change.except_projects) == ("p2", ())


async def test_a_renamed_mode_takes_its_memories_along(governing: Governing) -> None:
    await governing("declare_mode", name="code", embedder="tiny32", is_default=True)
    governed = await governing.carried_out("rename_mode", name="code", new_name="programs")
    assert (governed.result["name"], governed.result["is_default"]) == ("programs", True)
    change = governed.change
    assert change is not None
    assert (change.action, change.mode, change.to, change.memory_id) == ("move", "code", "programs", None)
    assert change.result == governed.result


async def test_a_renaming_that_comes_again_gives_the_same_again(governing: Governing) -> None:
    await governing("declare_mode", name="code", embedder="tiny32")
    first = await governing.carried_out("rename_mode", name="code", new_name="programs")
    assert await governing.carried_out("rename_mode", name="code", new_name="programs") == first


async def test_renaming_onto_a_mode_that_is_there_is_a_conflict(governing: Governing) -> None:
    for name in ("code", "diary"):
        await governing("declare_mode", name=name, embedder="tiny32")
    refused = await governing.refused("rename_mode", name="code", new_name="diary")
    assert refused == ("conflict", "arguments.new_name")


@pytest.mark.parametrize(
    ("memories", "action", "to"),
    [("forget", "forget", None), ("move:diary", "move", "diary"), ("move:general", "move", GENERAL)],
)
async def test_a_deleted_mode_says_what_becomes_of_its_memories(
    governing: Governing, memories: str, action: str, to: str | None
) -> None:
    for name in ("code", "diary"):
        await governing("declare_mode", name=name, embedder="tiny32")
    governed = await governing.carried_out("delete_mode", name="code", memories=memories)
    change = governed.change
    assert change is not None
    assert (change.action, change.mode, change.to, change.result) == (action, "code", to, governed.result)
    assert governed.result == {"name": "code", "moved": 0, "forgotten": 0}
    assert governing.declared().find("code", "p1") is None
    assert (await governing.carried_out("delete_mode", name="code", memories=memories)).change == change


@pytest.mark.parametrize("memories", ["", "keep", "move:", "move:Code", "forget\n", None, 1])
async def test_a_fate_that_there_is_not(governing: Governing, memories: Any) -> None:
    await governing("declare_mode", name="code", embedder="tiny32")
    refused = await governing.refused("delete_mode", name="code", memories=memories)
    assert refused == ("invalid_value", "arguments.memories")


async def test_defaults_are_answered_as_they_are_from_now_on(governing: Governing) -> None:
    await governing("declare_mode", name="code", embedder="tiny32")
    assert await governing("set_default_mode", name="code") == {"user_default": "code", "project_default": None}
    effective = await governing("set_default_mode", name=GENERAL, for_project=True)
    assert effective == {"user_default": "code", "project_default": GENERAL}
    assert await governing("set_default_mode", name=None) == {"user_default": None, "project_default": GENERAL}
    assert await governing.refused("set_default_mode") == ("invalid_value", "arguments.name")
    assert await governing.refused("set_default_mode", name="gone") == ("unknown_mode", "arguments.name")


async def test_a_memory_is_put_into_a_mode_as_its_user_says(governing: Governing) -> None:
    memory_id = governing.tell("violin", 1)
    await governing("declare_mode", name="code", embedder="tiny32")
    governed = await governing.carried_out("set_memory_mode", memory_id=memory_id, mode="code")
    change = governed.change
    assert change is not None
    assert (change.action, change.memory_id, change.to, change.result) == ("move", memory_id, "code", None)
    assert governed.corrects
    refused = await governing.refused("set_memory_mode", memory_id=memory_id, mode="gone")
    assert refused == ("unknown_mode", "arguments.mode")


async def test_a_correction_is_counted_once_however_often_its_command_comes(governing: Governing) -> None:
    memory_id = governing.tell("violin", 1)
    await governing("declare_mode", name="code", embedder="tiny32")
    for _ in range(2):
        governed = await governing.carried_out("set_memory_mode", "p1", 7, memory_id=memory_id, mode="code")
        assert governed.change is not None
    assert not governed.corrects
    assert governing.declared().corrections == 1
    await governing.carried_out("set_memory_mode", "p1", 8, memory_id=memory_id, mode="code")
    assert governing.declared().corrections == 2


async def test_saying_that_a_mode_is_right_is_no_correction(governing: Governing) -> None:
    memory_id = governing.tell("violin", 1)
    governed = await governing.carried_out("set_memory_mode", memory_id=memory_id, mode=GENERAL)
    assert governed.change is not None, "from now on its caller has fixed it"
    assert not governed.corrects
    assert governing.declared().corrections == 0


async def test_health_is_asked_of_whoever_knows(governing: Governing) -> None:
    assert await governing("health") == {"of": "u1", "partition": PARTITION}


@pytest.mark.parametrize("command", ["fly", "__class__", "get_memory ", "x" * 1_000_000])
async def test_another_command_is_unknown_and_the_known_ones_are_named(governing: Governing, command: str) -> None:
    with pytest.raises(Rejected) as refused:
        await governing(command)
    assert (refused.value.code, refused.value.field) == ("unknown_command", "command")
    assert "list_modes" in refused.value.message
    assert len(refused.value.message) < 300


@pytest.mark.parametrize(
    ("arguments", "selects"),
    [
        ({"conversation_id": "c1"}, {"conversation_id": "c1"}),
        ({"project": True}, {"whole": "project"}),
        ({"user": True}, {"whole": "user"}),
        ({"memory_id": "m"}, {"memory_id": "m"}),
    ],
)
async def test_forget_selects_one_thing(
    governing: Governing, arguments: dict[str, Any], selects: dict[str, Any]
) -> None:
    change = await governing.change("forget", **arguments)
    scope = Scope(user_id="u1", project_id="p1")
    assert change == Change(scope=scope, action="forget", result={"forgotten": 0}, **selects)


async def test_forget_finds_a_turn_by_its_conversation_also_one_whose_id_was_derived(governing: Governing) -> None:
    known, derived = governing.tell("violin", 1), governing.tell("cello", 2, turn_id=None)
    memory = governing.memories.get(PARTITION, derived)
    assert memory is not None
    for turn_id, memory_id in (("t", known), (memory.turn_id, derived)):
        change = await governing.change("forget", turn_id=turn_id, conversation_id="c1")
        assert change is not None
        assert change.memory_id == memory_id


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"turn_id": "t"},
        {"memory_id": "m", "turn_id": "t", "conversation_id": "c1"},
        {"memory_id": "m", "conversation_id": "c1"},
        {"project": True, "user": True},
        {"user": False},
        {"user": True, "project": False},
        {"memory_id": ""},
        {"memory_id": 7},
    ],
)
async def test_forget_refuses_none_and_more_than_one(governing: Governing, arguments: dict[str, Any]) -> None:
    code, field = await governing.refused("forget", **arguments)
    assert code == "invalid_value"
    assert field is not None
    assert field.startswith("arguments")
    assert not field.endswith(".")
