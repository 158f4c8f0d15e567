"""Exports of chat programs: ChatGPT, Claude, Claude Code, Codex.

A model's thoughts, tool calls and instructions inserted by a program are not messages; results of tools have the role
`tool`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import IO, Any

from modestream_client.imports.reading import (
    BROKEN,
    NOT_A_MESSAGE,
    BrokenMessage,
    Found,
    Json,
    Problem,
    broken,
    dicts,
    digest,
    message,
    moment_of,
    object_of,
    resource,
    seconds,
    shown,
    text_of,
)
from modestream_client.imports.sources import TooLarge, json_lines, json_values, members_of

CITATION = re.compile("\ue200[^\ue200\ue201]*\ue201")
"""Marks of sources in ChatGPT's answers: they refer to nothing outside of its page."""

HIDDEN_CONTENT = ("user_editable_context", "model_editable_context", "thoughts", "reasoning_recap")
"""Kinds of ChatGPT's content that are not messages."""


def read_chatgpt(source: IO[bytes]) -> Iterator[Found]:
    """Read `conversations.json`, or the zip of the whole export: of each tree the visible branch."""
    is_wanted = re.compile(r"(.*/)?conversations(-\d+)?\.json").fullmatch
    yield from _conversations(source, is_wanted, "mapping", _chatgpt_conversation)


def read_claude(source: IO[bytes]) -> Iterator[Found]:
    """Read `conversations.json`, or the zip of the whole export."""
    is_wanted = re.compile(r"(.*/)?conversations\.json").fullmatch
    yield from _conversations(source, is_wanted, "chat_messages", _claude_conversation)


def _conversations(source: IO[bytes], is_wanted: Any, messages: str, read: Any) -> Iterator[Found]:
    number = 0
    for member in members_of(source, is_wanted, "conversations.json"):
        try:
            for _, value in json_values(member, {("item",)}):
                number += 1
                if isinstance(value, TooLarge):
                    yield Problem(f"conversation {number}", "too_large", "the conversation is too large to be read")
                elif not isinstance(value, dict) or messages not in value:
                    yield Problem(f"conversation {number}", "invalid_value", f"the conversation has no {messages}")
                else:
                    yield NOT_A_MESSAGE
                    try:
                        yield from read(value, number)
                    except BROKEN as problem:
                        yield broken(f"conversation {number}", problem)
        except BrokenMessage as problem:
            yield Problem(f"conversation {number + 1}", "invalid_json", str(problem))


def _chatgpt_conversation(talk: Json, number: int) -> Iterator[Found]:
    talk_id = next((talk[name] for name in ("conversation_id", "id") if isinstance(talk.get(name), str)), "")
    mapping = talk["mapping"]
    if not talk_id or not isinstance(mapping, dict):
        yield Problem(talk_id or f"conversation {number}", "invalid_value", "the conversation has no id or no messages")
        return
    for node_id, node in _shown_branch(mapping, talk.get("current_node")):
        try:
            yield _chatgpt_message(talk, talk_id, node_id, node)
        except BROKEN as problem:
            yield broken(f"{talk_id}/{node_id}", problem)


def _shown_branch(mapping: Json, last: object) -> list[tuple[str, Json]]:
    """Return the nodes from the first to the current one, or without that to the latest leaf."""
    if last not in mapping:
        times = {
            node_id: float((node.get("message") or {}).get("create_time") or 0)
            for node_id, node in mapping.items()
            if isinstance(node, dict) and not node.get("children") and isinstance(node.get("message"), dict)
        }
        last = max(times, key=times.__getitem__, default=None)
    branch: dict[str, Json] = {}
    while isinstance(last, str) and last not in branch and isinstance(node := mapping.get(last), dict):
        branch[last] = node
        last = node.get("parent")
    return list(branch.items())[::-1]


def _chatgpt_message(talk: Json, talk_id: str, node_id: str, node: Json) -> Found:
    if node.get("message") is None:
        return NOT_A_MESSAGE
    told = object_of(node["message"], "the message")
    author, content = object_of(told.get("author"), "the author"), object_of(told.get("content"), "the content")
    metadata = told.get("metadata") or {}
    role, kind = author.get("role"), content.get("content_type")
    if role not in ("user", "assistant", "tool", "system"):
        raise BrokenMessage(f"the role {shown(role)} is not a valid one")
    # A call is addressed to the tool, an answer to all.
    is_call = role == "assistant" and told.get("recipient") not in (None, "all")
    if role == "system" or is_call or kind in HIDDEN_CONTENT or metadata.get("is_visually_hidden_from_conversation"):
        return NOT_A_MESSAGE
    at = told.get("create_time") or talk.get("create_time")
    words, resources = _chatgpt_content(content)
    named = {each["uri"].rpartition("/")[2] for each in resources}
    for attached in dicts(metadata.get("attachments")):
        if str(attached.get("id")) not in named:
            uri = f"file-service://{attached.get('id')}"
            resources.append(
                resource(uri, attached.get("mime_type") or attached.get("mimeType"), name=attached.get("name"))
            )
    project = talk.get("conversation_template_id") or talk.get("gizmo_id")
    return message(
        f"{talk_id}/{node_id}",
        turn_id=str(told.get("id") or node_id),
        conversation_id=talk_id,
        role=role,
        content=words,
        occurred_at=seconds(at) if at is not None else None,
        resources=resources,
        belongs_to={"project": project, "conversation": talk.get("title")},
        metadata={"source": "chatgpt", "title": talk.get("title")},
    )


