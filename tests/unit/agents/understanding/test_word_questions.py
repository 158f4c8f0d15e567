"""A language model words the questions of an evaluation, over a server of completions."""

import json

import pytest

from agents.rules.evaluation.questions import Question
from agents.understanding.word_questions import WordQuestions
from schemas.state.memories import Memory
from schemas.state.modes import Visibility
from streams.bootstrap.prompts import Prompts
from streams.flow.stores import at_partition
from tests.builders.memories import made
from tests.fakes.tables.memories import FakeRecords
from tests.harnesses.language_models import LanguageModelHarness

PLATES = "A centrifuge weighs 400 kg, so spread its load with steel plates."
ASKED = "What did we decide about the floor under the machine?"
LATER, EARLIER = made("The steel plates go under the machines.", 1), made(PLATES)
QUESTION = Question(
    LATER.text, "general", LATER.accepted_at, (EARLIER.memory_id,), tuple(LATER.scope.items()), LATER.memory_id
)


def wording(rig: LanguageModelHarness, *memories: Memory, answer: str = ASKED, is_needed: bool = True) -> WordQuestions:
    rig.server.texts.append(json.dumps({"is_needed": is_needed, "question": answer}))
    records = {memory.memory_id: memory for memory in memories or (LATER, EARLIER)}
    return WordQuestions(rig.models(), Prompts().of("word"), at_partition(FakeRecords(records), 0))


async def test_question_is_asked_in_the_words_of_the_model(rig: LanguageModelHarness) -> None:
    worded = await wording(rig).word(QUESTION)
    assert worded == QUESTION._replace(text=ASKED)


async def test_model_reads_the_later_turn_and_its_evidence(rig: LanguageModelHarness) -> None:
    await wording(rig).word(QUESTION)
    assert all(text in rig.server.questions[0].messages[-1] for text in (LATER.text, PLATES))


async def test_question_that_needs_nothing_is_dropped(rig: LanguageModelHarness) -> None:
    assert await wording(rig, is_needed=False).word(QUESTION) is None


async def test_question_that_quotes_its_evidence_is_dropped(rig: LanguageModelHarness) -> None:
    quoting = "Who said: spread its load with steel plates?"
    assert await wording(rig, answer=quoting).word(QUESTION) is None


async def test_useless_answer_drops_the_question(rig: LanguageModelHarness) -> None:
    rig.server.become("garbage")
    assert await wording(rig).word(QUESTION) is None


@pytest.mark.parametrize("private", [LATER, EARLIER])
async def test_private_memories_are_not_sent(rig: LanguageModelHarness, private: Memory) -> None:
    hidden = private.model_copy(update={"visibility": Visibility(private=True)})
    await wording(
        rig, *({LATER.memory_id: LATER, EARLIER.memory_id: EARLIER} | {hidden.memory_id: hidden}).values()
    ).word(QUESTION)
    assert rig.server.questions == []


async def test_question_about_a_forgotten_memory_is_dropped(rig: LanguageModelHarness) -> None:
    assert await wording(rig, LATER).word(QUESTION) is None


def test_default_profile_words_nothing_unless_asked(rig: LanguageModelHarness) -> None:
    assert not wording(rig).is_asked(None)


def test_profile_of_the_role_words_questions(rig: LanguageModelHarness) -> None:
    models = rig.models(roles=("evaluate",))
    assert WordQuestions(models, Prompts().of("word"), at_partition(FakeRecords({}), 0)).is_asked(None)
