"""Replies parsed into contexts and modes."""

import inspect
from typing import Any

import pytest
from modestream_client import MemoryCalls, MemoryClient
from modestream_client.answers import Notice, Reply, context_of
from modestream_client.calls.answering import AnswerOptions
from modestream_client.failures import MemoryServiceError

CONTEXT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "You are …"},
        {"role": "user", "content": '{"memories":[]}'},
        {"role": "assistant", "content": "Ok"},
    ],
    "references": ["m1", "m2"],
    "sections": {"rules": [], "recent_window": ["m1", "m2"]},
    "interaction_mode": "DEBUGGING",
    "interaction_confidence": 0.93,
    "budget": {"rules": 100, "recent_window": 240},
    "tokens": {"total": 256, "recent_window": 200},
    "dropped": ["m0"],
    "sticky": ["m1"],
    "breaches": [{"memory_id": "m9", "priority": 700, "reason": "no room"}],
}

MODE = {"name": "journal", "embedder": "general", "embedding_dim": 384, "decay": "slow", "is_default": True}


class Answering(MemoryClient):
    """A client with a fixed reply to every command."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("nobody", user_id="u1")
        self.result = result

    async def command(self, *_order: Any, **_how: Any) -> dict[str, Any]:
        return self.result


def test_context_is_typed_with_messages_for_chat_models() -> None:
    context = context_of(Reply({**CONTEXT, "new": 1}, (Notice("unknown_pin", "p"),)))
    assert context.messages == CONTEXT["messages"]
    assert context.interaction_mode == "DEBUGGING"
    assert context.interaction_confidence == 0.93
    assert context.references == ("m1", "m2")
    assert context.sections["recent_window"] == ["m1", "m2"]
    assert context.tokens["total"] == 256
    assert context.budget["rules"] == 100
    assert context.dropped == ("m0",)
    assert context.sticky == ("m1",)
    assert [(breach.memory_id, breach.priority) for breach in context.breaches] == [("m9", 700)]
    assert context.warnings == (Notice("unknown_pin", "p"),)


@pytest.mark.parametrize("lacking", ["messages", "references", "sections", "interaction_mode", "budget", "tokens"])
def test_incomplete_context_is_a_service_error(lacking: str) -> None:
    with pytest.raises(MemoryServiceError, match="can't be read"):
        context_of(Reply({name: value for name, value in CONTEXT.items() if name != lacking}))


async def test_modes_are_typed_with_their_defaults() -> None:
    shown = await Answering({"modes": [{**MODE, "new": 1}], "user_default": "journal"}).list_modes()
    assert [(mode.name, mode.decay, mode.is_default) for mode in shown.modes] == [("journal", "slow", True)]
    assert shown.user_default == "journal"
    assert shown.project_default is None


@pytest.mark.parametrize("result", [{}, {"modes": None}, {"modes": [{"name": "journal"}]}])
async def test_unreadable_modes_are_a_service_error(result: dict[str, Any]) -> None:
    with pytest.raises(MemoryServiceError, match="can't be read"):
        await Answering(result).list_modes()
    with pytest.raises(MemoryServiceError, match="can't be read"):
        await Answering(result).declare_mode("journal", "general")


async def test_assemble_takes_one_user() -> None:
    with pytest.raises(ValueError, match="user_id"):
        await MemoryClient("nobody").assemble("x")


def test_answer_takes_what_a_context_takes() -> None:
    of_contexts = set(inspect.signature(MemoryCalls.assemble).parameters) - {"self", "query", "append_query"}
    assert of_contexts <= set(AnswerOptions.__annotations__)
