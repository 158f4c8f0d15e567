"""Exports of chats between people: Slack, WhatsApp, Telegram.

Bots have the role `assistant`; notices of the service are not messages.
"""

import html
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from typing import IO, Any, NamedTuple

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
    text_of,
)
from modestream_client.imports.sources import Archive, Source, TooLarge, json_values, lines, members_of

CHANNEL_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")

SLACK_SPOKEN = frozenset({None, "bot_message", "file_share", "thread_broadcast", "me_message", "file_comment"})
"""Slack's subtypes of messages by people and bots; all others are notices."""

MARKUP = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def read_slack(source: IO[bytes]) -> Iterator[Found]:
    """Read the zip of an export: a folder for each channel, with a file for each day."""
    archive = Archive(source)
    # Some tools pack a folder around it.
    roots = {name.rpartition("/")[0] for name in archive.names if name.rpartition("/")[2] == "users.json"}
    root = f"{min(roots, key=len)}/" if roots and "" not in roots else ""
    names, channels = _slack_names(archive, root)
    days = re.compile(re.escape(root) + r"([^/]+)/([^/]+)\.json")
    for file in sorted(filter(days.fullmatch, archive.names)):
        folder = file.removeprefix(root).partition("/")[0]
        about = _Channel(channels.get(folder, folder), folder, names)
        index = 0
        try:
            with archive.opened(file) as member:
                for _, told in json_values(member, {("item",)}):
                    index += 1
                    place = f"{file.removeprefix(root)}, message {index}"
                    try:
                        yield _slack_message(place, object_of(told, "the message"), about)
                    except BROKEN as problem:
                        yield broken(place, problem)
        except BrokenMessage as problem:
            yield Problem(file, "invalid_json", str(problem))


class _Channel(NamedTuple):
    id: str
    name: str
    names: Mapping[str, str]
    """Names of users, by id."""


