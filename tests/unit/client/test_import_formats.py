"""Readers of exports: what of a file is a message, whose, when, and where it belongs."""

import io
import json
import time
import zipfile
from datetime import datetime
from typing import Any

import pytest
from modestream_client.imports import Entry, Message, NotOfFormat, Problem, read_export, reading, sources, zone_of
from modestream_client.imports.reading import MAX_CONTENT_CHARS, MoreProblems

Json = dict[str, Any]


def read(export: Any, export_format: Any, zone: str | None = None) -> list[Entry]:
    """Read an export: bytes, JSON lines of a list in a tuple, or JSON."""
    if isinstance(export, tuple):
        export = "".join(json.dumps(line) + "\n" for line in export).encode()
    content = export if isinstance(export, bytes) else json.dumps(export).encode()
    return list(read_export(io.BytesIO(content), export_format, zone_of(zone)))


def turns(export: Any, export_format: Any, zone: str | None = None) -> list[Json]:
    """Return the turns of an export without anything broken."""
    entries = read(export, export_format, zone)
    assert not [entry for entry in entries if isinstance(entry, Problem)]
    return [entry.turn for entry in entries if isinstance(entry, Message)]


def said(export: Any, export_format: Any) -> list[tuple[str, str]]:
    """Return role and text of each turn."""
    return [(turn["role"], turn["content"]) for turn in turns(export, export_format)]


def zipped(**files: Any) -> bytes:
    """Return a zip of JSON files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as target:
        for name, content in files.items():
            target.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return made.getvalue()


# ChatGPT


def node(key: str, parent: str | None, role: str = "user", text: str = "hello", **fields: Any) -> Json:
    """A node of ChatGPT's tree."""
    content = fields.pop("content", {"content_type": "text", "parts": [text]})
    told = {"id": key, "author": {"role": role}, "content": content, "create_time": 1772700000.5, "metadata": {}}
    return {key: {"id": key, "parent": parent, "children": [], "message": told | fields}}


def chatgpt(*nodes: Json, last: str | None = None, **fields: Any) -> list[Json]:
    """An export of one conversation."""
    mapping: Json = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    for each in nodes:
        mapping |= each
    talk = {"conversation_id": "talk-1", "title": "Boats", "current_node": last or list(mapping)[-1]}
    return [talk | fields | {"mapping": mapping}]


def test_chatgpt_shows_the_branch_of_the_current_node() -> None:
    export = chatgpt(node("a", "root"), node("b", "a", "assistant", "first try"), node("c", "a", "assistant", "again"))
    assert said(export, "chatgpt") == [("user", "hello"), ("assistant", "again")]


def test_chatgpt_without_a_current_node_shows_the_latest_leaf() -> None:
    export = chatgpt(node("a", "root"), node("b", "a", "assistant", "ahoy", create_time=1772700009.0), last="gone")
    assert said(export, "chatgpt")[-1] == ("assistant", "ahoy")


@pytest.mark.parametrize(
    "hidden",
    [
        node("x", "a", "system", "be nice"),
        node("x", "a", "assistant", "import os", recipient="python"),
        node("x", "a", "assistant", content={"content_type": "thoughts", "thoughts": []}),
        node("x", "a", "user", "about me", metadata={"is_visually_hidden_from_conversation": True}),
        node("x", "a", "user", content={"content_type": "user_editable_context", "user_profile": "metric"}),
    ],
)
def test_what_chatgpt_does_not_show_is_no_message(hidden: Json) -> None:
    assert said(chatgpt(node("a", "root"), hidden), "chatgpt") == [("user", "hello")]


def test_what_a_tool_of_chatgpt_prints_is_its_own() -> None:
    printed = node("t", "a", "tool", content={"content_type": "execution_output", "text": "42"})
    assert said(chatgpt(node("a", "root"), printed), "chatgpt")[-1] == ("tool", "42")