def _chatgpt_content(content: Json) -> tuple[str, list[Json]]:
    """Split a content into its text and its other parts."""
    words = [content[name] for name in ("text", "result", "title") if isinstance(content.get(name), str)]
    resources: list[Json] = []
    for part in content.get("parts") or ():
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, dict):
            inner = part.get("audio_asset_pointer")
            pointer = inner.get("asset_pointer") if isinstance(inner, dict) else part.get("asset_pointer")
            if isinstance(part.get("text"), str):
                words.append(part["text"])
            elif isinstance(pointer, str):
                kind = "audio/wav" if "audio" in str(part.get("content_type")) else "image/png"
                resources.append(resource(pointer, kind))
    return CITATION.sub("", "\n\n".join(word for word in words if word.strip())), resources


def _claude_conversation(talk: Json, number: int) -> Iterator[Found]:
    talk_id = talk.get("uuid")
    if not isinstance(talk_id, str) or not isinstance(talk["chat_messages"], list):
        yield Problem(f"conversation {number}", "invalid_value", "the conversation has no id or no messages")
        return
    for index, told in enumerate(talk["chat_messages"], 1):
        key = told.get("uuid") if isinstance(told, dict) else None
        place = f"{talk_id}/{key or index}"
        try:
            yield from _claude_message(talk, talk_id, place, object_of(told, "the message"))
        except BROKEN as problem:
            yield broken(place, problem)


def _claude_message(talk: Json, talk_id: str, place: str, told: Json) -> Iterator[Found]:
    key, sender = text_of(told.get("uuid"), "the id"), told.get("sender")
    role = {"human": "user", "assistant": "assistant"}.get(sender if isinstance(sender, str) else "")
    if role is None:
        raise BrokenMessage(f"the sender {shown(sender)} is not a valid one")
    at = moment_of(told.get("created_at"))
    project = talk.get("project")
    about: Json = {
        "conversation_id": talk_id,
        "occurred_at": at,
        "belongs_to": {
            "project": project.get("name") if isinstance(project, dict) else None,
            "conversation": talk.get("name"),
        },
        "metadata": {"source": "claude", "title": talk.get("name") or None},
    }
    blocks = list(dicts(told.get("content")))
    for block in blocks:
        if block.get("type") == "tool_result":
            result_id = f"{key}-{block.get('tool_use_id') or digest(block)}"
            yield message(place, turn_id=result_id, role="tool", content=_result_text(block), **about)
    resources = [
        resource(f"claude:{key}/{file.get('file_name') or 'pasted.txt'}", text=file.get("extracted_content"))
        for file in dicts(told.get("attachments"))
    ]
    resources += [
        resource(f"claude:{file.get('file_uuid') or key}/{file.get('file_name')}") for file in dicts(told.get("files"))
    ]
    texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    words = "\n\n".join(texts) if blocks else text_of(told.get("text"), "the text")
    yield message(place, turn_id=key, role=role, content=words, resources=resources, **about)


