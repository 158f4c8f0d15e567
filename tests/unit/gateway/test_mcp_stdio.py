"""`python -m streams mcp` as a program starts it, without a broker."""

import asyncio
import json
import os
import sys
from typing import Any

import pytest

OLD = "2025-11-25"
HELLO = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
WRONG = {"name": "search_memory", "arguments": {"query": ""}}

CONVERSATIONS: dict[str, list[tuple[str, Any]]] = {
    OLD: [("initialize", HELLO), ("tools/list", {}), ("tools/call", WRONG)],
    "2026-07-28": [
        ("server/discover", {"_meta": META}),
        ("tools/list", {"_meta": META}),
        ("tools/call", WRONG | {"_meta": META}),
    ],
}


async def served(messages: list[tuple[str, Any]], **environment: str) -> tuple[int | None, list[bytes], bytes]:
    """Send messages, each after the answer to the one before; return the exit code, the output's lines, the errors."""
    set_ = {"MODESTREAM_BROKER": "kafka://127.0.0.1:1", "MODESTREAM_LOG_LEVEL": "debug", **environment}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "streams",
        "mcp",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
        env={**os.environ, **set_},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = []
    for number, (method, params) in enumerate(messages):
        sent = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(sent).encode() + b"\n")
        lines.append(await process.stdout.readline())
    # `communicate` alone leaves it open, up to Python 3.11.
    process.stdin.close()
    rest, errors = await process.communicate()
    return process.returncode, [*lines, *rest.splitlines()], errors


@pytest.mark.parametrize("revision", CONVERSATIONS)
async def test_output_is_protocol_only(revision: str) -> None:
    code, lines, errors = await served(CONVERSATIONS[revision], MODESTREAM_USER="u1")
    assert code == 0, errors
    answers = [json.loads(line) for line in lines]
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    assert len(answers[1]["result"]["tools"]) == 8
    assert answers[2]["result"]["isError"]
    assert "invalid_value: " in answers[2]["result"]["content"][0]["text"]
    events = [json.loads(line)["event"] for line in errors.splitlines()]
    assert any("can't follow service" in event for event in events), "the broker's absence is told on standard error"


async def test_user_must_be_set() -> None:
    code, lines, errors = await served([], MODESTREAM_USER="")
    assert code == os.EX_CONFIG
    assert lines == []
    assert b"MODESTREAM_USER" in errors
