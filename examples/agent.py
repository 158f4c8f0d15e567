"""A chat loop that remembers, with any model that speaks OpenAI's protocol: `python agent.py USER CONVERSATION`."""

import os
import sys
from typing import Any

from modestream_client import SyncHttpMemoryClient
from openai import OpenAI

if len(sys.argv) != 3:
    sys.exit("usage: python agent.py USER CONVERSATION")
user, conversation = sys.argv[1:]
model = OpenAI()  # reads OPENAI_API_KEY and OPENAI_BASE_URL
url, key = os.environ.get("MODESTREAM_URL", "http://127.0.0.1:8080"), os.environ.get("MODESTREAM_KEY")

with SyncHttpMemoryClient(url, key=key, user_id=user) as memory:
    while question := input("> "):  # an empty line ends it
        context = memory.assemble(question, conversation_id=conversation)
        # What is remembered, the turns of this conversation, and the question.
        messages: Any = context.messages
        stream = model.chat.completions.create(
            model=os.environ.get("MODEL", "gpt-4o-mini"), messages=messages, stream=True
        )
        answer = ""
        for chunk in stream:
            piece = (chunk.choices[0].delta.content or "") if chunk.choices else ""
            answer += piece
            print(piece, end="", flush=True)
        print()
        memory.remember(question, conversation_id=conversation)
        if answer:
            memory.remember(answer, role="assistant", conversation_id=conversation)