def _result_text(block: Mapping[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in dicts(content) if isinstance(part.get("text"), str))


PUT_IN = re.compile(
    r"<(command-|local-command-|bash-|system-reminder>|task-notification>|user-memory-input>)"
    r"|\[Request interrupted by user|Caveat: The messages below were generated by the user while running local commands"
)
"""Beginnings of texts that Claude Code inserts as if the user had written them."""


def _without_reminders(text: str) -> str:
    """Remove Claude Code's reminders to its model, in time linear in the text."""
    first, *parts = text.split("<system-reminder>")
    return first + "".join(part.partition("</system-reminder>")[2] for part in parts)


SESSION_LINES = ("user", "assistant")
"""Kinds of Claude Code's lines that are messages."""


def read_claude_code(source: IO[bytes]) -> Iterator[Found]:
    """Read a session of Claude Code, a file of JSON lines."""
    for number, line in json_lines(source):
        if isinstance(line, Problem):
            yield line
            continue
        kind = line.get("type")
        if not isinstance(kind, str) or "schema" in line or "payload" in line:
            yield Problem(number, "invalid_value", "not a line of a Claude Code session")
        elif kind not in SESSION_LINES or any(line.get(name) for name in SESSION_ASIDES):
            yield NOT_A_MESSAGE
        else:
            try:
                yield from _claude_code_line(number, line)
            except BROKEN as problem:
                yield broken(number, problem)


SESSION_ASIDES = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
"""Marks of lines outside of the conversation itself."""


def _claude_code_line(number: int, line: Json) -> Iterator[Found]:
    key, told = text_of(line.get("uuid"), "the id"), object_of(line.get("message"), "the message")
    about: Json = {
        "conversation_id": text_of(line.get("sessionId"), "the session"),
        "occurred_at": moment_of(line.get("timestamp")),
        "belongs_to": {"project": str(line.get("cwd") or "").rstrip("/").rpartition("/")[2] or None},
        "metadata": {"source": "claude-code", "directory": line.get("cwd")},
    }
    content = told.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(dicts(content))
    words: list[str] = []
    resources: list[Json] = []
    for index, block in enumerate(blocks, 1):
        kind = block.get("type")
        if kind == "tool_result":
            result_id = f"{key}-{block.get('tool_use_id') or index}"
            result = _without_reminders(_result_text(block))
            yield message(number, turn_id=result_id, role="tool", content=result, **about)
        elif kind == "text":
            text = _without_reminders(text_of(block.get("text"), "the text")).strip()
            if line["type"] == "assistant" or not PUT_IN.match(text):
                words.append(text)
        elif kind in ("image", "document"):
            where = block.get("source")
            media_type = where.get("media_type") if isinstance(where, dict) else None
            resources.append(resource(f"claude-code:{key}/{kind}-{index}", media_type))
    yield message(
        number, turn_id=key, role=line["type"], content="\n\n".join(filter(None, words)), resources=resources, **about
    )


CODEX_PUT_IN = re.compile(
    r"\s*(# AGENTS\.md instructions|<(environment_context|user_instructions|INSTRUCTIONS|turn_aborted|permissions"
    r"|collaboration_mode|skills?|user_shell_command|subagent_notification|user_action)\b)"
)
"""Beginnings of texts that Codex inserts as if the user had written them."""


def read_codex(source: IO[bytes]) -> Iterator[Found]:
    """Read a rollout of Codex (JSON lines). Only its items are messages; its events repeat them."""
    session: str | None = None
    started: object = None
    project: str | None = None
    seen: dict[str, int] = {}
    for number, line in json_lines(source):
        if isinstance(line, Problem):
            yield line
            continue
        payload = line.get("payload")
        item = payload if isinstance(payload, dict) else line
        is_start = line.get("type") == "session_meta" or ("id" in line and "type" not in line and "timestamp" in line)
        if is_start and session is None and isinstance(item.get("id"), str):
            session, started = item["id"], item.get("timestamp")
            project = str(item.get("cwd") or "").rstrip("/").rpartition("/")[2] or None
            yield NOT_A_MESSAGE
        elif session is None or not isinstance(line.get("type") or line.get("record_type"), str):
            yield Problem(number, "invalid_value", "not a line of a Codex session")
        elif payload is not None and line["type"] != "response_item":
            yield NOT_A_MESSAGE
        else:
            try:
                at = moment_of(line.get("timestamp") or started)
                yield _codex_item(number, session, project, at, item, seen)
            except BROKEN as problem:
                yield broken(number, problem)


def _codex_item(
    number: int, session: str, project: str | None, at: datetime, item: Json, seen: dict[str, int]
) -> Found:
    kind, role = item.get("type"), item.get("role")
    images: list[str] = []
    if kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
        role, words = "tool", _codex_output(item.get("output"))
    elif kind == "message" and role in ("user", "assistant"):
        texts = []
        for block in dicts(item.get("content")):
            text = block.get("text")
            if isinstance(text, str) and not (role == "user" and CODEX_PUT_IN.match(text)):
                texts.append(text)
            elif block.get("type") == "input_image":
                address = str(block.get("image_url") or "")
                images.append(address[5:].partition(";")[0] if address.startswith("data:") else "image/png")
        words = "\n\n".join(texts)
    else:
        return NOT_A_MESSAGE
    # Items have no ids: time and text distinguish them, and a count if both are equal.
    key = digest(session, at, role, words, item.get("call_id"))
    seen[key] = seen.get(key, 0) + 1
    turn_id = f"{key}-{seen[key]}" if seen[key] > 1 else key
    return message(
        number,
        turn_id=turn_id,
        conversation_id=session,
        role=role,
        content=words,
        occurred_at=at,
        resources=[resource(f"codex:{turn_id}/image-{index}", kind) for index, kind in enumerate(images, 1)],
        belongs_to={"project": project},
        metadata={"source": "codex"},
    )


def _codex_output(output: object) -> str:
    """Return a tool's output: a text, its JSON with the text in it, or a list of blocks."""
    if isinstance(output, str):
        try:
            inner = json.loads(output)
        except (ValueError, RecursionError):
            return output
        return inner["output"] if isinstance(inner, dict) and isinstance(inner.get("output"), str) else output
    if isinstance(output, dict):
        return _result_text(output)
    return _result_text({"content": output})