def test_words_that_were_spoken_to_chatgpt_are_words() -> None:
    parts = [
        {"content_type": "audio_transcription", "text": "Hello there."},
        {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1", "format": "wav"},
    ]
    [turn] = turns(chatgpt(node("a", "root", content={"content_type": "multimodal_text", "parts": parts})), "chatgpt")
    assert turn["content"] == "Hello there."
    assert turn["resources"][0]["media_type"] == "audio/wav"


def test_marks_of_sources_in_chatgpts_answers_are_dropped() -> None:
    export = chatgpt(node("a", "root", "assistant", "It floats.\ue200cite\ue202turn0search1\ue201"))
    assert said(export, "chatgpt") == [("assistant", "It floats.")]


def test_chatgpts_ids_and_times_are_kept() -> None:
    [turn] = turns(chatgpt(node("a", "root")), "chatgpt")
    kept = {name: turn[name] for name in ("turn_id", "conversation_id", "occurred_at")}
    assert kept == {"turn_id": "a", "conversation_id": "talk-1", "occurred_at": "2026-03-05T08:40:00.500000Z"}


def test_a_circle_in_chatgpts_tree_ends() -> None:
    assert len(turns(chatgpt(node("a", "b"), node("b", "a")), "chatgpt")) == 2


def test_all_conversation_files_of_chatgpts_zip_are_read() -> None:
    other = chatgpt(node("b", "root", text="second"), conversation_id="talk-2")
    files = {"conversations-000.json": chatgpt(node("a", "root")), "conversations-001.json": other, "chat.html": "x"}
    assert said(zipped(**files), "chatgpt") == [("user", "hello"), ("user", "second")]


# Claude


def claude(**fields: Any) -> list[Json]:
    """An export of one conversation with one message."""
    told = {"uuid": "m1", "sender": "human", "text": "hello", "created_at": "2026-03-05T08:01:00.123456Z"}
    return [{"uuid": "talk-1", "name": "Boats", "chat_messages": [told | fields]}]


def test_claudes_thoughts_and_calls_are_no_words() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "input": {}},
        {"type": "text", "text": "Ahoy"},
    ]
    assert said(claude(sender="assistant", content=blocks), "claude") == [("assistant", "Ahoy")]


def test_an_upload_of_claude_has_its_text() -> None:
    attached = [{"file_name": "boat.txt", "extracted_content": "A green boat."}]
    [turn] = turns(claude(attachments=attached), "claude")
    assert turn["resources"] == [
        {"uri": "claude:m1/boat.txt", "media_type": "text/plain", "sha256": None, "text": "A green boat."}
    ]


def test_a_message_without_words_says_what_came_with_it() -> None:
    [turn] = turns(claude(text="", files=[{"file_uuid": "f1", "file_name": "boat.png"}]), "claude")
    assert turn["content"] == "boat.png"


def test_a_message_with_nothing_in_it_is_none() -> None:
    assert turns(claude(text=" "), "claude") == []


def test_text_of_an_upload_beyond_a_resource_goes_on_in_the_next() -> None:
    text = "word " * (MAX_CONTENT_CHARS // 2)
    [first, *_] = parts = turns(claude(attachments=[{"file_name": "boat.txt", "extracted_content": text}]), "claude")
    kept = [resource["text"] for part in parts for resource in part["resources"]]
    assert sum(part.count("word") for part in kept) == MAX_CONTENT_CHARS // 2
    assert first["turn_id"] == "m1"


# Claude Code and Codex


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


@pytest.mark.parametrize(
    "line",
    [
        {"type": "summary", "summary": "boats", "leafUuid": "x"},
        session_line(isMeta=True),
        session_line(isSidechain=True),
        session_line(isCompactSummary=True),
        session_line(message={"role": "user", "content": "<command-name>/clear</command-name>"}),
        session_line(message={"role": "user", "content": "[Request interrupted by user]"}),
        session_line(type="assistant", message={"content": [{"type": "thinking", "thinking": "hm"}]}),
        session_line(type="assistant", message={"content": [{"type": "tool_use", "id": "t", "input": {}}]}),
    ],
)
def test_lines_of_claude_code_that_are_no_messages(line: Json) -> None:
    assert turns((session_line(), line), "claude-code")[1:] == []


def test_what_a_tool_of_claude_code_answers_is_its_own() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "12 boats"}]}
    assert said((session_line(message={"content": [result]}),), "claude-code") == [("tool", "12 boats")]


