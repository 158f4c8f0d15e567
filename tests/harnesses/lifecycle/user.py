"""One user of the lifecycle: turns, commands, forgetting and answers of a language model.

Enters: an action and the number of a turn. Leaves: records at the ends of the
topics `turns`, `commands` and `understood`, not read yet.
"""

from typing import Any

from agents.rules.memory.versions import identify_turn
from schemas.internal.events import Understood
from schemas.messages.commands import Command
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.scopes import Scope
from schemas.state.memories import hash_texts
from schemas.state.understanding import FoundItem, Understanding
from tests.builders.turns import TIMESTAMP_MS, record, turn
from tests.fakes.clock import FakeClock
from tests.fakes.tables.memories import FakeMemories
from tests.harnesses.lifecycle.indexer import Topic

PARTITION = record().partition
USER = "u1"


class LifecycleUser:
    def __init__(self, topics: dict[str, Topic], memories: FakeMemories, clock: FakeClock) -> None:
        self.topics = topics
        self.memories = memories
        self.clock = clock

    def say(self, number: int, text: str, mode: str | None = None) -> None:
        """Publish a turn; every third is in another project."""
        self.topics["turns"].events.append((_turn(number, text, mode), TIMESTAMP_MS + len(self.topics["turns"].events)))

    def replay(self, place: int) -> None:
        """Publish an earlier turn again, as a copying tool does."""
        turns = self.topics["turns"].events
        if turns:
            turns.append(turns[place % len(turns)])

    def command(self, command: str, project: str, /, **arguments: Any) -> None:
        scope = Scope(user_id=USER, project_id=project)
        self.topics["commands"].events.append(Command(command=command, scope=scope, arguments=arguments))

    def set_mode(self, number: int, mode: str) -> None:
        self.command("set_memory_mode", _project(number), memory_id=_memory_id(number), mode=mode)

    def set_visibility(self, number: int, searchable: bool, private: bool) -> None:
        """Filter the memory of a turn, or no longer."""
        flags = {"searchable": searchable, "private": private}
        self.command("set_memory_visibility", _project(number), memory_id=_memory_id(number), **flags)

    def forget(self, selector: str, number: int) -> None:
        """Forget a turn's memory, or all of its conversation, project or user."""
        selectors: dict[str, dict[str, Any]] = {
            "memory": {"memory_id": _memory_id(number)},
            "turn": {"turn_id": f"t{number}", "conversation_id": _conversation(number)},
            "conversation": {"conversation_id": _conversation(number)},
            "project": {"project": True},
            "user": {"user": True},
        }
        self.command("forget", _project(number), **selectors[selector])

    def forget_item(self, number: int) -> None:
        """Forget an item of a turn, if there is one."""
        for item in self._items_of(number)[:1]:
            self.command("forget", _project(number), memory_id=item)

    def set_item_mode(self, number: int, mode: str) -> None:
        for item in self._items_of(number)[:1]:
            self.command("set_memory_mode", _project(number), memory_id=item, mode=mode)

    def replay_all(self) -> None:
        turns = self.topics["turns"].events
        turns += list(turns)

    def answer(self, number: int, text: str, mode: str | None) -> None:
        """Publish a language model's answer about a turn with this text."""
        item = FoundItem(kind="fact", text=f"There is {text}", quote=text[:8] or "-")
        event = Understood(
            memory_id=_memory_id(number),
            text_hash=hash_texts([text]),
            found=Understanding(mode=mode, items=(item,)),
            profile="default",
            prompt="p",
            at=self.clock.now(),
        )
        self.topics["understood"].events.append(event)

    def _items_of(self, number: int) -> tuple[str, ...]:
        turn = self.memories.get(PARTITION, _memory_id(number))
        return () if turn is None else turn.items


def _project(number: int) -> str:
    return "p2" if number == 2 else "p1"


def _conversation(number: int) -> str:
    return f"c{number % 2}"


def _turn(number: int, text: str, mode: str | None) -> Turn:
    scope = {"user_id": USER, "project_id": _project(number)}
    return turn(text, turn_id=f"t{number}", scope=scope, mode=mode, conversation_id=_conversation(number))


def _memory_id(number: int) -> str:
    return identify_turn(_turn(number, "any", None), moment_of(TIMESTAMP_MS)).memory_id
