"""The manifests for Strimzi have the topics that a worker wants and the rules of `docs/production.md`.

`python -m tests.unit.deploy.test_strimzi` writes them.
"""

import re
from typing import Any

import yaml  # type: ignore[import-untyped]

from streams.bootstrap.worker_topics import TopicSettings
from streams.settings import Settings
from streams.topics import LogRetention, changelog, topics_with_prefix
from tests.builders import manifests

FOLDER = manifests.KUBERNETES / "components/strimzi"
DOCS = manifests.KUBERNETES.parents[1] / "docs"
CLUSTER = "kafka"
LABELS = {"strimzi.io/cluster": CLUSTER}
NOTES = {
    "topics.yaml": "# Topics and changelogs as a worker with the base's settings wants them. Generated.\n",
    "users.yaml": "# The three principals of docs/production.md, by mutual TLS. Generated.\n",
}
DNS_NAME = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
"""Names that Kubernetes takes."""


def base_settings() -> Settings:
    named: dict[str, Any] = {name.removeprefix("MODESTREAM_").lower(): of for name, of in manifests.config().items()}
    return Settings(_env_file=None, **named)


def documented_tables() -> list[str]:
    """Return the names of the tables; a test compares this page with the tables of a worker."""
    tables = (DOCS / "topics.md").read_text().partition("## Tables")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE)


def topic_manifests() -> list[dict[str, Any]]:
    settings = base_settings()
    changelogs = sorted(changelog(settings, table) for table in documented_tables())
    topics = topics_with_prefix(settings.topic_prefix)
    wanted = TopicSettings(topics, changelogs, settings, LogRetention.of(settings)).wanted()
    return [
        {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaTopic",
            "metadata": {"name": name, "labels": LABELS},
            "spec": {"partitions": settings.partitions, "replicas": settings.replication_factor, "config": config},
        }
        for name, config in sorted(wanted.items())
    ]


def user_manifests() -> list[dict[str, Any]]:
    inputs = sorted(topics_with_prefix("memory.").inputs())

    def rule(kind: str, name: str, pattern: str, *operations: str) -> dict[str, Any]:
        return {"resource": {"type": kind, "name": name, "patternType": pattern}, "operations": [*operations]}

    writes = [rule("topic", name, "literal", "Write") for name in inputs]
    users = {
        "modestream-worker": [
            rule("topic", "memory.", "prefix", "Read", "Write", "Create", "Delete", "DescribeConfigs", "AlterConfigs"),
            rule("group", "memory.", "prefix", "Read"),
        ],
        "modestream-gateway": [rule("topic", "memory.", "prefix", "Read"), *writes],
        "modestream-program": [
            *writes,
            *(rule("topic", f"memory.{name}", "literal", "Read") for name in ("replies", "service")),
        ],
    }
    return [
        {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaUser",
            "metadata": {"name": name, "labels": LABELS},
            "spec": {"authentication": {"type": "tls"}, "authorization": {"type": "simple", "acls": acls}},
        }
        for name, acls in users.items()
    ]


def text_of(name: str, documents: list[dict[str, Any]]) -> str:
    # Dumped one by one, so that no document refers to another's labels by an anchor.
    dumped = [yaml.dump(document, sort_keys=False, width=120) for document in documents]
    return NOTES[name] + "---\n".join(dumped)


def test_topics_are_those_that_a_worker_wants() -> None:
    assert (FOLDER / "topics.yaml").read_text() == text_of("topics.yaml", topic_manifests())


def test_users_have_the_rules_of_each_principal() -> None:
    assert (FOLDER / "users.yaml").read_text() == text_of("users.yaml", user_manifests())


def test_rules_are_those_of_the_documentation() -> None:
    text = (DOCS / "production.md").read_text()
    documented = set(re.findall(r"--operation (\w+)", text))
    rules = [rule for user in user_manifests() for rule in user["spec"]["authorization"]["acls"]]
    assert {operation for rule in rules for operation in rule["operations"]} == documented


def test_every_name_is_one_that_kubernetes_takes() -> None:
    assert [topic for topic in topic_manifests() if not re.fullmatch(DNS_NAME, topic["metadata"]["name"])] == []


if __name__ == "__main__":
    (FOLDER / "topics.yaml").write_text(text_of("topics.yaml", topic_manifests()))
    (FOLDER / "users.yaml").write_text(text_of("users.yaml", user_manifests()))
