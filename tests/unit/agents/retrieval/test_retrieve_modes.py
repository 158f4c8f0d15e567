"""Queries in one mode, in the default mode, and across modes with different models."""

from typing import Any

import pytest

from agents.retrieval.vector_search import MODES_AT_ONCE
from schemas.failures import Rejected
from schemas.state.modes import ModeDeclarations
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import made
from tests.harnesses.modes import CODE, JOURNAL, filled, found, library_of_modes, mode, turns
from tests.harnesses.retrieval import RetrievalHarness


@pytest.fixture
def library(words: SqliteLexicalIndex) -> RetrievalHarness:
    return library_of_modes(words)


@pytest.mark.parametrize(("name", "embedder"), [("code", "tiny32"), ("journal", "tiny48")])
async def test_mode_is_searched_alone_with_its_embedder(library: RetrievalHarness, name: str, embedder: str) -> None:
    await filled(library)
    result, warnings = await library.ask("what leaks?", mode=name)
    assert result.strategy == "hybrid"
    assert result.modes == [name]
    assert found(result) == {name}
    assert warnings == []
    assert result.diagnostics["method"] == "weighted_mean"
    asked = {name: library.embedders.model(name).queries for name in ("general", "tiny32", "tiny48")}
    assert asked == {"general": [], "tiny32": [], "tiny48": []} | {embedder: ["what leaks?"]}


@pytest.mark.parametrize("mode", [["code"], ["code", "code"]])
async def test_list_of_one_mode_equals_that_mode(library: RetrievalHarness, mode: list[str]) -> None:
    await filled(library)
    result, warnings = await library.ask("what leaks?", mode=mode)
    assert result.strategy == "hybrid"
    assert result.modes == ["code"]
    assert warnings == []


async def test_no_mode_at_all_is_rejected(library: RetrievalHarness) -> None:
    with pytest.raises(Rejected) as refused:
        await library.ask("what leaks?", mode=[])
    assert refused.value.code == "invalid_value"
    assert refused.value.field == "mode"


async def test_modes_of_another_user_are_unknown(library: RetrievalHarness) -> None:
    library.modes.declare(mode("secret", "tiny32"), boundary="ben")
    with pytest.raises(Rejected):
        await library.ask("what leaks?", mode="secret")
    assert (await library.ask("what leaks?", mode="*"))[0].modes == ["code", "general", "journal"]


async def test_question_over_many_modes_gives_way_between_them(library: RetrievalHarness) -> None:
    names = [f"m{number}" for number in range(2 * MODES_AT_ONCE + 1)]
    library.modes.declare(*(mode(name, "tiny32") for name in names))
    for number, name in enumerate(names):
        await library.remember(*turns(name, [f"the {name} tap leaks"], number))
    result, _ = await library.ask("what leaks?", mode=names[:MODES_AT_ONCE], top_k=50)
    assert len(found(result)) == MODES_AT_ONCE
    assert library.searched_before_pauses == []
    library.vectors.searched.clear()
    result, _ = await library.ask("what leaks?", mode=names, top_k=50)
    assert found(result) == set(names)
    assert library.searched_before_pauses == [0, 0, MODES_AT_ONCE, 2 * MODES_AT_ONCE]


async def test_several_modes_are_fused_by_rank_with_a_warning(library: RetrievalHarness) -> None:
    await filled(library)
    result, [(code, message)] = await library.ask("what leaks?", mode=["code", "journal"])
    assert result.strategy == "cross_mode"
    assert result.modes == ["code", "journal"]
    assert code == "cross_mode"
    assert result.diagnostics["method"] == "rank_fusion"
    assert "code" in message
    assert "journal" in message
    assert {hit.text for hit in result.hits[:2]} == {CODE[0], JOURNAL[1]}
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_every_mode_is_searched_in_its_own_space_only(library: RetrievalHarness) -> None:
    await filled(library)
    await library.ask("what leaks?", mode="*")
    dims = {space.mode: space.fingerprint.dim for space in library.vectors.searched}
    assert dims == {"code": 32, "journal": 48}, "a mode without memories is not searched"
    assert library.embedders.model("general").queries == []


async def test_modes_with_one_model_embed_the_query_once(library: RetrievalHarness) -> None:
    library.modes.declare(mode("third", "tiny32"))
    await filled(library)
    await library.remember(*turns("third", ["One more."], 30))
    assert (await library.ask("what leaks?", mode=["code", "third"]))[0].strategy == "cross_mode"
    assert library.embedders.model("tiny32").queries == ["what leaks?"]


async def test_modes_with_different_query_prefixes_embed_it_each(library: RetrievalHarness) -> None:
    library.modes.declare(mode("third", "tiny32").model_copy(update={"query_prefix": "search: "}))
    await filled(library)
    await library.remember(*turns("third", ["One more."], 30))
    await library.ask("what leaks?", mode=["code", "third"])
    assert len(library.embedders.model("tiny32").queries) == 2


async def test_unrequested_mode_is_not_searched(library: RetrievalHarness) -> None:
    await filled(library)
    await library.remember(made("This leaks too.", 40))
    assert found((await library.ask("what leaks?", mode=["journal", "general"]))[0]) == {"journal", "general"}


