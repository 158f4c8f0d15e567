from dataclasses import replace

import pytest
from modestream_client.vocabulary import InteractionMode

from agents.rules.context.section_candidates import MAX_KEPT_AGAINST_MODE
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from agents.rules.interaction.stability import MIN_MODE_CONFIDENCE, assume_stable
from schemas.state.interaction import Interaction
from schemas.state.memories import Resource, TurnUnderstanding
from tests.builders.items import distilled_of
from tests.builders.memories import made
from tests.builders.taxonomies import changed
from tests.harnesses.contexts import ContextHarness, chatter, contents

SAFETY, CORRECTION = "Must validate all user input", "No, use LDAP not OAuth"
CONSTRAINT, ERROR = "Must support 10,000 concurrent users", "Stack trace: Authentication failing"


async def test_undroppable_memories_stay_while_others_compete(library: ContextHarness) -> None:
    ids = library.store(*(made(text, number) for number, text in enumerate((ERROR, CONSTRAINT, CORRECTION, SAFETY))))
    library.store(*chatter(50, first=10))
    for mode in ("TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL"):
        result = await library.assemble_context(budget_tokens=1200, interaction_mode=mode)
        assert result.sticky == ids[::-1]
        assert {ERROR, CONSTRAINT, CORRECTION, SAFETY} <= set(contents(result))
        assert result.sections["rules"] == ids[1:]
        assert result.breaches == []
        assert result.sections["task_state"] == ids[:1]


async def test_sticky_memory_that_is_no_evidence_shows_its_rule_alone(library: ContextHarness) -> None:
    text = "The lamps hang since Monday, and they look splendid. Never log passwords."
    [rule] = library.store(made(text))
    assert contents(await library.assemble_context(conversation_id=None)) == ["Never log passwords."]
    library.search.memories = [library.records[rule]]
    assert contents(await library.assemble_context(conversation_id=None)) == [text]


async def test_safety_requirement_of_another_mode_shows_its_sentence_alone(library: ContextHarness) -> None:
    diary = Resource(uri="file://diary", media_type="text/plain", text="I kissed Bob.")
    rule = made("I am allergic to peanuts.", mode="health").model_copy(update={"resources": (diary,)})
    library.store(rule)
    assert contents(await library.assemble_context(conversation_id=None)) == ["I am allergic to peanuts."]


async def test_pinned_sticky_memory_is_shown_whole(library: ContextHarness) -> None:
    text = "The lamps hang since Monday, and they look splendid. Never log passwords."
    [rule] = library.store(made(text))
    assert contents(await library.assemble_context(conversation_id=None, pins=[rule])) == [text]


@pytest.mark.parametrize(("place", "is_whole"), [(5, True), (30, False)])
async def test_sticky_memory_is_whole_among_the_best_hits(library: ContextHarness, place: int, is_whole: bool) -> None:
    text = "The lamps hang since Monday, and they look splendid. Never log passwords."
    rule, others = made(text, conversation_id="c9"), chatter(30)
    library.store(rule, *others)
    library.search.memories = [*others[:place], rule, *others[place:]]
    shown = contents(await library.assemble_context(conversation_id=None, budget_tokens=1000))
    assert (text in shown) == is_whole
    assert ("Never log passwords." in shown) != is_whole


async def test_images_of_equal_turns_are_no_repetition(library: ContextHarness) -> None:
    text = "Here is the photo that I took for you this morning"
    captions = "three boats in an empty harbour at dawn", "an old woman who feeds pigeons on a square"
    images = [Resource(uri=f"photo://{len(caption)}", media_type="image/png", text=caption) for caption in captions]
    turns = [made(text, place).model_copy(update={"resources": (image,)}) for place, image in enumerate(images)]
    library.store(*turns)
    assert len(contents(await library.assemble_context())) == 2


async def test_sticky_memories_beside_the_query_take_a_third_at_most(library: ContextHarness) -> None:
    rules = [made(f"It must run in region {number}" + " and there" * 20, number) for number in range(20)]
    [safety, *ids] = library.store(made(SAFETY, -1), *rules)
    library.search.memories = rules[7:8]
    result = await library.assemble_context(budget_tokens=3000, conversation_id=None, interaction_mode="TASK")
    assert result.sticky == [safety, ids[7]]
    assert result.breaches == []
    assert len(result.sections["rules"]) == 21, "the others take the room that is left"
    evidence = chatter(100, conversation_id="c2")
    library.store(*evidence)
    library.search.memories = [*rules[7:8], *evidence]
    result = await library.assemble_context(budget_tokens=3000, conversation_id=None, interaction_mode="TASK")
    assert 2 < len(result.sections["rules"]) < 10, "the others are candidates for the room of their section"


