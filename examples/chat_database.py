"""Publishes the messages of a chat database as turns over Kafka; run again, it changes nothing.

`python chat_database.py chats.db`, with a table `messages(id, user, conversation, role, text, sent_at)`; `sent_at` is
ISO-8601 with a zone, such as `2026-11-29T10:00:00Z`.
"""

import os
import sqlite3
import sys

from modestream_client import SyncMemoryClient

database = sqlite3.connect(sys.argv[1])
broker = os.environ.get("MODESTREAM_BROKER", "kafka://127.0.0.1:9092")
rows = database.execute("SELECT id, user, conversation, role, text, sent_at FROM messages ORDER BY sent_at, id")

with SyncMemoryClient(broker) as memory:
    for number, user, conversation, role, text, sent_at in rows:
        # The database's own id makes a second run a repetition, and its time is when it was said.
        turn = memory.remember(
            text, user_id=user, conversation_id=conversation, role=role, turn_id=f"chat-{number}", occurred_at=sent_at
        )
        print(turn.memory_id, "known" if turn.duplicate else "new")