async def test_repeated_cross_mode_query_has_equal_hits(library: RetrievalHarness) -> None:
    await filled(library)
    first = (await library.ask("what leaks?", mode="*", explain=True))[0].hits
    for _ in range(3):
        assert (await library.ask("what leaks?", mode="*", explain=True))[0].hits == first


async def test_another_users_memories_change_no_score_across_modes(library: RetrievalHarness) -> None:
    await filled(library)
    before = (await library.ask("what leaks?", mode="*", explain=True))[0].hits
    library.modes.declare(mode("code", "tiny48"), mode("journal", "tiny48"), boundary="ben")
    noise = [made(f"What leaks {n}?", n, user="ben", mode=("code", "journal")[n % 2]) for n in range(30)]
    await library.remember(*noise)
    assert (await library.ask("what leaks?", mode="*", explain=True))[0].hits == before


async def test_write_during_a_cross_mode_search_is_visible(library: RetrievalHarness) -> None:
    await filled(library)
    library.vectors.meanwhile = lambda: library.store(made("The roof leaks.", 50, mode="journal"))
    assert "The roof leaks." in await library.texts("the roof leaks", mode="*")


async def test_mode_name_with_two_embedders_is_searched_in_both(library: RetrievalHarness) -> None:
    library.modes.declare(mode("code", "tiny48", "p2"))
    await library.remember(made(CODE[0], 1, mode="code", project="p1"), made(CODE[0], 2, mode="code", project="p2"))
    result, [(code, _)] = await library.ask("what leaks?", mode="code")
    assert result.strategy == "cross_mode"
    assert result.modes == ["code"]
    assert code == "cross_mode"
    assert {space.fingerprint.dim for space in library.vectors.searched} == {32, 48}
    assert {hit.scope["project_id"] for hit in result.hits} == {"p1", "p2"}
    [alone] = (await library.ask("what leaks?", mode="code", project="p2"))[0].hits
    assert alone.scope["project_id"] == "p2"


async def test_mode_with_two_embedders_is_named_once_in_warnings(library: RetrievalHarness) -> None:
    library.modes.declare(mode("code", "tiny48", "p2"))
    library.store(*(made(CODE[0], n, mode="code", project=f"p{n}") for n in (1, 2)))
    assert dict((await library.ask("what leaks?", mode="code"))[1])["degraded"] == "code: no vectors"


async def test_project_mode_is_searched_in_its_project(library: RetrievalHarness) -> None:
    library.modes.declare(mode("local", "tiny32", "p1"))
    await library.remember(made("It leaks here.", 1, mode="local", project="p1"))
    assert await library.texts("what leaks?", mode="local", project=["p1", "p2"]) == ["It leaks here."]
    with pytest.raises(Rejected):
        await library.ask("what leaks?", mode="local", project="p2")


async def test_default_mode_is_that_of_the_conversation(library: RetrievalHarness) -> None:
    await filled(library)

    async def searched(conversation: str, **fields: Any) -> list[str]:
        return (await library.ask("what leaks?", conversation_id=conversation, **fields))[0].modes

    assert await searched("c-code") == ["code"]
    assert await searched("c-journal") == ["journal"]
    assert await searched("c-new") == ["general"]
    assert await searched("c-code", project="elsewhere") == ["general"], "the conversation is not in that scope"
    assert await searched("c-code", mode="journal") == ["journal"], "an explicit mode has precedence"
    await library.remember(made("And now a journal entry.", 60, mode="journal", conversation_id="c-code"))
    assert await searched("c-code") == ["journal"], "the latest turn counts"


async def test_without_a_mode_and_a_conversation_the_defaults_tell_it(library: RetrievalHarness) -> None:
    declared = library.modes.get(0, "ana")

    async def searched(project: str | list[str]) -> list[str]:
        return (await library.ask("what leaks?", project=project))[0].modes

    assert await searched("p1") == ["general"]
    defaults = {"user_default": "journal", "project_defaults": {"p1": "code"}}
    library.modes.put(0, "ana", ModeDeclarations.model_validate(declared.model_dump() | defaults))
    assert await searched("p1") == ["code"]
    assert await searched("p2") == await searched(["p1", "p2"]) == await searched("*") == ["journal"]


async def test_default_mode_query_warns_of_other_modes_with_counts(library: RetrievalHarness) -> None:
    await library.remember(*turns("code", CODE), made("A tap leaks.", 20))
    result, [(code, message)] = await library.ask("what leaks?")
    assert found(result) == {"general"}
    assert code == "other_modes"
    assert "code (4)" in message
    assert "journal" not in message, "it has no memories"
    assert (await library.ask("what leaks?", mode="general"))[1] == []
    assert (await library.ask("what leaks?", project="elsewhere"))[1] == []
    assert (await library.ask("what leaks?", types=["semantic"]))[1] == []


async def test_declarations_are_read_once_per_query(library: RetrievalHarness) -> None:
    await filled(library)
    before = library.modes.reads
    await library.ask("what leaks?", mode="code")
    assert library.modes.reads == before + 1
