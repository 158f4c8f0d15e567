"""Requests for completions: read, added to between their own bytes, named by conversation and place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.openai.chat import Chat, Question, text_of
from gateway.service.calls import Refused
from schemas.messages.assemble import MAX_SHOWN_TEXTS, text_digest
from schemas.messages.turns import MAX_CONTENT_LENGTH

ADDED = [{"role": "user", "content": "memories"}, {"role": "assistant", "content": "Ok"}]
HELLO = {"role": "user", "content": "Hello."}
RULES = {"role": "system", "content": "Be kind."}


def chat_of(*messages: Any, **more: Any) -> Chat:
    return Chat(json.dumps({"model": "m", "messages": list(messages), **more}).encode())


def added_to(chat: Chat) -> Any:
    return json.loads(chat.with_messages(ADDED))["messages"]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"7", b"{", b'{"a":}', b'{"a" 1}', b'{"a":1,}', b'{"a":1} x', b'{"a":NaN}', b"\xff{}", b"{7:1}",
     b'{"a":[' * 100_000],
)  # fmt: skip
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        Chat(body)
    assert refused.value.code == "invalid_json"


def test_an_empty_object_has_nothing() -> None:
    chat = Chat(b" { } ")
    assert chat.user is None
    assert chat.question == Question()


def test_far_too_many_fields_are_refused() -> None:
    with pytest.raises(Refused) as refused:
        Chat(json.dumps(dict.fromkeys(map(str, range(1001)))).encode())
    assert refused.value.code == "too_large"


def test_two_lists_of_messages_are_none() -> None:
    assert Chat(b'{"messages":[{"role":"user","content":"a"}],"messages":[]}').question == Question()


@pytest.mark.parametrize("messages", [None, "x", [1], [HELLO, None], {}])
def test_messages_that_are_none_are_not_read(messages: Any) -> None:
    assert Chat(json.dumps({"messages": messages}).encode()).question == Question()


def test_numbers_may_have_any_length() -> None:
    number = b"9" * 100_000
    chat = Chat(b'{"seed":' + number + b',"messages":[{"role":"user","content":"x"}]}')
    assert number in chat.with_messages(ADDED)


def test_memories_stand_before_the_conversation() -> None:
    assert added_to(chat_of(HELLO, HELLO)) == [*ADDED, HELLO, HELLO]


def test_memories_stand_after_instructions() -> None:
    rules = {"role": "developer", "content": "Be short."}
    assert added_to(chat_of(RULES, rules, HELLO, RULES)) == [RULES, rules, *ADDED, HELLO, RULES]


def test_all_else_stays_byte_by_byte() -> None:
    before, after = b' {"n" : 1e2,\n"messages" :[ ', b'{"content":"\\u0021 \xe2\x98\x95","role":"user"} ], "x":-0.0}'
    put_in = b"".join(json.dumps(each).encode() + b"," for each in ADDED)
    assert Chat(before + after).with_messages(ADDED) == before + put_in + after


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), json_values, max_size=4),
    st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "tool"]), "content": json_values})),
    st.booleans(),
    st.sampled_from([None, 0, 2]),
)
def test_any_request_is_added_to_and_stays(
    fields: dict[str, Any], own: list[dict[str, Any]], ascii_only: bool, indent: int | None
) -> None:
    messages = [*own, HELLO]
    body = json.dumps({**fields, "messages": messages}, ensure_ascii=ascii_only, indent=indent)
    chat = Chat(body.encode("utf-8", "replace"))
    added = json.loads(chat.with_messages(ADDED))
    at = added["messages"].index(ADDED[0])
    del added["messages"][at : at + 2]
    assert added == json.loads(chat.body)


def test_the_last_user_message_is_the_question() -> None:
    assert (
        chat_of({"role": "user", "content": "First?"}, HELLO, {"role": "tool", "content": "x"}).question.text
        == "Hello."
    )


def test_the_text_of_parts_is_theirs() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    parts = [{"type": "text", "text": "a"}, picture, "x", {"type": "text", "text": "b"}, {"type": "text", "text": 7}]
    assert text_of({"content": parts}) == "a\nb"


def test_half_a_character_can_be_written() -> None:
    assert chat_of({"role": "user", "content": "a\ud800b"}).question.text == "a?b"


def test_a_growing_conversation_keeps_its_name() -> None:
    grown = chat_of(RULES, HELLO, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Tea?"})
    assert grown.derived_conversation == chat_of(RULES, HELLO).derived_conversation


@pytest.mark.parametrize("beginning", [[HELLO], [RULES, {"role": "user", "content": "Bye."}]])
def test_another_beginning_has_another_name(beginning: list[Any]) -> None:
    assert chat_of(*beginning).derived_conversation != chat_of(RULES, HELLO).derived_conversation


def ids_of(*messages: Any) -> list[str]:
    question = chat_of(*messages).question
    return [question.turn_id("c", role) for role in ("user", "assistant")]


def test_the_same_request_has_the_same_ids() -> None:
    assert ids_of(HELLO) == ids_of(HELLO)


def test_changed_instructions_change_no_ids() -> None:
    assert ids_of(RULES, HELLO) == ids_of(HELLO)


def test_every_place_has_ids_of_its_own() -> None:
    assert len({*ids_of(HELLO), *ids_of(HELLO, {"role": "assistant", "content": "Hi."}, HELLO)}) == 4


def test_another_question_at_the_same_place_is_another_turn() -> None:
    assert not {*ids_of(HELLO)} & {*ids_of({"role": "user", "content": "Tea?"})}


def test_results_of_tools_leave_the_question_and_move_the_answer() -> None:
    before, after = ids_of(HELLO), ids_of(HELLO, {"role": "assistant"}, {"role": "tool", "content": "31"})
    assert [each == other for each, other in zip(before, after, strict=True)] == [True, False]


def test_every_text_of_the_list_is_shown() -> None:
    answer = {"role": "assistant", "content": None}
    assert chat_of(RULES, HELLO, answer).shown == [text_digest(text) for text in ("Be kind.", "Hello.")]


def test_a_very_long_message_is_shown_in_pieces() -> None:
    shown = chat_of({"role": "user", "content": "x" * (MAX_CONTENT_LENGTH + 1)}).shown
    assert shown == [text_digest("x" * MAX_CONTENT_LENGTH), text_digest("x")]


def test_of_a_long_list_the_last_texts_are_shown() -> None:
    numbered = ({"role": "user", "content": f"{number}"} for number in range(MAX_SHOWN_TEXTS + 5))
    shown = chat_of(*numbered).shown
    assert shown[0] == text_digest("5")
    assert len(shown) == MAX_SHOWN_TEXTS
