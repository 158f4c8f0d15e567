"""Reads the settings of a command, and reports errors: one line for each, without values.

Values are left out, as they may be keys.
"""

import os
import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

from dotenv import dotenv_values
from modestream_client.kafka.security import KafkaSecurity, connection_options
from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsError

SettingsT = TypeVar("SettingsT", bound=BaseSettings)

PREFIX = "MODESTREAM_"

OF_GATEWAYS = ("GATEWAY_", "OPENAI_UPSTREAM")
"""Begin the names of settings that only the gateway has."""

OF_CALLERS = frozenset({"URL", "KEY", "OUTBOX"})
"""Names that callers read: a gateway's address, a key, and where turns wait."""

SERVICE_LINK = re.compile(r".+_SERVICE_(HOST|PORT(_\w+)?)|.+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")
"""Variables that Kubernetes sets for a Service whose name begins with `modestream-`, except `…_PORT`."""

SERVICE_LINK_VALUE = re.compile(r"(tcp|udp|sctp)://")
"""Begins the value of Kubernetes' `…_PORT`."""


def read_settings(kind: type[SettingsT]) -> SettingsT:
    """Read the settings of the environment and of `.env`. Ends the process with the reasons if one is invalid."""
    try:
        return kind()
    except ValidationError as problem:
        invalid = [(".".join(map(str, each["loc"])), each["msg"]) for each in problem.errors(include_input=False)]
    except SettingsError as problem:
        # The line of a setting that is no JSON; the library names its field in quotation marks.
        field = re.search(r'field "(\w+)"', str(problem))
        reason = f"it is not JSON: {problem.__cause__}"
        sys.exit(_invalid(field[1], reason) if field else f"settings: {problem}: {reason}")
    sys.exit("\n".join(_invalid(name, message.removeprefix("Value error, ")) for name, message in invalid))


def check_security(security: KafkaSecurity | None) -> None:
    """End the process with the reason if the password or a file of `KAFKA_SECURITY` can't be used."""
    try:
        connection_options(security)
    except (OSError, ValueError) as problem:
        sys.exit(_invalid("kafka_security", str(problem)))


def unknown_names(
    *kinds: type[BaseSettings], variables: Mapping[str, str | None] | None = None, passed_over: tuple[str, ...] = ()
) -> list[str]:
    """Return a sentence for each name that none of these settings has, with the most similar name.

    `variables` are those of the environment and of `.env` by default. Names that begin with one of `passed_over` are
    another process's to judge.
    """
    if variables is None:
        variables = {**dotenv_values(".env"), **os.environ}
    names = {name.upper() for kind in kinds for name in kind.model_fields}
    given = {
        name.upper().removeprefix(PREFIX): value for name, value in variables.items() if name.upper().startswith(PREFIX)
    }
    return [
        _unknown(name, names)
        for name in sorted(given.keys() - names - OF_CALLERS)
        if not name.startswith(passed_over) and not _is_service_link(name, given[name] or "")
    ]


def _is_service_link(name: str, value: str) -> bool:
    is_port = name.endswith("PORT") and SERVICE_LINK_VALUE.match(value) is not None
    return is_port or SERVICE_LINK.fullmatch(PREFIX + name) is not None


def _unknown(name: str, names: set[str]) -> str:
    similar = get_close_matches(name, names, 1)
    hint = f"; {PREFIX}{similar[0]} is similar" if similar else ""
    return f"{PREFIX}{name} is ignored: there is no such setting{hint}"


def _invalid(name: str, message: str) -> str:
    """Return the line of a setting; a message about several settings begins with the name of one."""
    field, dot, rest = name.partition(".")
    return f"setting {PREFIX}{field.upper()}{dot}{rest}: {message}" if name else f"setting {PREFIX}{message}"