def test_reminders_that_claude_code_puts_in_are_cut_out() -> None:
    content = "Build it.<system-reminder>be nice</system-reminder>"
    assert said((session_line(message={"content": content}),), "claude-code") == [("user", "Build it.")]


def test_a_session_of_claude_code_belongs_to_its_directory() -> None:
    [entry] = read((session_line(),), "claude-code")
    assert isinstance(entry, Message)
    assert entry.belongs_to["project"] == "boats"


def rollout(*items: Json) -> tuple[Json, ...]:
    """A session of Codex."""
    at = "2026-03-05T08:01:00.000Z"
    start = {"timestamp": at, "type": "session_meta", "payload": {"id": "s1", "timestamp": at, "cwd": "/src/boats"}}
    return (start, *({"timestamp": at, "type": "response_item", "payload": item} for item in items))


def spoken(role: str, text: str) -> Json:
    """An item of Codex."""
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def test_instructions_that_codex_puts_in_are_no_messages() -> None:
    put_in = ("# AGENTS.md instructions for /src", "<environment_context>x</environment_context>")
    export = rollout(
        spoken("developer", "be nice"), *(spoken("user", text) for text in put_in), spoken("user", "hello")
    )
    assert said(export, "codex") == [("user", "hello")]


def test_what_a_tool_of_codex_prints_is_its_own() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": json.dumps({"output": "12 boats"})}
    assert said(rollout(output), "codex") == [("tool", "12 boats")]


def test_the_same_words_twice_in_a_session_of_codex_are_two_turns() -> None:
    export = rollout(spoken("user", "go on"), spoken("user", "go on"))
    assert len({turn["turn_id"] for turn in turns(export, "codex")}) == 2


def test_a_session_of_codex_from_before_envelopes_is_read() -> None:
    old = ({"id": "s1", "timestamp": "2025-05-05T08:01:00Z", "instructions": None}, spoken("user", "hello"))
    assert said(old, "codex") == [("user", "hello")]


# Slack


def slack(*messages: Json) -> bytes:
    """An export of one channel and one day."""
    profile = {"real_name": "Ana Costa"}
    files: Json = {"users.json": [{"id": "U1", "profile": profile}], "channels.json": [{"id": "C1", "name": "boats"}]}
    return zipped(**files, **{"boats/2026-03-05.json": messages})


def post(**fields: Any) -> Json:
    """A message of Slack."""
    return {"type": "message", "user": "U1", "text": "hello", "ts": "1772700000.000100"} | fields


def test_a_message_of_slack_has_its_channel_and_its_name() -> None:
    [turn] = turns(slack(post()), "slack")
    assert turn["conversation_id"] == "C1"
    assert turn["speaker"] == "Ana Costa"


def test_a_thread_of_slack_belongs_to_its_channel() -> None:
    first, answer = turns(slack(post(), post(ts="1772700001.0", thread_ts="1772700000.000100")), "slack")
    assert answer["conversation_id"] == first["conversation_id"]
    assert answer["metadata"]["thread"] == first["turn_id"]


def test_marks_of_slack_are_written_out() -> None:
    text = "<@U1> in <#C1|boats>: <https://a.example|the list> &lt;new&gt; <!here>"
    assert said(slack(post(text=text)), "slack") == [
        ("user", "@Ana Costa in #boats: the list (https://a.example) <new> @here")
    ]


def test_a_bot_of_slack_has_its_own_name() -> None:
    [turn] = turns(slack(post(subtype="bot_message", user=None, bot_id="B1", username="Tide bot")), "slack")
    assert turn["role"] == "assistant"
    assert turn["speaker"] == "Tide bot"


