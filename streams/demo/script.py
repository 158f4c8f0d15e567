"""The demo's script against a running service: declare a mode, publish a conversation, run queries, assemble a prompt.

The turns have fixed ids, so that a second run finds all of them known and changes nothing.
"""

import json
from pathlib import Path

from streams.client import MemoryClient, MemoryClientError
from streams.demo.publishing import PrintLine, correct_modes, declare_modes, publish_turns, wait_until_embedded
from streams.demo.questions import assemble_prompt, run_query

DEMO_USER_ID = "demo"
"""The user of the demo's memories; no other user's are touched."""

CONVERSATION = Path(__file__).with_name("conversation.json")
"""`modes` with the fields of `MemoryClient.declare_mode`; `turns` with those of `remember`, in the order of publishing;
`corrections`, turns with another mode than they get by default; `questions` with the fields of `retrieve` and the turn
that each is expected to find; `context` with the fields of `assemble`."""

CALL_TIMEOUT_S = 30.0
"""Limit of one call: the first one may reach a worker that is still starting."""


async def run_demo(bootstrap: str, print_line: PrintLine, topic_prefix: str = "memory.") -> int:
    """Run the demo against the service on this broker.

    Return 0, or 1 if a query found nothing or the service did not answer.
    """
    script = json.loads(CONVERSATION.read_text(encoding="utf-8"))
    try:
        async with MemoryClient(
            bootstrap, user_id=DEMO_USER_ID, topic_prefix=topic_prefix, timeout=CALL_TIMEOUT_S
        ) as memory:
            await declare_modes(memory, script["modes"], print_line)
            accepted = await publish_turns(memory, script["turns"], print_line)
            await correct_modes(memory, script["corrections"], accepted, print_line)
            await wait_until_embedded(memory, print_line)
            answers = [
                await run_query(memory, n, question, print_line) for n, question in enumerate(script["questions"], 1)
            ]
            await assemble_prompt(memory, script["context"], print_line)
    except MemoryClientError as failure:
        print_line(f"The demo can't go on: {failure}")
        return 1
    return 0 if all(answer.hits for answer in answers) else 1
