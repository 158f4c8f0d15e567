"""Values that are parsed once, as long as there is room for them."""

from streams.tables.parsed_values import ParsedValueCache


def test_equal_bytes_are_parsed_once_and_other_ones_by_themselves() -> None:
    parsed: list[bytes] = []

    def parse(value: bytes) -> str:
        parsed.append(value)
        return value.decode()

    values = ParsedValueCache(parse, max_values=8)
    assert [values[value] for value in (b"a", b"b", bytes(bytearray(b"a")), b"b")] == ["a", "b", "a", "b"]
    assert parsed == [b"a", b"b"]


def test_no_more_are_kept_than_there_is_room_for() -> None:
    values = ParsedValueCache(bytes.decode, max_values=2)
    for number in range(7):
        assert values[b"%d" % number] == str(number)
        assert len(values) <= 2
    assert b"6" in values


def test_one_that_is_too_long_is_read_and_not_kept() -> None:
    values = ParsedValueCache(bytes.decode, max_values=2, max_bytes=3)
    assert (values[b"123"], values[b"1234"]) == ("123", "1234")
    assert list(values) == [b"123"]