def test_a_bots_words_in_attachments_are_its_words() -> None:
    told = post(subtype="bot_message", text="", username="Tide bot", attachments=[{"fallback": "High tide at 9:12"}])
    assert said(slack(told), "slack") == [("assistant", "High tide at 9:12")]


@pytest.mark.parametrize("subtype", ["channel_join", "channel_topic", "bot_add", "pinned_item"])
def test_notices_of_slack_are_no_messages(subtype: str) -> None:
    assert turns(slack(post(subtype=subtype)), "slack") == []


# WhatsApp


def whatsapp(*lines: str) -> bytes:
    """A text export."""
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("13/03/2026, 21:41 - Ana: hi", "2026-03-13T21:41:00Z"),
        ("3/13/26, 9:41 PM - Ana: hi", "2026-03-13T21:41:00Z"),
        ("3/13/26, 9:41\u202fPM - Ana: hi", "2026-03-13T21:41:00Z"),
        ("13.03.26, 21:41 - Ana: hi", "2026-03-13T21:41:00Z"),
        ("2026-03-13, 12:41 a.m. - Ana: hi", "2026-03-13T00:41:00Z"),
        ("[13/03/2026, 21:41:07] Ana: hi", "2026-03-13T21:41:07Z"),
        ("\u200e[3/13/26, 9:41:07\u202fPM] Ana: hi", "2026-03-13T21:41:07Z"),
        ("[13.3.2026 klo 21.41.07] Ana: hi", "2026-03-13T21:41:07Z"),
        ("[13.03.26, 21:41:07] ~ Ana: hi", "2026-03-13T21:41:07Z"),
    ],
)
def test_layouts_of_whatsapp(line: str, at: str) -> None:
    [turn] = turns(whatsapp(line), "whatsapp")
    assert {name: turn[name] for name in ("occurred_at", "speaker", "content")} == {
        "occurred_at": at,
        "speaker": "Ana",
        "content": "hi",
    }


def test_dates_that_could_be_either_are_those_that_go_forward() -> None:
    lines = whatsapp("1/2/26, 8:00 - Ana: hi", "2/1/26, 8:00 - Ben: ho", "3/1/26, 8:00 - Ana: he")
    assert [turn["occurred_at"][5:10] for turn in turns(lines, "whatsapp")] == ["01-02", "02-01", "03-01"]


def test_times_of_whatsapp_are_of_the_zone_that_is_named() -> None:
    [turn] = turns(whatsapp("13/07/2026, 21:41 - Ana: hi"), "whatsapp", "Europe/Berlin")
    assert turn["occurred_at"] == "2026-07-13T19:41:00Z"


def test_an_id_of_whatsapp_does_not_depend_on_how_dates_are_read() -> None:
    unclear = whatsapp("1/2/26, 8:00 - Ana: hi")
    clear = unclear + b"\n1/13/26, 8:00 - Ana: ho"
    assert turns(clear, "whatsapp")[0]["turn_id"] == turns(unclear, "whatsapp")[0]["turn_id"]


def test_the_same_words_in_one_minute_are_two_turns() -> None:
    lines = whatsapp("13/03/26, 8:00 - Ana: ok", "13/03/26, 8:00 - Ana: ok")
    assert len({turn["turn_id"] for turn in turns(lines, "whatsapp")}) == 2


