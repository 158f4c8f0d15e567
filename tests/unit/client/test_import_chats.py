"""Readers of exports of chats: Slack, WhatsApp, Telegram, mailboxes."""

from datetime import datetime

import pytest

from tests.builders.exports import mail, post, said, sent, slack, telegram, turns, whatsapp


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
