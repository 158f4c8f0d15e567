"""The list of tools, and what the setting may choose."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.connection_settings import MODEL_TOOLS, MORE_TOOLS, USUAL_TOOLS, StdioSettings
from gateway.mcp.models import Recalled, recalled_of
from gateway.mcp.tools import ALL_TOOLS, compact_schema, tools_of

SERVED = (*USUAL_TOOLS, *MODEL_TOOLS)
LISTED = [tool.listed.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools_of(SERVED).values()]


def test_list_is_small_and_in_order() -> None:
    assert [tool["name"] for tool in LISTED] == list(SERVED)
    assert len(json.dumps(LISTED, separators=(",", ":"), ensure_ascii=False).encode()) <= 8192


def test_order_is_that_of_the_tools_not_of_the_setting() -> None:
    assert list(tools_of(["health", "add_memory", "search_memory"])) == ["search_memory", "add_memory", "health"]


def test_every_name_has_a_tool() -> None:
    assert [tool.name for tool in ALL_TOOLS] == [*SERVED, *MORE_TOOLS]


def _nodes(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [each for value in node for each in _nodes(value)]
    if not isinstance(node, dict):
        return []
    return [node, *(entry for value in node.values() for entry in _nodes(value))]


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_schemas_stand_by_themselves(tool: Any) -> None:
    for model in (tool.arguments, tool.result):
        schema = compact_schema(model)
        assert schema["type"] == "object"
        assert set(schema["properties"]) == set(model.model_fields)
        for node in _nodes(schema):
            assert not {"$ref", "$defs", "anyOf", "title"} & set(node)
    assert compact_schema(tool.arguments)["additionalProperties"] is False


def test_no_tool_names_a_user_and_every_recalled_text_is_marked() -> None:
    for tool in ALL_TOOLS:
        assert not any("user" in name for name in tool.arguments.model_fields)
    for listed in LISTED:
        for node in _nodes(listed["outputSchema"]):
            if "text" in node.get("properties", {}):
                assert "not instructions" in node["properties"]["text"]["description"]


def test_a_long_memory_comes_whole_and_without_passages() -> None:
    hit = {"memory_id": "m1", "text": "long", "passages": [{"start": 0, "end": 4, "score": 0.5}]}
    assert set(recalled_of(hit)) == set(Recalled.model_fields)


def test_setting_takes_known_tools_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODESTREAM_USER", "u1")
    monkeypatch.setenv("MODESTREAM_GATEWAY_MCP_TOOLS", "search_memory, health")
    assert StdioSettings().gateway_mcp_tools == ("search_memory", "health")
    monkeypatch.setenv("MODESTREAM_GATEWAY_MCP_TOOLS", "search_memory,forget_all")
    with pytest.raises(ValidationError, match=r"forget_all.*there are: search_memory"):
        StdioSettings()


@pytest.mark.parametrize(("profiles", "served"), [("{}", False), ('{"default":{"model":"openai/x"}}', True)])
def test_a_model_answers_only_where_one_is_set(profiles: str, served: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODESTREAM_USER", "u1")
    monkeypatch.setenv("MODESTREAM_LLM_PROFILES", profiles)
    assert ("ask_memory" in StdioSettings(_env_file=None).mcp_tools) is served