def test_messages_of_one_minute_keep_their_order() -> None:
    lines = whatsapp(*(f"13/03/26, 8:00 - Ana: {number}" for number in range(3)))
    times = [datetime.fromisoformat(turn["occurred_at"]) for turn in turns(lines, "whatsapp")]
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    "notice",
    [
        "13/03/26, 8:01 - Messages and calls are end-to-end encrypted. Learn more.",
        "13/03/26, 8:01 - Ana added Ben",
        "[13/03/26, 8:01:00] Boats: \u200eAna created this group and named it so",
    ],
)
def test_notices_of_whatsapp_are_no_messages(notice: str) -> None:
    assert len(turns(whatsapp("13/03/26, 8:00 - Ana: hi", notice), "whatsapp")) == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("\u200eIMG-1.jpg (file attached)", "IMG-1.jpg"),
        ("IMG-1.jpg (Datei angehängt)", "IMG-1.jpg"),
        ("\u200e<attached: 0001-PHOTO.jpg>", "0001-PHOTO.jpg"),
        ("<Media omitted>", "Media omitted"),
        ("\u200eBild weggelassen", "Bild weggelassen"),
    ],
)
def test_what_whatsapp_attaches_is_a_resource(text: str, name: str) -> None:
    [turn] = turns(whatsapp(f"13/03/26, 8:00 - Ana: {text}"), "whatsapp")
    assert turn["content"] == name
    assert len(turn["resources"]) == 1


def test_lines_behind_a_message_are_its_own() -> None:
    [turn] = turns(whatsapp("13/03/26, 8:00 - Ana: a list:", "- one", "", "- two"), "whatsapp")
    assert turn["content"] == "a list:\n- one\n\n- two"


# Telegram


def telegram(*messages: Json, **fields: Any) -> Json:
    """The export of one chat."""
    return {"name": "Boats", "type": "private_group", "id": 41} | fields | {"messages": messages}


def sent(**fields: Any) -> Json:
    """A message of Telegram."""
    told = {"id": 7, "type": "message", "date": "2026-03-05T09:01:00", "date_unixtime": "1772700000"}
    return told | {"from": "Ana", "from_id": "user1", "text": "hello"} | fields


def test_telegrams_ids_are_kept() -> None:
    [turn] = turns(telegram(sent()), "telegram")
    assert turn["turn_id"] == "7"
    assert turn["conversation_id"] == "41"


def test_every_chat_of_telegram_is_read() -> None:
    chats = [telegram(sent()), telegram(sent(text="ahoy"), id=42)]
    assert [turn["conversation_id"] for turn in turns({"chats": {"list": chats}}, "telegram")] == ["41", "42"]


def test_parts_with_a_form_are_one_text() -> None:
    text = ["see ", {"type": "link", "text": "a.example"}, "!"]
    assert said(telegram(sent(text=text)), "telegram") == [("user", "see a.example!")]


def test_a_bot_of_telegram_is_an_assistant() -> None:
    chat = telegram(sent(), sent(**{"from": "Boats", "from_id": "user9"}), type="bot_chat")
    export = {"personal_information": {"user_id": 1}, "chats": {"list": [chat]}}
    assert [role for role, _ in said(export, "telegram")] == ["user", "assistant"]


def test_a_telegram_time_without_seconds_since_the_epoch_is_of_the_zone() -> None:
    told = sent()
    del told["date_unixtime"]
    [turn] = turns(telegram(told), "telegram", "Europe/Berlin")
    assert turn["occurred_at"] == "2026-03-05T08:01:00Z"


# Mail


def mail(body: str, **headers: str) -> bytes:
    """A mail of a mailbox."""
    usual = {"From": "Ana Costa <ana@a.example>", "Date": "Thu, 05 Mar 2026 09:01:00 +0100", "Message-ID": "<m1@a>"}
    named = usual | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in named.items()]
    return "\n".join(["From ana@a.example Thu Mar  5 09:01:00 2026", *lines, "", body, "", ""]).encode()


def test_a_thread_of_mails_is_a_conversation() -> None:
    answer = mail("Yes.", Message_ID="<m2@a>", In_Reply_To="<m1@a>")
    last = mail("Good.", Message_ID="<m3@a>", In_Reply_To="<m2@a>")
    assert [turn["conversation_id"] for turn in turns(mail("Hi?") + answer + last, "mbox")] == ["m1@a"] * 3


