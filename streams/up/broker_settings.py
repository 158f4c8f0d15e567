"""The broker's settings: a single node, broker and controller, on loopback, small and quick to start."""

import base64
import uuid
from collections.abc import Mapping
from pathlib import Path

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Size limit of a record. Table values are large: a conversation's window or a category with its anchors is one."""

LOG4J_CONFIG = """<Configuration status="warn">
  <Appenders>
    <Console name="out" target="SYSTEM_OUT"><PatternLayout pattern="%d{ISO8601} %p %c{1}: %m%n"/></Console>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.kafka.common.config.AbstractConfig" level="warn"/>
    <Logger name="org.apache.kafka.common.config.LogConfig" level="warn"/>
    <Root level="info"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>
"""
"""Log4j's settings: everything to standard output, which the supervisor writes to a file of bounded size. The dump of
some 350 settings at each start is suppressed."""

SINGLE_NODE_SETTINGS: Mapping[str, object] = {
    "auto.create.topics.enable": "false",
    "num.partitions": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 4,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "group.coordinator.threads": 1,
    "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    "metadata.max.idle.interval.ms": 5000,
}
"""Cluster defaults cut to one node: 50 partitions of offsets make the first group slow, the cleaner's 128 MiB would be
most of the heap, and an idle controller writes to disk twice a second."""

FAST_START_SETTINGS: Mapping[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 500,
}
"""No wait for further consumers. After a `kill -9` the controller refuses the broker until the session of the old
registration has expired: with the default of 9 s it listens after 12 s, with 2 s after 4 s."""

LIMIT_SETTINGS: Mapping[str, object] = {
    "message.max.bytes": MAX_MESSAGE_BYTES,
    "replica.fetch.max.bytes": MAX_MESSAGE_BYTES,
    "log.retention.ms": -1,
}
"""No retention limit unless a topic sets one: the log is the source of truth."""


def server_properties(port: int, controller_port: int, log_dir: Path) -> str:
    """Return the text of `server.properties`. Both ports are on loopback; `log_dir` holds the records."""
    node: Mapping[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": escape_property(str(log_dir)),
    }
    settings = {**node, **SINGLE_NODE_SETTINGS, **FAST_START_SETTINGS, **LIMIT_SETTINGS}
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def escape_property(value: str) -> str:
    """Escape a value for a Java properties file: double backslashes, non-ASCII characters as UTF-16 escapes."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes)


def new_cluster_id() -> str:
    """Return a Kafka UUID: 128 random bits in 22 characters of base64url."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
