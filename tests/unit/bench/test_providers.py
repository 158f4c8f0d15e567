"""Messages of a benchmark's documents."""

import pytest

from tests.fakes import benchmarks

benchmarks.install()

from bench.providers.amb import messages_of  # noqa: E402 - imports the stand-in

ASKED = "[March-15-2024 | Turn 1] User: The door sticks.\n\nIt is old."
ANSWERED = "[March-15-2024 | Turn 2] Assistant: Oil it."
CHAT = benchmarks.Document("d", f"{ASKED}\n\n{ANSWERED}")


@pytest.mark.parametrize(
    ("document", "contents"),
    [
        (benchmarks.Document("d", "", messages=[{"role": "user", "content": "Hi."}]), ["Hi."]),
        (benchmarks.Document("d", '[{"speaker": "Ana", "content": "Hi."}]'), ["Hi."]),
        (CHAT, [ASKED, ANSWERED]),
        (benchmarks.Document("d", "A plain text."), ["A plain text."]),
        (benchmarks.Document("d", "[1, 2]"), ["[1, 2]"]),
    ],
)
def test_a_document_has_messages(document: benchmarks.Document, contents: list[str]) -> None:
    assert [said["content"] for said in messages_of(document)] == contents


def test_a_chat_as_one_text_has_roles() -> None:
    assert [said["role"] for said in messages_of(CHAT)] == ["user", "assistant"]