def test_a_mail_has_the_name_of_its_sender() -> None:
    [turn] = turns(mail("Hi."), "mbox")
    assert turn["speaker"] == "Ana Costa"
    assert turn["occurred_at"] == "2026-03-05T08:01:00Z"


def test_the_subject_opens_a_thread() -> None:
    [turn] = turns(mail("It floats.", Subject="=?utf-8?q?Bootshaus_f=C3=BCr_alle?="), "mbox")
    assert turn["content"] == "Bootshaus für alle\n\nIt floats."


def test_what_a_mail_quotes_at_its_end_is_left_out() -> None:
    [turn] = turns(mail("Yes.\n\nOn Monday, Ben wrote:\n> Does it float?"), "mbox")
    assert turn["content"] == "Yes."


def test_a_page_is_its_text() -> None:
    body = "<html><style>p{}</style><p>It <b>floats</b>.</p><p>Good.</p></html>"
    [turn] = turns(mail(body, Content_Type="text/html"), "mbox")
    assert turn["content"] == "It floats.\n\nGood."


def test_a_line_that_begins_with_from_is_of_its_mail() -> None:
    [turn] = turns(mail("Hi.\n\n>From here it is near."), "mbox")
    assert turn["content"] == "Hi.\n\nFrom here it is near."


@pytest.mark.parametrize("charset", ["windows-1252", "no-such-charset"])
def test_a_mail_in_any_charset_is_read(charset: str) -> None:
    assert len(turns(mail("Hi.", Content_Type=f"text/plain; charset={charset}"), "mbox")) == 1


# Turns, mem0


def turn_line(**fields: Any) -> Json:
    """A line of an export of this service."""
    return {
        "schema": "turn.v1",
        "scope": {"user_id": "u"},
        "conversation_id": "c",
        "role": "user",
        "content": "hi",
    } | fields


def test_lines_of_turns_are_kept_as_they_are() -> None:
    kept = {"turn_id": "t", "mode": "work", "speaker": "Ana", "metadata": {"n": 1}, "private": True}
    [turn] = turns((turn_line(**kept),), "jsonl")
    assert {name: turn[name] for name in kept} == kept


def test_a_memory_of_mem0_is_a_turn() -> None:
    memory = {"id": "m1", "memory": "Ana sails.", "created_at": "2026-03-05T00:01:00-08:00", "run_id": "r1"}
    [turn] = turns({"results": [memory]}, "mem0")
    kept = {name: turn[name] for name in ("turn_id", "conversation_id", "content", "occurred_at")}
    assert kept == {
        "turn_id": "m1",
        "conversation_id": "r1",
        "content": "Ana sails.",
        "occurred_at": "2026-03-05T08:01:00Z",
    }


# All


@pytest.mark.parametrize("end", ["-part-2", "-part-3"])
def test_a_long_message_is_several_turns(end: str) -> None:
    parts = turns(claude(text="word " * (MAX_CONTENT_CHARS // 2)), "claude")
    assert f"m1{end}" in [part["turn_id"] for part in parts]
    assert sum(part["content"].count("word") for part in parts) == MAX_CONTENT_CHARS // 2


def test_names_of_a_part_are_those_that_modes_are_chosen_by() -> None:
    [entry] = read(claude(), "claude")
    assert isinstance(entry, Message)
    assert entry.belongs_to["conversation"] == "Boats"


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b""])
def test_the_mark_of_utf8_is_no_part_of_an_export(start: bytes) -> None:
    assert len(turns(start + json.dumps(claude()).encode(), "claude")) == 1


def test_what_breaks_off_keeps_what_was_whole() -> None:
    whole = json.dumps(claude()).encode()
    entries = read(whole[:-1] + b", " + whole[1:40], "claude")
    assert [type(entry) for entry in entries] == [Message, Problem]


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        zone_of("Atlantis/Capital")


@pytest.mark.parametrize(
    "export_format",
    ["chatgpt", "claude", "claude-code", "codex", "slack", "whatsapp", "telegram", "mbox", "jsonl", "mem0"],
)
@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff" * 900, b"<!doctype html><p>Sign in.</p>", b"[]", b'{"a": ' * 5000, b"[" * 100_000]
)
def test_another_file_is_refused(export_format: str, content: bytes) -> None:
    with pytest.raises(NotOfFormat, match="this is no"):
        read(content, export_format)


def claude_code(text: str) -> bytes:
    """A session of Claude Code with one message."""
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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_takes_time_that_grows_with_its_length(name: str) -> None:
    export_format, content = HOSTILE[name]
    began = time.process_time()
    read(content, export_format)
    assert time.process_time() - began < 10


def test_a_line_that_is_too_long_costs_the_next_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1000)
    entries = read((turn_line(), turn_line(content="x" * 5000), turn_line()), "jsonl")
    assert [entry.place for entry in entries if not isinstance(entry, MoreProblems)] == [1, 2, 3]
    assert isinstance(entries[1], Problem)


