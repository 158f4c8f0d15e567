"""TLS and SASL settings in Faust's form."""

import faust
from faust.types.auth import CredentialsT
from modestream_client.kafka.security import KafkaSecurity


def kafka_credentials(security: KafkaSecurity | None) -> CredentialsT | None:
    """Return Faust's credentials; None for a connection without TLS and SASL.

    Raises ValueError or OSError for an unusable password or file.
    """
    if security is None or security.protocol == "PLAINTEXT":
        return None
    context = security.create_ssl_context()
    if not security.uses_sasl:
        return faust.SSLCredentials(context)
    return faust.SASLCredentials(
        username=security.username, password=security.read_password(), ssl_context=context, mechanism=security.mechanism
    )
