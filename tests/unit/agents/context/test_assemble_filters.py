"""Filtered contexts: every section has what matches; safety requirements, pins and `remember` stay."""

import pytest

from tests.builders.items import distilled_of
from tests.builders.memories import made
from tests.harnesses.contexts import ContextHarness, contents

ANA = {"speaker": "Ana"}
ERROR = "Traceback: ConnectionError: the login fails"


async def test_every_section_has_what_matches(library: ContextHarness) -> None:
    texts = (
        "The export must use OAuth.",
        "No, use LDAP, not OAuth.",
        "We decided to use PostgreSQL.",
        ERROR,
        "Always answer in French.",
        "Good evening.",
    )
    turns = [
        made(f"{text} {speaker}", 2 * number + place, speaker=speaker)
        for number, text in enumerate(texts)
        for place, speaker in enumerate(("Ana", "Ben"))
    ]
    library.store(*turns, distilled_of(*turns[::2], text="All of Ana."), distilled_of(*turns, text="All of both."))
    library.search.memories = turns[::2]
    for mode in ("TASK", "DEBUGGING", "GENERAL", "LEARNING", "EXPLORATION"):
        shown = contents(await library.assemble_context(interaction_mode=mode, filters=ANA))
        assert shown
        assert not [text for text in shown if "Ben" in text or "both" in text]


async def test_the_search_has_the_filters(library: ContextHarness) -> None:
    await library.assemble_context(filters=ANA)
    [asked] = library.search.asked
    assert asked.filters is not None
    assert asked.filters.speaker == ("Ana",)


async def test_safety_requirements_pins_and_remembered_texts_stay(library: ContextHarness) -> None:
    safety, pin = made("Never share the API key.", 1, speaker="Ben"), made("Tea at four.", 2, speaker="Ben")
    library.store(safety, pin, made("Supper at six.", 3, speaker="Ben"), made("Lunch at one.", 4, speaker="Ana"))
    result = await library.assemble_context(
        filters=ANA, pins=[pin.memory_id], remember=[{"role": "user", "content": "It is late."}]
    )
    shown = {safety.text, pin.text, "Lunch at one.", "It is late."}
    assert set(contents(result)) == shown


async def test_an_unknown_pin_is_one_that_is_not_in_the_scope(library: ContextHarness) -> None:
    pins = library.store(made("Tea at four.", 2, speaker="Ana", project="p2"), made("Tea at six.", 3, speaker="Ben"))
    _, warnings = await library.ask(filters=ANA, pins=pins[1:])
    assert warnings == []
    _, warnings = await library.ask(filters=ANA, pins=pins)
    assert [code for code, _ in warnings] == ["unknown_pin"]


@pytest.mark.parametrize("speaker", ["Ana", "Ben"])
async def test_an_error_that_anybody_has_resolved_is_none(library: ContextHarness, speaker: str) -> None:
    library.store(made(ERROR, 1, speaker="Ana"), made("It works again, the login is fixed.", 2, speaker=speaker))
    assert (await library.assemble_context(interaction_mode="DEBUGGING", filters=ANA)).sticky == []