def test_a_conversation_that_is_too_large_costs_the_next_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_VALUE_CHARS", 5000)
    entries = read(claude(text="x" * 9000) + claude(), "claude")
    assert [type(entry) for entry in entries] == [Problem, Message]


def test_problems_beyond_those_that_are_named_are_counted_together() -> None:
    entries = read((turn_line(), *({"schema": "other"} for _ in range(1150)), turn_line()), "jsonl")
    assert [entry.count for entry in entries if isinstance(entry, MoreProblems)] == [1000, 50]


def test_a_zip_that_unpacks_to_too_much_ends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_UNPACKED_BYTES", 2000)
    monkeypatch.setattr(sources, "PARSED_BYTES", 100)
    entries = read(zipped(**{"conversations.json": claude() + claude(text="x" * 5000)}), "claude")
    assert [type(entry) for entry in entries] == [Message, Problem]


# Hostile files


def a_turn(key: str, **fields: Any) -> Json:
    """A line of `turn.v1`."""
    return {"schema": "turn.v1", "turn_id": key, "conversation_id": "c", "role": "user", "content": "x"} | fields


def remembered(key: str, **fields: Any) -> Json:
    """A memory of mem0."""
    return {"id": key, "memory": "tea", "created_at": "9999-12-31T23:59:59.999999Z"} | fields


@pytest.mark.parametrize(
    ("export", "export_format"),
    [
        ((a_turn("t1", content="half \ud83d"), a_turn("t2")), "jsonl"),
        ((a_turn("t1", metadata={"\ud83d": 1}), a_turn("t2")), "jsonl"),
        ([remembered("m1"), remembered("m2")], "mem0"),
    ],
)
def test_a_hostile_message_costs_the_others_nothing(export: Any, export_format: Any) -> None:
    assert len([reading.entry_line(entry) for entry in read(export, export_format)]) == 2


def test_a_line_that_is_no_utf_8_is_a_problem() -> None:
    line = json.dumps(a_turn("t1", content="A")).encode().replace(b"A", b"\xed\xa0\x80")
    [problem, _] = read(line + b"\n" + json.dumps(a_turn("t2")).encode(), "jsonl")
    assert isinstance(problem, Problem)


def test_a_number_of_thousands_of_digits_is_told() -> None:
    export = json.dumps([remembered("m1", metadata={"n": 7777})]).replace("7777", "7" * 5000)
    with pytest.raises(NotOfFormat):
        read(export.encode(), "mem0")


def test_the_place_of_a_problem_is_short() -> None:
    [_, problem] = read([remembered("m1"), remembered("m" * 10**6, memory=7)], "mem0")
    assert len(reading.entry_line(problem)) < 1000


def test_a_damaged_member_is_a_problem() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_LZMA) as target:
        target.writestr("conversations.json", "[" + " " * 10000 + "]")
    with pytest.raises(NotOfFormat):
        read(made.getvalue().replace(b"\x5d\x00", b"\xff\xff", 1), "chatgpt")
