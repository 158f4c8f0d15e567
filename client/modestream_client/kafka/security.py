"""TLS and SASL towards Kafka: a program's settings, and aiokafka's arguments."""

import os
import ssl
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, SecretStr, model_validator

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class KafkaSecurity(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """TLS and SASL of a connection to Kafka, the same names as `MODESTREAM_KAFKA_SECURITY`.

    `SSL` and `SASL_SSL` encrypt, and verify the broker by `ca_file`, a file of certificates, or by the system's.
    `SASL_…` log in with `mechanism`, `username` and either `password` or `password_env`, the name of the environment
    variable that holds it. `cert_file` and `key_file` are the client's own certificate, for brokers that ask for one.

    >>> KafkaSecurity(protocol="SASL_SSL", username="gateway", password_env="KAFKA_PASSWORD").mechanism
    'SCRAM-SHA-512'
    """

    protocol: SecurityProtocol = "SASL_SSL"
    mechanism: SaslMechanism = "SCRAM-SHA-512"
    username: str | None = None
    password: SecretStr | None = None
    password_env: str | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.uses_sasl and (self.username is None or (self.password is None) == (self.password_env is None)):
            raise ValueError(f"{self.protocol} needs username, and either password or password_env")
        if not self.uses_tls and (self.ca_file or self.cert_file or self.key_file):
            raise ValueError(f"{self.protocol} has no TLS: leave out ca_file, cert_file, key_file")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs cert_file")
        return self

    @property
    def uses_sasl(self) -> bool:
        """True if the connection logs in."""
        return self.protocol.startswith("SASL")

    @property
    def uses_tls(self) -> bool:
        """True if the connection is encrypted."""
        return self.protocol.endswith("SSL")

    def read_password(self) -> str:
        """Return the password. Raises ValueError if its environment variable is not set."""
        if self.password is not None:
            return self.password.get_secret_value()
        value = os.environ.get(self.password_env or "")
        if not value:
            raise ValueError(f"the environment variable {self.password_env} holds no password for Kafka")
        return value

    def create_ssl_context(self) -> ssl.SSLContext | None:
        """Create the TLS context, None without TLS. Raises OSError or ssl.SSLError for unusable files."""
        if not self.uses_tls:
            return None
        for file in (self.ca_file, self.cert_file, self.key_file):
            # The library's own error names no file.
            if file is not None:
                file.open("rb").close()
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.cert_file:
            context.load_cert_chain(self.cert_file, self.key_file)
        return context


def connection_options(security: KafkaSecurity | None) -> dict[str, Any]:
    """Return the arguments of aiokafka's clients; empty for a connection without security.

    Raises ValueError, OSError or ssl.SSLError for an unusable password or file.
    """
    if security is None or security.protocol == "PLAINTEXT":
        return {}
    options: dict[str, Any] = {"security_protocol": security.protocol, "ssl_context": security.create_ssl_context()}
    if not security.uses_sasl:
        return options
    login = {"sasl_plain_username": security.username, "sasl_plain_password": security.read_password()}
    return {**options, "sasl_mechanism": security.mechanism, **login}
