"""Our conversations with an assistant have the shape of real ones, and questions and remarks of every kind."""

from statistics import median, quantiles

import pytest

from agents.rules.text.non_english import is_non_english
from agents.rules.text.tokenizer import content_terms
from training.ranking.conversations import (
    ASSISTANT,
    OWN,
    REMARK,
    Conversation,
    LabelledQuestion,
    as_one_conversation,
    read_conversations,
)

CONVERSATIONS = read_conversations(ASSISTANT)
ALL = [*read_conversations(OWN), *CONVERSATIONS]

each = pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda entry: entry.name)


def replies(conversation: Conversation) -> list[int]:
    """Return the lengths of the assistant's replies in characters."""
    return [len(turn.content) for turn in conversation.turns if turn.role == "assistant"]


def questions(conversation: Conversation) -> list[LabelledQuestion]:
    return [question for question in conversation.questions if question.category != REMARK]


def remarks() -> list[tuple[Conversation, LabelledQuestion]]:
    return [(each, question) for each in ALL for question in each.questions if question.category == REMARK]


def test_there_are_fourteen() -> None:
    assert len(CONVERSATIONS) >= 14


def test_three_are_in_other_languages() -> None:
    assert (
        sum(is_non_english(" ".join(turn.content for turn in conversation.turns[:4])) for conversation in CONVERSATIONS)
        >= 3
    )


@each
def test_a_conversation_has_eighty_exchanges(conversation: Conversation) -> None:
    assert len(replies(conversation)) >= 80


@each
def test_replies_are_long(conversation: Conversation) -> None:
    assert median(replies(conversation)) >= 1200


@each
def test_one_reply_in_ten_is_very_long(conversation: Conversation) -> None:
    assert quantiles(replies(conversation), n=10)[8] >= 4000


@each
def test_a_conversation_has_forty_questions(conversation: Conversation) -> None:
    assert len(questions(conversation)) >= 40


@each
def test_a_third_asks_what_the_assistant_said(conversation: Conversation) -> None:
    asked = questions(conversation)
    assert 3 * sum(question.kind == "assistant_said" for question in asked) >= len(asked)


@each
def test_all_evidence_is_in_the_conversation(conversation: Conversation) -> None:
    assert all(len(question.evidence) == question.named > 0 for question in conversation.questions)


@each
def test_no_question_is_asked_twice(conversation: Conversation) -> None:
    asked = [question.text for question in conversation.questions]
    assert len(asked) == len(set(asked))


def test_there_are_six_hundred_remarks() -> None:
    assert len(remarks()) >= 600


def test_half_of_the_remarks_share_no_word_with_their_evidence() -> None:
    apart = 0
    for conversation, remark in remarks():
        said = " ".join(turn.content for turn in conversation.turns if turn.turn_id in remark.evidence)
        apart += set(content_terms(remark.text)).isdisjoint(content_terms(said))
    assert 2 * apart >= len(remarks())


def test_a_conversation_without_sessions_has_the_same_turns() -> None:
    whole = as_one_conversation(CONVERSATIONS[0])
    assert {turn.conversation_id for turn in whole.turns} == {CONVERSATIONS[0].name}
