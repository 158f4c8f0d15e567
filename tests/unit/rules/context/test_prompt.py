"""The messages of an assembled context."""

from typing import Any

import pytest
from modestream_client.contexts import Message

from agents.rules.context.formats import DEFAULT_SYSTEM_PROMPT, build_messages
from schemas.messages.assemble import AssembleRequest


def prompt(**fields: Any) -> list[Message]:
    return build_messages(AssembleRequest.model_validate({"scope": {"user_id": "ana"}, "query": "q"} | fields), "{}")


def test_system_prompt_is_separate_and_assistant_acknowledges() -> None:
    system, user, assistant = prompt(system_prompt="You are a bank clerk.")
    assert system.role == "system"
    assert system.content == "You are a bank clerk."
    assert user.role == "user"
    assert assistant.role == "assistant"
    assert assistant.content == "Ok"


@pytest.mark.parametrize("system_prompt", [None, ""])
def test_missing_system_prompt_gets_the_default(system_prompt: str | None) -> None:
    assert prompt(system_prompt=system_prompt)[0].content == DEFAULT_SYSTEM_PROMPT


def test_memories_follow_one_explanatory_line() -> None:
    line, body = prompt()[1].content.split("\n")
    assert line
    assert body == "{}"


def test_question_is_the_end_where_it_is_asked_for() -> None:
    last = prompt(query="where?", append_query=True, question_prefix="Q: ", question_suffix=" Be brief.")[-1]
    assert last == Message(role="user", content="Q: where? Be brief.")


def test_question_frames_alone_append_nothing() -> None:
    assert prompt(question_prefix="Q: ", question_suffix="!")[-1].role == "assistant"


def test_examples_prefix_and_suffix_surround_the_memories() -> None:
    examples = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Not known."}]
    _, first, second, user, _ = prompt(messages=examples, prefix="BEFORE", suffix="AFTER")
    assert [first.model_dump(), second.model_dump()] == examples
    assert user.content.startswith("BEFORE\n")
    assert user.content.endswith("\n{}\nAFTER")
