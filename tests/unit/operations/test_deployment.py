from operations.deployment import CurrentBoundaries
from schemas.messages.boundaries import Boundary
from schemas.messages.records import Record


def record(key: str, value: bytes | None) -> Record:
    return Record("memory.boundaries", 0, 0, 0, key.encode(), value)


def boundary(name: str, memories: int) -> bytes:
    return Boundary(boundary=name, scope={"user_id": name}, memories=memories).model_dump_json(by_alias=True).encode()


def test_last_value_of_a_user_counts_and_tombstones_remove() -> None:
    current = CurrentBoundaries()
    for arrived in (record("a", boundary("a", 1)), record("b", boundary("b", 1)), record("a", boundary("a", 2))):
        current.take(arrived)
    current.take(record("b", None))
    current.take(record("c", b"no JSON"))
    assert {key: summary.memories for key, summary in current.by_key.items()} == {b"a": 2}
