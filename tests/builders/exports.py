"""Exports of chats as other programs write them, and what the readers make of them."""

import io
import json
import zipfile
from typing import Any

from modestream_client.imports import Entry, Message, Problem, read_export, zone_of

Json = dict[str, Any]


def read(export: Any, export_format: Any, zone: str | None = None) -> list[Entry]:
    """Read an export: bytes, JSON lines of a list in a tuple, or JSON."""
    if isinstance(export, tuple):
        export = "".join(json.dumps(line) + "\n" for line in export).encode()
    content = export if isinstance(export, bytes) else json.dumps(export).encode()
    return list(read_export(io.BytesIO(content), export_format, zone_of(zone)))


def turns(export: Any, export_format: Any, zone: str | None = None) -> list[Json]:
    entries = read(export, export_format, zone)
    assert not [entry for entry in entries if isinstance(entry, Problem)]
    return [entry.turn for entry in entries if isinstance(entry, Message)]


def said(export: Any, export_format: Any) -> list[tuple[str, str]]:
    return [(turn["role"], turn["content"]) for turn in turns(export, export_format)]


def zipped(**files: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as target:
        for name, content in files.items():
            target.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return made.getvalue()


def node(key: str, parent: str | None, role: str = "user", text: str = "hello", **fields: Any) -> Json:
    """A node of ChatGPT's tree."""
    content = fields.pop("content", {"content_type": "text", "parts": [text]})
    told = {"id": key, "author": {"role": role}, "content": content, "create_time": 1772700000.5, "metadata": {}}
    return {key: {"id": key, "parent": parent, "children": [], "message": told | fields}}


def chatgpt(*nodes: Json, last: str | None = None, **fields: Any) -> list[Json]:
    mapping: Json = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    for each in nodes:
        mapping |= each
    talk = {"conversation_id": "talk-1", "title": "Boats", "current_node": last or list(mapping)[-1]}
    return [talk | fields | {"mapping": mapping}]


def claude(**fields: Any) -> list[Json]:
    """An export of one conversation with one message."""
    told = {"uuid": "m1", "sender": "human", "text": "hello", "created_at": "2026-03-05T08:01:00.123456Z"}
    return [{"uuid": "talk-1", "name": "Boats", "chat_messages": [told | fields]}]


def session_line(**fields: Any) -> Json:
    """A line of a session of Claude Code."""
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s1",
        "timestamp": "2026-03-05T08:01:00.000Z",
        "cwd": "/src/boats",
    }
    return line | {"message": {"role": "user", "content": "hello"}} | fields


def rollout(*items: Json) -> tuple[Json, ...]:
    """A session of Codex."""
    at = "2026-03-05T08:01:00.000Z"
    start = {"timestamp": at, "type": "session_meta", "payload": {"id": "s1", "timestamp": at, "cwd": "/src/boats"}}
    return (start, *({"timestamp": at, "type": "response_item", "payload": item} for item in items))


def spoken(role: str, text: str) -> Json:
    """An item of Codex."""
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def slack(*messages: Json) -> bytes:
    """An export of one channel and one day."""
    profile = {"real_name": "Ana Costa"}
    files: Json = {"users.json": [{"id": "U1", "profile": profile}], "channels.json": [{"id": "C1", "name": "boats"}]}
    return zipped(**files, **{"boats/2026-03-05.json": messages})


def post(**fields: Any) -> Json:
    """A message of Slack."""
    return {"type": "message", "user": "U1", "text": "hello", "ts": "1772700000.000100"} | fields


def whatsapp(*lines: str) -> bytes:
    return "\n".join(lines).encode()


def telegram(*messages: Json, **fields: Any) -> Json:
    return {"name": "Boats", "type": "private_group", "id": 41} | fields | {"messages": messages}


def sent(**fields: Any) -> Json:
    """A message of Telegram."""
    told = {"id": 7, "type": "message", "date": "2026-03-05T09:01:00", "date_unixtime": "1772700000"}
    return told | {"from": "Ana", "from_id": "user1", "text": "hello"} | fields


def mail(body: str, **headers: str) -> bytes:
    usual = {"From": "Ana Costa <ana@a.example>", "Date": "Thu, 05 Mar 2026 09:01:00 +0100", "Message-ID": "<m1@a>"}
    named = usual | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in named.items()]
    return "\n".join(["From ana@a.example Thu Mar  5 09:01:00 2026", *lines, "", body, "", ""]).encode()


def turn_line(**fields: Any) -> Json:
    """A line of an export of this service."""
    return {
        "schema": "turn.v1",
        "scope": {"user_id": "u"},
        "conversation_id": "c",
        "role": "user",
        "content": "hi",
    } | fields


def claude_code(text: str) -> bytes:
    return json.dumps(session_line(message={"content": text})).encode()


HOSTILE = {
    "reminders that never end": ("claude-code", claude_code("<system-reminder>" * 200_000)),
    "marks of sources that never end": (
        "chatgpt",
        json.dumps(chatgpt(node("a", "root", text="\ue200" * 500_000))).encode(),
    ),
    "spaces": ("whatsapp", whatsapp("13/03/26, 8:00 - Ana: a" + " " * 500_000 + "x")),
    "notes of an edit": ("whatsapp", whatsapp("13/03/26, 8:00 - Ana: " + "<edited " * 60_000)),
    "marks that never end": ("slack", slack(post(text="<a|" * 200_000))),
    "a line like that between mails": ("mbox", mail("hi") + b"From " + b"a" * 1_000_000 + b"\n"),
    "a page that never ends": ("mbox", mail("<!" * 100_000, Content_Type="text/html")),
    "parts of parts": ("mbox", mail("hi", Content_Type="multipart/mixed; boundary=a") + b"--a\n" * 1000),
}


def a_turn(key: str, **fields: Any) -> Json:
    """A line of `turn.v1`."""
    return {"schema": "turn.v1", "turn_id": key, "conversation_id": "c", "role": "user", "content": "x"} | fields


def remembered(key: str, **fields: Any) -> Json:
    """A memory of mem0."""
    return {"id": key, "memory": "tea", "created_at": "9999-12-31T23:59:59.999999Z"} | fields
