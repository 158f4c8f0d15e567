"""`SuggestModes`: suggested and omitted clusters, without changes."""

from copy import deepcopy
from typing import Any

import pytest

from agents.modes.suggest_modes import SuggestModes
from schemas.messages.commands import Command
from schemas.scopes import Scope
from schemas.state.memories import Memory
from schemas.state.modes import Mode
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import made
from tests.harnesses.retrieval import RetrievalHarness

CODE = "Compiler rejects branch: unit test module {} fails every build pipeline."
SOUP = "Simmer soup with onion, carrot, leek; season broth with salt, thyme, batch {}."
MIXED = ["kites", "taxes", "dentist", "violin", "harbour", "passport", "gloves", "eclipse", "carpet", "marathon"]


class SuggestHarness(RetrievalHarness):
    def __init__(self, words: SqliteLexicalIndex) -> None:
        super().__init__(words)
        self.suggest = SuggestModes(self.stores.memories, self.stores.words, self.vectors, self.spaces)

    async def talk(self, template: str, start: int, count: int = 24, **fields: Any) -> list[Memory]:
        """Store turns of one form, in conversations of eight."""
        turns = []
        for number in range(start, start + count):
            talk = f"{template[:12]}-{(number - start) // 8}"
            turns.append(made(template.format(number), number, conversation_id=talk, **fields))
        return await self.remember(*turns)

    async def chatter(self, start: int = 1000, count: int = 40, **fields: Any) -> None:
        """Store turns without a common form."""
        for number in range(count):
            word = MIXED[number % len(MIXED)]
            text = f"{word} {number} {word}{number} {MIXED[number * 7 % 10]}{number} odd{number * 3}"
            await self.remember(made(text, start + number, conversation_id=f"mixed-{number}", **fields))

    async def report(self, user: str = "ana") -> dict[str, Any]:
        command = Command(command="suggest_modes", scope=Scope(user_id=user))
        result = await self.suggest.suggest_modes(command, 1)
        assert result.change is None
        assert result.job is None
        return result.result


@pytest.fixture
def library(words: SqliteLexicalIndex) -> SuggestHarness:
    return SuggestHarness(words)


def examples(suggestion: dict[str, Any]) -> str:
    return " ".join(example["text"] for example in suggestion["examples"])


async def test_clusters_without_a_mode_are_suggested_with_examples(library: SuggestHarness) -> None:
    await library.talk(CODE, 0)
    await library.talk(SOUP, 100)
    await library.chatter()
    report = await library.report()
    assert report["looked_at"] == 88
    assert [suggestion["size"] for suggestion in report["suggestions"]] == [24, 24]
    code, soup = sorted(report["suggestions"], key=examples)
    assert "Compiler" in examples(code)
    assert "soup" in examples(soup)
    assert len(code["examples"]) == 3
    assert code["in_mode"] == "general"
    assert code["nearest"] is None
    assert set(code["name"].split("-")) <= set(code["terms"])
    assert [len(set(suggestion["memory_ids"])) for suggestion in (code, soup)] == [24, 24]
    assert {example["memory_id"] for example in code["examples"]} <= set(code["memory_ids"])
    assert not set(code["memory_ids"]) & set(soup["memory_ids"])


async def test_purpose_of_a_used_mode_is_not_suggested(library: SuggestHarness) -> None:
    library.modes.declare(Mode(name="cooking", embedder="general", embedding_dim=384))
    await library.talk(CODE, 0)
    await library.talk(SOUP, 100)
    await library.talk(SOUP, 200, 16, mode="cooking", mode_source="caller")
    await library.chatter()
    [code] = (await library.report())["suggestions"]
    assert "Compiler" in examples(code)
    assert code["nearest"]["mode"] == "cooking"


async def test_mode_with_another_embedder_is_compared_in_the_turns_space(library: SuggestHarness) -> None:
    library.modes.declare(Mode(name="cooking", embedder="tiny32", embedding_dim=32))
    await library.talk(CODE, 0)
    await library.talk(SOUP, 100)
    await library.talk(SOUP, 200, 16, mode="cooking", mode_source="caller")
    await library.chatter()
    assert ["Compiler" in examples(suggestion) for suggestion in (await library.report())["suggestions"]] == [True]


async def test_unused_mode_is_compared_by_its_description(library: SuggestHarness) -> None:
    described = "simmer soup with onion, carrot, leek, season broth with salt, thyme"
    library.modes.declare(Mode(name="cooking", embedder="tiny32", embedding_dim=32, description=described))
    await library.talk(CODE, 0)
    await library.talk(SOUP, 100)
    await library.chatter()
    assert ["Compiler" in examples(suggestion) for suggestion in (await library.report())["suggestions"]] == [True]


async def test_turns_set_to_general_by_a_caller_are_not_suggested(library: SuggestHarness) -> None:
    await library.talk(SOUP, 100, mode_source="caller")
    await library.chatter()
    assert (await library.report())["suggestions"] == []


async def test_missing_model_skips_only_its_comparisons(library: SuggestHarness) -> None:
    library.modes.declare(Mode(name="cooking", embedder="tiny32", embedding_dim=32, description="soup and broth"))
    await library.talk(SOUP, 100)
    await library.chatter()
    library.embedders.missing("general")
    assert [suggestion["size"] for suggestion in (await library.report())["suggestions"]] == [24]


async def test_modes_of_the_same_space_are_compared_without_any_model(library: SuggestHarness) -> None:
    library.modes.declare(Mode(name="cooking", embedder="general", embedding_dim=384))
    await library.talk(SOUP, 100)
    await library.talk(SOUP, 200, 16, mode="cooking", mode_source="caller")
    await library.chatter()
    library.embedders.missing("general")
    assert (await library.report())["suggestions"] == []


async def test_suggestions_cover_each_default_mode_largest_first(library: SuggestHarness) -> None:
    library.modes.declare(Mode(name="work", embedder="general", embedding_dim=384))
    default: dict[str, Any] = {"mode": "work", "mode_source": "user_default"}
    await library.talk(SOUP, 100)
    await library.talk(CODE, 200, 32, **default)
    await library.chatter()
    await library.chatter(2000, **default)
    suggestions = (await library.report())["suggestions"]
    assert [(suggestion["size"], suggestion["in_mode"]) for suggestion in suggestions] == [
        (32, "work"),
        (24, "general"),
    ]


async def test_another_users_memories_change_nothing(library: SuggestHarness) -> None:
    await library.talk(SOUP, 100)
    await library.chatter()
    before = await library.report()
    await library.talk(CODE, 300, user="ben")
    assert await library.report() == before
    assert (await library.report("nobody"))["suggestions"] == []


async def test_report_changes_nothing(library: SuggestHarness) -> None:
    await library.talk(SOUP, 100)
    await library.chatter()
    records, modes = deepcopy((library.records, library.modes.get(0, "ana")))
    first = await library.report()
    assert await library.report() == first
    assert library.records == records
    assert library.modes.get(0, "ana") == modes


async def test_forgotten_turn_is_no_example(library: SuggestHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = await library.talk(SOUP, 100)
    await library.chatter()
    [found] = (await library.report())["suggestions"]
    shown = {example["memory_id"] for example in found["examples"]}
    real = library.vectors.vectors

    async def forgetting(*asked: Any) -> Any:
        answer = await real(*asked)
        for memory_id in shown:
            library.records.pop(memory_id, None)
        return answer

    monkeypatch.setattr(library.vectors, "vectors", forgetting)
    [found] = (await library.report())["suggestions"]
    assert shown.isdisjoint(example["memory_id"] for example in found["examples"])
    assert len(turns) == 24