async def test_undroppable_memory_without_room_is_a_breach(library: ContextHarness) -> None:
    rules = [made(f"It must run in region {number}" + " and there" * 20, number) for number in range(20)]
    [safety, *ids] = library.store(made(SAFETY, -1), *rules)
    library.search.memories = rules
    [pinned] = library.store(made("The blue folder holds the lease.", -2))
    result = await library.assemble_context(budget_tokens=500, pins=[pinned])
    count = len(result.sticky) - 1
    assert 0 < count < 20
    assert result.sticky == [safety, *ids[: -count - 1 : -1]]
    assert [breach.memory_id for breach in result.breaches] == ids[-count - 1 :: -1]
    assert {breach.priority for breach in result.breaches} == {800}
    assert set(result.dropped) >= {breach.memory_id for breach in result.breaches}


async def test_long_rule_is_cut_to_its_rule_sentences(library: ContextHarness) -> None:
    rule = "The export must never contain passwords."
    [long] = library.store(made("We spoke of many things. " * 200 + rule + " And of others." * 200, 0))
    library.store(*chatter(10, first=5))
    result = await library.assemble_context(budget_tokens=1000)
    assert result.sticky == [long]
    assert result.breaches == []
    assert rule in contents(result)


async def test_repeated_rule_appears_once_without_a_breach(library: ContextHarness) -> None:
    rule = "The nightly export must finish within an hour."
    [first, again] = library.store(made(rule, 0), made(f"Again: {rule}", 1))
    result = await library.assemble_context(budget_tokens=1000)
    assert contents(result) == [f"Again: {rule}"]
    assert result.sticky == [again]
    assert result.dropped == [first]
    assert result.breaches == []


async def test_each_section_has_its_memories(library: ContextHarness) -> None:
    [goal, decision, wish, found, capsule, last] = library.store(
        made("The goal is a site that loads in a second.", 0),
        made("We decided to go with Postgres.", 1),
        made("Please always answer in German.", 2, conversation_id="c2"),
        made("The old site took nine seconds.", 3, conversation_id="c3"),
        made("She runs a shop for second-hand microscopes.", 4, type="semantic", role=None, conversation_id=None),
        made("Good morning.", 5),
    )
    library.search.memories = [library.records[found]]
    sections = (await library.assemble_context(interaction_mode="TASK")).sections
    assert sections == {
        "rules": [wish],
        "task_state": [goal],
        "recent_window": [last],
        "retrieved_evidence": [found],
        "relevant_decisions": [decision],
        "capsules": [capsule],
    }


async def test_debugging_keeps_errors_and_changes_and_no_capsules(library: ContextHarness) -> None:
    [error, change, done, mused, capsule] = library.store(
        made("The login fails for everybody.", 0, conversation_id="c2"),
        made("I upgraded the driver.", 1),
        made("We finished the newsletter.", 2, conversation_id="c2"),
        made("Where could this lead one day?", 3, conversation_id="c2", reading=exploring()),
        made("Distilled.", 4, type="semantic", role=None, conversation_id=None),
    )
    best = library.store(*chatter(MAX_KEPT_AGAINST_MODE, first=10, conversation_id="c3"))
    library.search.memories = [library.records[memory_id] for memory_id in (*best, mused, done, error)]
    result = await library.assemble_context(interaction_mode="DEBUGGING")
    assert result.sections["task_state"] == [error, change]
    assert result.sections["capsules"] == []
    assert {done, mused, capsule}.isdisjoint(memory_id for count in result.sections.values() for memory_id in count)
    assert {done, mused} <= set(result.dropped)


EXPLORED = (
    "The goal is a site that loads in a second.",
    "We decided to go with Postgres.",
    "We changed the font to Garamond.",
    "A page about the harbour tram.",
)


