"""The broker's settings."""

from pathlib import Path

from streams.up.broker import escape_property, new_cluster_id, server_properties


def parsed(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_broker_listens_on_loopback_and_writes_to_the_given_directory() -> None:
    settings = parsed(server_properties(9092, 40001, Path("/data/kafka")))
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:40001"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:40001"
    assert settings["log.dirs"] == "/data/kafka"


def test_no_automatic_topics_and_no_retention_limit() -> None:
    settings = parsed(server_properties(1, 2, Path("/d")))
    assert settings["auto.create.topics.enable"] == "false"
    assert settings["log.retention.ms"] == "-1"


def test_path_is_escaped_for_java() -> None:
    assert escape_property("/ä\\b 𝄞=x") == "/\\u00e4\\\\b \\ud834\\udd1e=x"


def test_cluster_ids_have_22_characters_and_are_unique() -> None:
    ids = {new_cluster_id() for _ in range(50)}
    assert len(ids) == 50
    assert {len(each) for each in ids} == {22}
