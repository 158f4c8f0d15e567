"""modestream for OmniMemEval (MemTensor/OmniMemEval).

Copy it to `scripts/client_factory/modestream_client.py`, add
`"modestream": ("modestream_client", "ModestreamClient")` to `_LIB_CLIENT_REGISTRY` of `registry.py`, and
`"modestream": generic_text_search` to `_search_dispatch` of `locomo/locomo_search.py`. `MODESTREAM_URL` (default:
`modestream up` on this machine) and `MODESTREAM_KEY` name the gateway. It speaks HTTP: nothing is installed, and no
language model is called.
"""

import time
import uuid
from typing import Any
from urllib.parse import quote

from client_factory.base_client import BaseApiClient, env_str, iter_batches

MAX_TURNS, MAX_CHARS, MAX_HITS = 100, 30_000, 100

Json = dict[str, Any]


class ModestreamClient(BaseApiClient):
    """Stores each message as a turn; finds turns, best first, one a line."""

    def __init__(self) -> None:
        """Connect at the first call."""
        key = env_str("MODESTREAM_KEY")
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        super().__init__(env_str("MODESTREAM_URL", "http://127.0.0.1:8080"), headers)

    def add(self, messages: list[Json], user_id: str, session_key: str | None = None, **_: Any) -> None:
        """Store messages with `role`, `content` and optionally `name` and `chat_time`; wait for their vectors."""
        conversation = session_key or uuid.uuid4().hex
        turns = [
            {
                # What is forgotten stays forgotten: messages that are added again are other turns.
                "turn_id": uuid.uuid4().hex,
                "conversation_id": conversation,
                "role": "assistant" if message.get("role") == "assistant" else "user",
                "speaker": message.get("name"),
                "content": _without_name(message)[start : start + MAX_CHARS],
                "occurred_at": message.get("chat_time"),
            }
            for message in messages
            for start in range(0, len(_without_name(message)), MAX_CHARS)
        ]
        for batch in iter_batches(turns, MAX_TURNS):
            results = self._asked("post", user_id, "/turns", json={"turns": batch})["results"]
            if refused := [result["error"]["message"] for result in results if "error" in result]:
                raise ValueError(f"{len(refused)} messages were refused: {refused[0]}")
        while any(mode["pending"] for mode in self._asked("get", user_id, "/health")["modes"].values()):
            time.sleep(0.5)

    def search(self, query: str, user_id: str, top_k: int) -> str:
        """Return the turns about a query with their times, one a line."""
        asked = {"query": query, "top_k": min(top_k, MAX_HITS)}
        hits = self._asked("post", user_id, "/memories/search", json=asked)["hits"]
        return "\n".join(
            f"[{hit['occurred_at']}] {hit['speaker'] or hit['role']}: {' '.join(hit['text'].split())}" for hit in hits
        )

    def delete(self, user_id: str) -> None:
        """Forget all that a user has."""
        self._asked("delete", user_id, "", params={"confirm": user_id})

    def _asked(self, method: str, user_id: str, path: str, **request: Any) -> Json:
        def send() -> Json:
            response = getattr(self, f"_{method}")(f"/v1/users/{quote(user_id, safe='')}{path}", **request)
            response.raise_for_status()
            answer: Json = response.json()
            return answer

        return self._retry(send)


def _without_name(message: Json) -> str:
    """Return a message's text; LoCoMo's have the name of the speaker before it, which a turn has as a field."""
    return str(message.get("content") or "").removeprefix(f"{message.get('name')}: ")