def _slack_names(archive: Archive, root: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of users by id, and the ids of channels by folder."""
    users: dict[str, str] = {}
    channels: dict[str, str] = {}
    for file in ("users.json", *CHANNEL_LISTS):
        if root + file not in archive.names:
            continue
        try:
            with archive.opened(root + file) as member:
                for _, listed in json_values(member, {("item",)}):
                    if not isinstance(listed, dict) or not isinstance(key := listed.get("id"), str):
                        continue
                    if file == "users.json":
                        users[key] = _slack_name(listed.get("profile"), listed) or key
                    else:
                        # Folders of direct messages have the id as their name.
                        channels[str(listed.get("name") or key)] = key
        except BrokenMessage:
            # Without them names are missing, but not messages.
            continue
    return users, channels


def _slack_name(*profiles: object) -> str | None:
    wanted = ("real_name", "display_name", "name")
    named = (profile.get(name) for profile in profiles if isinstance(profile, dict) for name in wanted)
    return next((name for name in named if isinstance(name, str) and name.strip()), None)


def _slack_message(place: str, told: Json, channel: _Channel) -> Found:
    if told.get("type", "message") != "message" or told.get("subtype") not in SLACK_SPOKEN:
        return NOT_A_MESSAGE
    ts = text_of(told.get("ts"), "the time")
    user = told.get("user")
    is_bot = told.get("subtype") == "bot_message" or (
        told.get("bot_id") is not None and told.get("bot_profile") is not None
    )
    if is_bot:
        speaker = told.get("username") or _slack_name(told.get("bot_profile")) or user or told.get("bot_id")
    else:
        speaker = channel.names.get(text_of(user, "the user")) or _slack_name(told.get("user_profile")) or user
    words = [_unmarked(text_of(told.get("text", ""), "the text"), channel.names)]
    if not words[0]:
        # Programs write their text there, and leave the text field empty.
        attached = (each.get("text") or each.get("fallback") for each in dicts(told.get("attachments")))
        words = [_unmarked(text, channel.names) for text in attached if isinstance(text, str)]
    resources = [
        resource(
            str(file.get("url_private") or file.get("permalink") or f"slack:{file.get('id')}/{file.get('name')}"),
            file.get("mimetype"),
            name=file.get("name"),
        )
        for file in dicts(told.get("files"))
    ]
    thread = told.get("thread_ts")
    return message(
        place,
        turn_id=ts,
        conversation_id=channel.id,
        role="assistant" if is_bot else "user",
        speaker=str(speaker) if speaker else None,
        content="\n\n".join(words),
        occurred_at=seconds(ts),
        resources=resources,
        belongs_to={"project": channel.name, "conversation": channel.name},
        metadata={"source": "slack", "channel": channel.name, "thread": thread if thread != ts else None},
    )


def _unmarked(text: str, names: Mapping[str, str]) -> str:
    """Return a text with names in place of its marks."""

    def named(mark: re.Match[str]) -> str:
        target, label = mark[1], mark[2]
        if target[:1] == "@":
            return f"@{label or names.get(target[1:], target[1:])}"
        if target[:1] == "#":
            return f"#{label or target[1:]}"
        if target[:1] == "!":
            return label or f"@{target[1:].partition('^')[0]}"
        target = target.removeprefix("mailto:")
        return f"{label} ({target})" if label and label not in target else target

    return html.unescape(MARKUP.sub(named, text))


DATE = r"(?P<a>\d{1,4})[./-] ?(?P<b>\d{1,2})[./-] ?(?P<c>\d{1,4})\.?"
TIME = r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
HALF = r"(?:[\s\u202f\u00a0]?(?P<half>[AaPp])\.?[\s\u202f\u00a0]?[Mm]\.?)?"
BETWEEN = r",?[\s\u202f\u00a0]+(?:(?:klo|um|at|kl\.|o|a las|à)[\s\u202f\u00a0]+)?"
HEAD = re.compile(
    rf"[\u200e\u200f\ufeff]*(?:\[{DATE}{BETWEEN}{TIME}{HALF}\] ?|".replace("?P<", "?P<i_")
    + rf"{DATE}{BETWEEN}{TIME}{HALF}[\s\u202f]+[-\u2013\u2014][\s\u202f]+)"
)
"""Start of a message in an export of WhatsApp: in brackets on an iPhone, before a dash on Android."""

ATTACHED = re.compile(r"<[^<>:]{1,40}: (?P<name>[^<>]{1,255})>")
FILE_ATTACHED = re.compile(r"\u200e?(?P<name>\S[^\n]*\.\w{2,5}) \([^()\n]+\)\Z")
LEFT_OUT = re.compile(r"<[^<>\n]{1,40}>\Z")
EDITED = re.compile(r"<[^<>]{0,40}(?:edited|bearbeitet|editad|modifi)[^<>]{0,40}>\Z")
MAX_LEFT_OUT_WORDS = 3
"""Maximum words of an iPhone's notice of an omitted picture, in any language; other notices have more."""

MAX_WHATSAPP_CHARS = 1_000_000
"""Maximum characters of one message: a file with more is not a chat."""


class _Head(NamedTuple):
    """The time and the speaker of a message, as the file has them; `speaker` is None for a notice."""

    number: int
    numbers: tuple[int, int, int]
    time: tuple[int, int, int]
    stamp: str
    speaker: str | None


def read_whatsapp(source: IO[bytes], zone: tzinfo) -> Iterator[Found]:
    """Read a text export, or its zip. The file must be seekable: it is read twice, first for the order of its dates."""
    is_wanted = re.compile(r"(.*/)?(_chat|[^/]*WhatsApp[^/]*|[^/]*)\.txt", re.IGNORECASE).fullmatch
    order: tuple[int, int, int] | None = None
    for member in members_of(source, is_wanted, "text of a chat"):
        order = _date_order(member)
        break
    if order is None:
        return
    source.seek(0)
    seen: dict[str, int] = {}
    chat = ""
    for member in members_of(source, is_wanted, "text of a chat"):
        for head, text in _whatsapp_messages(member):
            if head.speaker is None:
                yield NOT_A_MESSAGE
                continue
            chat = chat or "whatsapp-" + digest(head.stamp, head.speaker, text)
            try:
                yield _whatsapp_message(chat, head, text, order, zone, seen)
            except BROKEN as problem:
                yield broken(head.number, problem)
        break


def _heads(source: Source) -> Iterator[tuple[_Head | None, str]]:
    """Yield the lines, each with its head if it begins a message."""
    for number, line in lines(source):
        text = "" if isinstance(line, TooLarge) else line.decode("utf-8", "replace")
        found = HEAD.match(text)
        if found is None:
            yield None, text
            continue
        parts = {name.removeprefix("i_"): value for name, value in found.groupdict().items() if value is not None}
        hour = int(parts["hour"])
        if "half" in parts:
            hour = hour % 12 + 12 * (parts["half"] in "pP")
        time = (hour, int(parts["minute"]), int(parts.get("second", 0)))
        numbers = (int(parts["a"]), int(parts["b"]), int(parts["c"]))
        rest = text[found.end() :]
        speaker, colon, said = rest.partition(": ")
        if not colon and rest.endswith(":"):
            speaker, colon, said = rest[:-1], ":", ""
        is_notice = not colon or len(speaker) > 200
        stamp = "-".join(map(str, (*numbers, *time)))
        who = None if is_notice else speaker.strip("\u200e\u200f\u202a\u202c\u2068\u2069~ \u202f")
        yield _Head(number, numbers, time, stamp, who), said


def _date_order(source: Source) -> tuple[int, int, int] | None:
    """Return the positions of year, month and day in the dates; None if no line begins a message."""
    orders = {"day": (2, 1, 0), "month": (2, 0, 1)}
    last: dict[str, tuple[int, ...]] = {}
    backwards = dict.fromkeys(orders, 0)
    is_any = False
    for head, _ in _heads(source):
        if head is None:
            continue
        is_any = True
        if head.numbers[0] > 31:
            return (0, 1, 2)
        if max(head.numbers[:2]) > 12:
            return orders["day"] if head.numbers[0] > 12 else orders["month"]
        for name, order in orders.items():
            moment = tuple(head.numbers[place] for place in order)
            backwards[name] += moment < last.get(name, moment)
            last[name] = moment
    if not is_any:
        return None
    return orders["month"] if backwards["month"] < backwards["day"] else orders["day"]


def _whatsapp_messages(source: Source) -> Iterator[tuple[_Head, str]]:
    """Yield each message with all of its lines, and notices."""
    head: _Head | None = None
    text: list[str] = []
    size = 0
    for begun, line in _heads(source):
        if begun is None:
            size += len(line)
            if size <= MAX_WHATSAPP_CHARS:
                text.append(line)
            continue
        if head is not None:
            yield head, "\n".join(text).rstrip()
        head, text, size = begun, [line], len(line)
    if head is not None:
        yield head, "\n".join(text).rstrip()


def _whatsapp_message(
    chat: str, head: _Head, text: str, order: tuple[int, int, int], zone: tzinfo, seen: dict[str, int]
) -> Found:
    year, month, day = (head.numbers[place] for place in order)
    text = EDITED.sub("", text).rstrip("\u200e \n")
    # A later export may show the order of dates better: the id uses the dates as written.
    key = digest(chat, head.stamp, head.speaker, text)
    seen[key] = seen.get(key, 0) + 1
    turn_id = f"{key}-{seen[key]}" if seen[key] > 1 else key
    resources: list[Json] = []
    first, _, rest = text.partition("\n")
    if (file := FILE_ATTACHED.match(first)) is not None:
        resources, text = [resource(f"whatsapp:{chat}/{file['name']}")], rest
    elif ATTACHED.search(text):
        resources = [resource(f"whatsapp:{chat}/{file['name']}") for file in ATTACHED.finditer(text)]
        text = ATTACHED.sub("", text)
    elif LEFT_OUT.match(text.strip("\u200e ")):
        resources, text = [resource(f"whatsapp:{chat}/{turn_id}")], text.strip("\u200e <>")
    elif text.startswith("\u200e"):
        text = text.strip("\u200e ")
        if len(text.split()) > MAX_LEFT_OUT_WORDS:
            return NOT_A_MESSAGE
        resources = [resource(f"whatsapp:{chat}/{turn_id}")]
    try:
        at = datetime(year + 2000 if year < 100 else year, month, day, *head.time, tzinfo=zone)
    except ValueError:
        raise BrokenMessage(f"the date {head.stamp} is not a valid one") from None
    return message(
        head.number,
        turn_id=turn_id,
        conversation_id=chat,
        role="user",
        speaker=head.speaker,
        content=text.strip("\u200e "),
        occurred_at=at,
        resources=resources,
        metadata={"source": "whatsapp"},
    )


def read_telegram(source: IO[bytes], zone: tzinfo) -> Iterator[Found]:
    """Read `result.json`, of one chat or of all; or a zip of it."""
    roots = ((), ("chats", "list", "item"), ("left_chats", "list", "item"))
    fields = {(*root, name) for root in roots for name in ("id", "name", "type")}
    listed = {(*root, "messages", "item") for root in roots}
    own = ("personal_information", "user_id")
    chat: Json = {}
    me: object = None
    for member in members_of(source, re.compile(r"(.*/)?result\.json").fullmatch, "result.json"):
        try:
            for path, value in json_values(member, {*fields, *listed, own}):
                if path == own:
                    me = value
                elif path in fields:
                    # `name` is the first field of a chat, and may be missing; `type` and `id` follow.
                    chat = {path[-1]: value} if path[-1] == "name" or path[-1] in chat else {**chat, path[-1]: value}
                elif "id" not in chat:
                    yield Problem("messages", "invalid_value", "the chat has no id before its messages")
                else:
                    place = f"{chat['id']}/{value.get('id') if isinstance(value, dict) else '?'}"
                    try:
                        yield _telegram_message(place, object_of(value, "the message"), chat, me, zone)
                    except BROKEN as problem:
                        yield broken(place, problem)
        except BrokenMessage as problem:
            yield Problem(str(chat.get("id", "result.json")), "invalid_json", str(problem))


TELEGRAM_FILES = ("photo", "file", "thumbnail")
TELEGRAM_ASIDES = ("contact_information", "location_information", "poll", "venue_information")


def _telegram_message(place: str, told: Json, chat: Json, me: object, zone: tzinfo) -> Found:
    if told.get("type") == "service":
        return NOT_A_MESSAGE
    key = told.get("id")
    if not isinstance(key, int):
        raise BrokenMessage("the message has no number")
    at = seconds(told["date_unixtime"]) if "date_unixtime" in told else moment_of(told.get("date"), zone)
    speaker, sender = told.get("from"), told.get("from_id")
    if speaker is not None and not isinstance(speaker, str):
        raise BrokenMessage("the sender is not a name")
    is_bot = chat.get("type") == "bot_chat" and (
        sender != f"user{me}" if me is not None else speaker == chat.get("name")
    )
    resources = []
    for kind in TELEGRAM_FILES[:2]:
        if isinstance(name := told.get(kind), str):
            media_type = told.get("mime_type") if kind == "file" else "image/jpeg"
            shown_name = told.get("file_name") if name.startswith("(") else name
            resources.append(resource(f"telegram:{place}/{shown_name or kind}", media_type))
    resources += [
        resource(f"telegram:{place}/{kind}", "application/json", text=str(told[kind]))
        for kind in TELEGRAM_ASIDES
        if kind in told
    ]
    return message(
        place,
        turn_id=str(key),
        conversation_id=str(chat["id"]),
        role="assistant" if is_bot else "user",
        speaker=speaker or (str(sender) if sender else None),
        content=_telegram_text(told.get("text", "")) or str(told.get("sticker_emoji") or ""),
        occurred_at=at,
        resources=resources,
        belongs_to={"project": chat.get("name"), "conversation": chat.get("name")},
        metadata={"source": "telegram", "chat": chat.get("name"), "forwarded_from": told.get("forwarded_from")},
    )


def _telegram_text(text: Any) -> str:
    """Return the text of a string, or of a list of strings and formatted parts."""
    if isinstance(text, str):
        return text
    if not isinstance(text, list):
        raise BrokenMessage("not a text")
    return "".join(
        part if isinstance(part, str) else text_of(object_of(part, "a part").get("text"), "a part") for part in text
    )
