from streams.tables.json_table import ParsedValueCache


def test_equal_bytes_are_parsed_once() -> None:
    parsed: list[bytes] = []

    def parse(value: bytes) -> str:
        parsed.append(value)
        return value.decode()

    values = ParsedValueCache(parse, max_values=8)
    assert [values[value] for value in (b"a", b"b", bytes(bytearray(b"a")), b"b")] == ["a", "b", "a", "b"]
    assert parsed == [b"a", b"b"]


def test_cache_is_limited() -> None:
    values = ParsedValueCache(bytes.decode, max_values=2)
    for number in range(7):
        assert values[b"%d" % number] == str(number)
        assert len(values) <= 2
    assert b"6" in values


def test_long_value_is_parsed_and_not_cached() -> None:
    values = ParsedValueCache(bytes.decode, max_values=2, max_value_bytes=3)
    assert values[b"123"] == "123"
    assert values[b"1234"] == "1234"
    assert list(values) == [b"123"]
