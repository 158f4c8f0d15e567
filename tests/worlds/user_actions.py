"""Actions on a user's memories, and the turns that must be current afterwards.

Enters: actions, each a name and numbers, and an in-memory pipeline. Leaves: the pipeline with all records processed.
Guaranteed: the same actions on two empty pipelines give the same records on their topics. A number selects among
the existing memories, so that any number is valid.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.messages.records import Outgoing, Record
from schemas.state.memories import Memory, derive_memory_id
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message, turn_message

USER = "u1"
"""The user that the actions concern."""

BYSTANDER = "u2"
"""A user without actions, whose turns must all remain."""

PROJECTS = ("p1", "p2")
CONVERSATIONS = ("c0", "c1")
MODES = ("garden", "code")
NAMES = (*MODES, "plants")

FILTERS = [{"searchable": searchable, "private": private} for private in (False, True) for searchable in (False, True)]

SAID = (
    "The deploy target is fly.io now. Lunch was {mark} soup.",
    "No, the new deploy target is AWS, not fly.io. Lunch was {mark} soup.",
    "I live in Lyon. Lunch was {mark} soup.",
    "I now live in Paris. Lunch was {mark} soup.",
    "My goal is to ship the {mark} beta in June.",
    "My goal is to paint the shed. The API must answer within 200 ms. Lunch was {mark} soup.",
    "The API must really answer within 200 ms. Lunch was {mark} soup.",
    "The login fails with a 500. Lunch was {mark} soup.",
    "The login is fixed. Lunch was {mark} soup.",
    "We decided to use PostgreSQL for the {mark} ledger.",
)
"""Texts, each with a unique mark: they give items, contradict or repeat each other, and resolve open errors."""

WATERED = "Watered the tomatoes in the greenhouse on day {mark}, they look healthy."
"""Repeated turns of this form are consolidated."""

DOCUMENT = "The port of the metrics server is 9410. Nobody has painted the {mark} shed."

AT_ONCE = 4
"""Nearly equal turns: one more than a cluster needs."""


REFUSALS = ("unknown_mode", "conflict", "not_found")
"""Allowed error codes of commands about missing or existing modes."""


@dataclass(frozen=True)
class Action:
    """One action. The method of `ActionRunner` with its name takes the numbers."""

    name: str
    numbers: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.numbers))})"


@dataclass
class ActionRunner:
    """Performs actions and tracks the current text of each turn that was not forgotten."""

    pipeline: InMemoryPipeline
    projects = PROJECTS
    current_marks: dict[str, str] = field(default_factory=dict)
    """The mark of each turn's text, by memory id."""
    forgotten: set[str] = field(default_factory=set)
    marks: set[str] = field(default_factory=set)
    """All marks so far."""

    async def begin(self) -> None:
        """Declare modes and a category, and remember turns of the bystander."""
        for mode in MODES:
            await self.pipeline.command("declare_mode", USER, name=mode, embedder="tiny32")
        for project in PROJECTS:
            about = {"name": "deploying", "description": "deploy target, port, release, login"}
            await self.pipeline.command("declare_category", USER, project, **about)
        for number, text in enumerate(SAID[:3]):
            await self.pipeline.remember(text.format(mark="calm"), f"b{number}", BYSTANDER)
        await self.pipeline.topics.settled()

    async def perform(self, action: Action) -> None:
        """Perform one action, a second after the last."""
        self.pipeline.clock.forward(1)
        await getattr(self, action.name)(*action.numbers)

    async def say(self, text: int, number: int, conversation: int, project: int) -> None:
        """Remember a turn, or edit it if it exists."""
        mark = f"mk{text}x{number}x{conversation}x{project}"
        await self._say(SAID[text].format(mark=mark), mark, f"t{number}", conversation, project)

    async def show(self, number: int, conversation: int, project: int) -> None:
        """Remember a turn with a document."""
        mark = f"doc{number}x{conversation}x{project}"
        document = {"uri": "file:///notes.txt", "text": DOCUMENT.format(mark=mark)}
        await self._say("Here are my notes.", mark, f"t{number}", conversation, project, resources=[document])

    async def repeat(self, first: int, conversation: int, project: int) -> None:
        """Remember several nearly equal turns."""
        for number in range(first, first + AT_ONCE):
            mark = f"day{number}x{conversation}x{project}"
            await self._say(WATERED.format(mark=mark), mark, f"w{number}", conversation, project)
        await self.pipeline.topics.settled()

    async def replay(self, number: int) -> None:
        """Publish the record of a turn again."""
        records = [
            record for record in self.pipeline.topics.records(self.pipeline.names.turns) if record.key == USER.encode()
        ]
        if records:
            await self._publish_again(records[number % len(records)])

    async def move(self, number: int, name: int) -> None:
        if (memory := self._pick_memory(number)) is not None:
            mode = (*NAMES, "general")[name]
            await self._command("set_memory_mode", memory.scope["project_id"], memory_id=memory.memory_id, mode=mode)

    async def filter(self, number: int, filters: int) -> None:
        """Set whether searches find a turn or a summary, and whether a language model reads it."""
        if (memory := self._pick_memory(number)) is not None and memory.origin != "extracted":
            given = {"memory_id": memory.memory_id, **FILTERS[filters]}
            await self._command("set_memory_visibility", memory.scope["project_id"], **given)

    async def filter_mode(self, name: int, filters: int) -> None:
        await self._command("declare_mode", name=NAMES[name], embedder="tiny32", **FILTERS[filters])

    async def rename(self, name: int, new: int) -> None:
        """Rename a mode, if the name is free."""
        await self._command("rename_mode", name=NAMES[name], new_name=NAMES[new])

    async def delete(self, name: int, fate: int) -> None:
        """Delete a mode; forget its memories or move them to `general`."""
        ids = [memory.memory_id for memory in self._said() if memory.mode == NAMES[name]]
        memories = ("forget", "move:general")[fate]
        reply = await self._command("delete_mode", name=NAMES[name], memories=memories)
        if reply["status"] == "ok" and memories == "forget":
            self._expect_forgotten(ids)
        await self._command("declare_mode", name=NAMES[name], embedder="tiny32")

    async def consolidate(self, project: int) -> None:
        await self.pipeline.topics.settled()
        scope = {"user_id": USER, "project_id": PROJECTS[project]}
        reply = await self.pipeline.ask(
            self.pipeline.names.consolidate, {"schema": "consolidate.v1", "scope": scope, "mode": None}
        )
        assert reply["status"] == "ok", reply
        await self.pipeline.topics.settled()

    async def forget(self, number: int) -> None:
        if (memory := self._pick_memory(number)) is not None:
            await self._command("forget", memory.scope["project_id"], memory_id=memory.memory_id)
            self._expect_forgotten([memory.memory_id] if memory.origin == "said" else [])

    async def forget_derived(self, number: int) -> None:
        """Forget an item or a summary by its id; its turns stay."""
        if derived := [memory for memory in self.memories() if memory.origin != "said"]:
            memory = derived[number % len(derived)]
            await self._command("forget", memory.scope["project_id"], memory_id=memory.memory_id)

    async def forget_turn(self, number: int) -> None:
        if turns := self._said():
            memory = turns[number % len(turns)]
            named = {"turn_id": memory.turn_id, "conversation_id": memory.conversation_id}
            await self._command("forget", memory.scope["project_id"], **named)
            self._expect_forgotten([memory.memory_id])

    async def forget_conversation(self, conversation: int, project: int) -> None:
        name = CONVERSATIONS[conversation]
        ids = [turn for turn in self._said(project) if turn.conversation_id == name]
        await self._command("forget", PROJECTS[project], conversation_id=name)
        self._expect_forgotten(turn.memory_id for turn in ids)

    async def forget_project(self, project: int) -> None:
        ids = [memory.memory_id for memory in self._said(project)]
        await self._command("forget", PROJECTS[project], project=True)
        self._expect_forgotten(ids)

    async def forget_user(self) -> None:
        ids = [memory.memory_id for memory in self._said()]
        await self._command("forget", user=True)
        self._expect_forgotten(ids)

    async def replay_all(self) -> None:
        """Publish all turn records again, in their order."""
        records = self.pipeline.topics.records(self.pipeline.names.turns)
        for record in records:
            await self.pipeline.topics.append(_without_reply(record))
        await self.pipeline.topics.settled()

    def memories(self) -> list[Memory]:
        """Return all memories of the user, sorted by id."""
        mine = [memory for memory in self.pipeline.memories.all() if memory.boundary == USER]
        return sorted(mine, key=lambda each: each.memory_id)

    def _said(self, project: int | None = None) -> list[Memory]:
        projects = PROJECTS if project is None else (PROJECTS[project],)
        return [
            memory for memory in self.memories() if memory.origin == "said" and memory.scope["project_id"] in projects
        ]

    def _pick_memory(self, number: int) -> Memory | None:
        known = self.memories()
        return known[number % len(known)] if known else None

    def _expect_forgotten(self, memory_ids: Iterable[str]) -> None:
        for memory_id in memory_ids:
            del self.current_marks[memory_id]
            self.forgotten.add(memory_id)

    async def _say(self, text: str, mark: str, turn_id: str, conversation: int, project: int, **more: Any) -> None:
        scope = {"user_id": USER, "project_id": PROJECTS[project]}
        fields = {"conversation_id": CONVERSATIONS[conversation], "metadata": {"mark": mark}, **more}
        turns = turn_message(text, turn_id, USER, **fields) | {"scope": scope}
        self._expect(turns, await self.pipeline.ask(self.pipeline.names.turns, turns))

    async def _publish_again(self, record: Record) -> None:
        await self.pipeline.topics.append(_without_reply(record))
        await self.pipeline.topics.settled()
        self._expect(json.loads(record.value or b""))

    def _expect(self, turns: Mapping[str, Any], reply: Json | None = None) -> None:
        memory_id = derive_memory_id(turns["scope"], turns["conversation_id"], turns["turn_id"])
        mark = turns["metadata"]["mark"]
        self.marks.add(mark)
        warned = [] if reply is None else [warning["code"] for warning in reply["warnings"]]
        if memory_id not in self.forgotten:
            self.current_marks[memory_id] = mark
        if reply is not None:
            assert reply["status"] == "ok"
            assert ("forgotten" in warned) == (memory_id in self.forgotten)

    async def _command(self, command: str, project: str = PROJECTS[0], /, **arguments: Any) -> Json:
        message = command_message(command, USER, project) | {"arguments": arguments}
        reply = await self.pipeline.ask(self.pipeline.names.commands, message)
        assert reply["status"] == "ok" or reply["error"]["code"] in REFUSALS, reply
        return reply


def _without_reply(record: Record) -> Outgoing:
    headers = tuple(header for header in record.headers if header[0] not in ("reply_to", "correlation_id"))
    return Outgoing(record.topic, key=record.key, value=record.value, headers=headers, timestamp_ms=record.timestamp_ms)
