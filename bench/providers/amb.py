"""modestream for the Agent Memory Benchmark (vectorize-io/agent-memory-benchmark).

Copy it to `src/memory_bench/memory/modestream.py`, add `"modestream": ModestreamMemoryProvider` to `REGISTRY` of
`memory/__init__.py`, and install `modestream-client[http]`. `MODESTREAM_URL` (default: `modestream up` on this machine)
and `MODESTREAM_KEY` name the gateway. No language model is called, except by the mode `agent`, which needs one of the
deployment.
"""

import json
import os
import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from memory_bench.memory.base import MemoryProvider
from memory_bench.models import Document
from modestream_client import SyncHttpMemoryClient

AT_ONCE = 16
"""Documents that are sent at the same time, each in its order: turns are ranked by their neighbours, too."""

MAX_CHARS, MAX_HITS = 30_000, 100

MESSAGE = re.compile(r"\n\n(?=(?:\[[^\]\n]*\] )?(?:User|Assistant): )")
"""Start of a message in a chat that a dataset gives as one text."""

ASSISTANT = re.compile(r"(\[[^\]\n]*\] )?Assistant: ")

Json = dict[str, Any]


class ModestreamMemoryProvider(MemoryProvider):
    """Stores each message of a document as a turn; finds turns, best first, with the ids of their documents."""

    name = "modestream"
    description = "Conversation memory over a Kafka log: words and vectors of each turn, no language model."
    kind = "local"
    concurrency = AT_ONCE

    def initialize(self) -> None:
        """Connect."""
        url, key = os.environ.get("MODESTREAM_URL", "http://127.0.0.1:8080"), os.environ.get("MODESTREAM_KEY")
        self._memory = SyncHttpMemoryClient(url, key=key, timeout=60).open()
        # What is forgotten stays forgotten: a document of another run has other turns.
        self._run = uuid.uuid4().hex

    def cleanup(self) -> None:
        """Disconnect."""
        self._memory.close()

    def prepare(
        self,
        store_dir: Path,
        unit_ids: set[str] | None = None,
        reset: bool = True,  # noqa: FBT002 - of the interface
    ) -> None:
        """Forget what earlier runs of the same dataset and split have left."""
        self._prefix = "-".join(["amb", *store_dir.parts[-4:]])
        if reset:
            for unit in unit_ids or ("all",):
                self._memory.forget(user=True, user_id=self._user(unit))

    def ingest(self, documents: list[Document]) -> None:
        """Store the messages of documents, and wait for their vectors."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._ingest, documents))
        for user in {self._user(document.user_id) for document in documents}:
            while any(mode.pending for mode in self._memory.health(user_id=user).modes.values()):
                time.sleep(0.5)

    def retrieve(
        self,
        query: str,
        k: int = 10,
        user_id: str | None = None,
        query_timestamp: str | None = None,  # noqa: ARG002 - of the interface
        filters: Json | None = None,  # noqa: ARG002 - of the interface
    ) -> tuple[list[Document], Json | None]:
        """Return turns as documents; the raw response has the number of each in its document."""
        answer = self._memory.retrieve(query, users=self._user(user_id), top_k=min(k, MAX_HITS))
        found = [
            Document(
                id=hit.metadata["document"],
                content=f"[{hit.occurred_at}] {hit.speaker or hit.role}: {hit.text}",
                user_id=user_id,
                timestamp=hit.occurred_at,
            )
            for hit in answer.hits
        ]
        return found, {"numbers": [hit.metadata["number"] for hit in answer.hits], "strategy": answer.strategy}

    def direct_answer(
        self,
        query: str,
        user_id: str | None = None,
        query_timestamp: str | None = None,  # noqa: ARG002 - of the interface
    ) -> tuple[str, str, Json | None]:
        """Return the answer of the deployment's language model, and the texts that it was shown."""
        user = self._user(user_id)
        answered = self._memory.answer(query, user_id=user, store=False)
        shown = [self._memory.get_memory(each, user_id=user).text for each in answered.references]
        return answered.text, "\n".join(shown), {"references": list(answered.references)}

    def _user(self, user_id: str | None) -> str:
        return f"{self._prefix}-{user_id or 'all'}"

    def _ingest(self, document: Document) -> None:
        for number, said in enumerate(messages_of(document)):
            text = str(said.get("content") or said.get("text") or "")
            if said.get("blip_caption"):
                text += f" [image: {said['blip_caption']}]"
            for start in range(0, len(text), MAX_CHARS):
                self._memory.remember(
                    text[start : start + MAX_CHARS],
                    role="assistant" if said.get("role") == "assistant" else "user",
                    speaker=said.get("speaker") or said.get("name"),
                    conversation_id=document.id,
                    occurred_at=document.timestamp,
                    turn_id=f"{self._run}-{document.id}-{number}-{start}",
                    metadata={"document": document.id, "number": number},
                    user_id=self._user(document.user_id),
                )


def messages_of(document: Document) -> list[Json]:
    """Return the messages of a document: its own, those of a JSON list, or the parts of its text."""
    if document.messages:
        return list(document.messages)
    try:
        parsed = json.loads(document.content)
    except ValueError:
        parsed = None
    if isinstance(parsed, list) and all(isinstance(said, dict) for said in parsed):
        return parsed
    return [
        {"content": text, "role": "assistant" if ASSISTANT.match(text) else "user"}
        for text in MESSAGE.split(document.content)
    ]
