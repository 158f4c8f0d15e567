"""A broker that authorizes principals, and rules for it as the options of Kafka's own tool.

Enters: the lines of `kafka-acls`. Leaves: the same rules in the broker. Its listener with TLS and SASL has the
principals; the one without a login is a super-user.
"""

import argparse
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest

from tests.worlds.live.secured_listener import SecuredBroker

OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Delete": 6, "Describe": 8, "DescribeConfigs": 10, "AlterConfigs": 11}
"""Numbers of operations in Kafka's protocol."""

TOPIC, GROUP, ALLOW = 2, 3, 3
LITERAL, PREFIXED = 3, 4


class GuardedBroker(SecuredBroker):
    """A broker where nothing is allowed that no rule allows."""

    def _configure(self) -> Path:
        settings = super()._configure()
        with settings.open("a", encoding="utf-8") as lines:
            lines.write(
                "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
                "super.users=User:ANONYMOUS\n"
            )
        return settings


def documented_rules(script: str, prefix: str) -> Iterator[list[str]]:
    """Run a shell script with a function in place of `kafka-acls`; yield the arguments of each call."""
    printing = 'kafka-acls() { printf "%q " "$@"; echo; }\n'
    script = script.replace("P=memory.", f"P={shlex.quote(prefix)}")
    command = ("bash", "-euc", printing + script)
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"BROKER": "127.0.0.1"})
    return map(shlex.split, done.stdout.splitlines())


async def add_rule(admin: AIOKafkaAdminClient, arguments: list[str]) -> None:
    """Carry out one call of `kafka-acls --add`."""
    parser = argparse.ArgumentParser()
    for name in ("--bootstrap-server", "--command-config", "--topic", "--group", "--allow-principal"):
        parser.add_argument(name)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--resource-pattern-type", choices=("literal", "prefixed"), default="literal")
    parser.add_argument("--operation", action="append", choices=OPERATIONS)
    rule = parser.parse_args(arguments)
    kind, name = (TOPIC, rule.topic) if rule.topic else (GROUP, rule.group)
    pattern = PREFIXED if rule.resource_pattern_type == "prefixed" else LITERAL
    for operation in rule.operation:
        created = CreateAclsRequest(kind, name, pattern, rule.allow_principal, "*", OPERATIONS[operation], ALLOW)
        answer = await admin._send_request(created)
        assert [code for code, _ in answer.creation_responses] == [0], answer
