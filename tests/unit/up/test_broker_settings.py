"""The broker's settings, as Kafka will read them."""

from pathlib import Path

from streams.up.broker_settings import escape_property, new_cluster_id, server_properties


def parsed(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_only_loopback_is_listened_on_and_records_are_kept_where_asked() -> None:
    settings = parsed(server_properties(9092, 40001, Path("/data/kafka")))
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:40001"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:40001"
    assert settings["log.dirs"] == "/data/kafka"


def test_nothing_is_created_by_a_typing_error_or_lost_by_age() -> None:
    settings = parsed(server_properties(1, 2, Path("/d")))
    assert settings["auto.create.topics.enable"] == "false"
    assert settings["log.retention.ms"] == "-1"


def test_a_path_that_java_would_read_otherwise_is_escaped() -> None:
    assert escape_property("/ä\\b 𝄞=x") == "/\\u00e4\\\\b \\ud834\\udd1e=x"


def test_cluster_ids_are_22_characters_and_differ() -> None:
    ids = {new_cluster_id() for _ in range(50)}
    assert len(ids) == 50
    assert {len(each) for each in ids} == {22}