@pytest.mark.parametrize("conversation_id", ["c1", "c2"])
async def test_no_section_has_what_the_mode_drops(library: ContextHarness, conversation_id: str) -> None:
    ids = library.store(
        *(
            made(text, place, reading=exploring(), conversation_id=conversation_id)
            for place, text in enumerate(EXPLORED)
        )
    )
    best = library.store(*chatter(MAX_KEPT_AGAINST_MODE, first=10, conversation_id="c3"))
    library.search.memories = [library.records[memory_id] for memory_id in (*best, *ids)]
    result = await library.assemble_context(interaction_mode="DEBUGGING")
    # What was changed is wanted.
    assert sorted(result.references) == sorted([*best, ids[2]])
    assert result.dropped == [ids[0], ids[1], ids[3]]


async def test_capsule_that_speculates_is_dropped(library: ContextHarness) -> None:
    library.store(made("What if she sold microscopes?", type="semantic", role=None, conversation_id=None))
    assert (await library.assemble_context(interaction_mode="TASK")).references == []


@pytest.mark.parametrize(("last", "is_shown"), [("EXPLORATION", False), ("TASK", True)])
async def test_what_was_distilled_from_dropped_turns_alone_is_dropped(
    library: ContextHarness, last: InteractionMode, is_shown: bool
) -> None:
    said = TurnUnderstanding(interaction=Interaction(mode=last, confidence=0.9))
    readings = (exploring(), exploring(), said)
    turns = [made("The harbour tram.", place, reading=each, mode="trams") for place, each in enumerate(readings)]
    capsule = distilled_of(*turns, text="Ana rides the tram.", mode="general")
    library.store(*turns, capsule)
    result = await library.assemble_context(interaction_mode="TASK", conversation_id=None)
    assert (capsule.memory_id in result.references) == is_shown


async def test_best_hits_are_kept_against_the_mode_and_named(library: ContextHarness) -> None:
    library.search.memories = [made(f"Remark {number}", number, reading=exploring()) for number in range(5)]
    ids = library.store(*library.search.memories)
    for mode, kept, against in (("TASK", ids[:3], ids[:3]), ("EXPLORATION", ids, []), ("GENERAL", ids, [])):
        result = await library.assemble_context(interaction_mode=mode)
        assert sorted(result.references) == sorted(kept)
        assert result.diagnostics.kept_against_mode == against


async def test_pins_and_sticky_memories_are_no_matter_of_the_mode(library: ContextHarness) -> None:
    [pin, rule] = library.store(
        made("What if we sold microscopes?", 0, reading=exploring()),
        made("What if we moved? No, use LDAP not OAuth", 1, reading=exploring()),
    )
    library.search.memories = [library.records[pin]]
    result = await library.assemble_context(interaction_mode="TASK", pins=[pin])
    assert result.references == [pin, rule]
    assert result.diagnostics.kept_against_mode == []


async def test_learning_drops_the_recent_conversation(library: ContextHarness) -> None:
    recent = library.store(*chatter(5))
    [principle] = library.store(made("A rule of thumb: index what you filter by.", 50))
    library.search.memories = [library.records[recent[0]]]
    result = await library.assemble_context(interaction_mode="LEARNING")
    assert result.references == [recent[0], principle]
    assert result.diagnostics.kept_against_mode == [recent[0]]


async def test_learning_keeps_examples_and_hardly_any_recent_turns(library: ContextHarness) -> None:
    library.store(*chatter(40))
    [principle, example] = library.store(
        made("A rule of thumb: index what you filter by.", 50, conversation_id="c2"),
        made("For example, an index on the date.", 51, conversation_id="c2", role="assistant"),
    )
    library.search.memories = [library.records[memory_id] for memory_id in (principle, example)]
    result = await library.assemble_context(budget_tokens=4000, interaction_mode="LEARNING")
    assert result.sections["rules"] == [principle]
    assert result.sections["relevant_decisions"] == [example]
    assert len(result.sections["recent_window"]) <= 2
    assert result.tokens["total"] < 1000, "spare budget is not filled with recent turns"


async def test_unused_room_goes_to_evidence_and_older_turns(library: ContextHarness) -> None:
    turns = library.store(*chatter(20))
    result = await library.assemble_context(budget_tokens=4000, interaction_mode="TASK")
    assert result.sections["recent_window"] == turns
    assert result.tokens["recent_window"] > result.budget["recent_window"]


