"""Contexts as of a time: no section has what was accepted later, and what was in force then is."""

from datetime import timedelta

from tests.builders.memories import START, made
from tests.harnesses.contexts import ContextHarness, contents

THEN = {"as_of": (START + timedelta(minutes=10)).isoformat()}


async def test_no_section_has_what_was_accepted_later(library: ContextHarness) -> None:
    texts = ("Never share the API key.", "The export must use OAuth.", "We decided to use PostgreSQL.", "Good evening.")
    early = [made(f"{text} Early.", number) for number, text in enumerate(texts)]
    late = [made(f"{text} Late.", 20 + number) for number, text in enumerate(texts)]
    library.store(*early, *late)
    library.search.memories = early
    for mode in ("TASK", "DEBUGGING", "GENERAL", "LEARNING", "EXPLORATION"):
        shown = contents(await library.assemble_context(interaction_mode=mode, **THEN))
        assert shown
        assert not [text for text in shown if "Late" in text]


async def test_a_later_pin_is_none_of_the_scope(library: ContextHarness) -> None:
    pins = library.store(made("Tea at four.", 2), made("Tea at six.", 20))
    result, warnings = await library.ask(pins=pins, **THEN)
    assert [code for code, _ in warnings] == ["unknown_pin"]
    assert contents(result) == ["Tea at four."]


async def test_an_error_that_was_resolved_later_is_current(library: ContextHarness) -> None:
    error = "Traceback: ConnectionError: the login fails"
    [turn, _] = library.store(made(error, 1), made("It works again, the login is fixed.", 20))
    assert (await library.assemble_context(interaction_mode="DEBUGGING", **THEN)).sticky == [turn]


async def test_the_search_has_the_time(library: ContextHarness) -> None:
    await library.assemble_context(**THEN)
    [asked] = library.search.asked
    assert asked.as_of == START + timedelta(minutes=10)