async def test_evidence_is_kept_best_first(library: ContextHarness) -> None:
    library.search.memories = chatter(60, conversation_id="c2")[::-1][30:]
    ids = library.store(*library.search.memories)
    result = await library.assemble_context(budget_tokens=800, interaction_mode="GENERAL")
    count = len(result.sections["retrieved_evidence"])
    assert 0 < count < 30
    assert sorted(result.sections["retrieved_evidence"]) == sorted(ids[:count])
    assert set(result.dropped) <= set(ids[count:])


async def test_hits_of_other_scopes_are_not_shown(library: ContextHarness) -> None:
    secret = made("My diary is under the floor.", user="ben")
    library.store(secret, made("Elsewhere.", 1, project="p2"))
    library.search.memories = list(library.records.values())
    assert contents(await library.assemble_context()) == []


async def test_search_requests_as_many_hits_as_the_budget_holds(library: ContextHarness) -> None:
    for budget in (300, 2000, 100_000):
        await library.ask(budget_tokens=budget, query="where?", mode="general")
    assert [asked.top_k for asked in library.search.asked] == [20, 50, 1000]
    [asked, *_] = library.search.asked
    assert asked.query == "where?"
    assert asked.mode == "general"
    assert asked.conversation_id == "c1"
    assert asked.scope.fields() == {"user_id": ("ana",), "project_id": ("default",)}


async def test_warnings_of_the_search_are_passed_on(library: ContextHarness) -> None:
    library.search.warnings = [("degraded", "general: no vectors yet")]
    _, warnings = await library.ask(pins=["unknown"])
    assert [code for code, _ in warnings] == ["degraded", "unknown_pin"]


async def test_intent_table_answers_while_the_classifier_is_away(library: ContextHarness) -> None:
    library.judge_outage = True
    library.store(*chatter(3))
    result, [(code, message)] = await library.ask(query="Fix the login bug")
    assert result.interaction_mode == "DEBUGGING"
    assert result.interaction_confidence >= MIN_MODE_CONFIDENCE
    assert len(contents(result)) == 3
    assert code == "degraded"
    assert "the general embedder still loads" in message


async def test_query_without_intent_is_general_while_the_classifier_is_away(library: ContextHarness) -> None:
    library.judge_outage = True
    result = await library.assemble_context(query="the quarterly figures")
    assert result.interaction_mode == "GENERAL"
    assert 0 < result.interaction_confidence < MIN_MODE_CONFIDENCE


async def test_the_deployments_tables_decide(library: ContextHarness) -> None:
    own = {"version": "ours-2", "intents": {"harvest": "LEARNING"}, "modes.LEARNING.drop": ["link"]}
    sticky = {"safety_requirement": 5, "blocking_error": 9}
    library.taxonomy = ModeTaxonomy.loads(changed({**own, "modes.LEARNING.drop_recent": False, "sticky": sticky}))
    library.__post_init__()
    [link, change, constraint, error, safety] = library.store(
        made("The tram is at https://trams.example", 0),
        made("I upgraded the driver.", 1),
        made(CONSTRAINT, 2),
        made(ERROR, 3),
        made(SAFETY, 4),
    )
    result = await library.assemble_context(intent="harvest")
    assert result.interaction_mode == "LEARNING"
    assert result.diagnostics.taxonomy_version == "ours-2"
    assert result.sticky == [error, safety]
    assert result.dropped == [link]
    assert change in result.references
    assert constraint in result.references


async def test_quotes_have_their_speaker(library: ContextHarness) -> None:
    library.store(made("The keys are in the blue bowl.", speaker="Wanda"))
    body = (await library.assemble_context()).messages[1].content
    assert '"speaker":"Wanda"' in body


def exploring() -> TurnUnderstanding:
    return TurnUnderstanding(interaction=Interaction(mode="EXPLORATION", confidence=0.9))


async def test_fallback_of_the_deployment_is_a_warning(library: ContextHarness) -> None:
    assert (await library.ask())[1] == []
    library.stability = replace(assume_stable(), reasons=("drift",), divergence=0.25)
    [(code, message)] = (await library.ask())[1]
    assert code == "interaction_fallback"
    assert "0.25" in message
    _, warnings = await library.ask(interaction_mode="TASK")
    assert warnings == [], "the caller's interaction mode is not affected"
