"""A second listener of a test's broker: TLS with a certificate of its own, and SASL with a few users.

Enters: a directory for its files. Leaves: a broker that has it, and what a client needs to come in.
"""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from streams.up.broker import KafkaBroker, escape_property
from streams.up.layout import free_port

USERNAME, PASSWORD = "gateway", "known to the broker"
USERNAMES = (USERNAME, "worker", "program")


@dataclass(frozen=True, slots=True)
class SecuredListener:
    """`bootstrap` is its address; `certificates` a file with its key and certificate, `ca_file` the latter alone."""

    port: int
    certificates: Path
    ca_file: Path

    @property
    def bootstrap(self) -> str:
        """`127.0.0.1:PORT`."""
        return f"127.0.0.1:{self.port}"

    def properties(self) -> str:
        """Return the lines for `server.properties`; the last line of a name counts."""
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        users = " ".join(f'user_{name}="{PASSWORD}"' for name in USERNAMES)
        settings = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
            "listener.name.secured.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": f"{login} {users};",
            "listener.name.secured.ssl.keystore.type": "PEM",
            "listener.name.secured.ssl.keystore.location": escape_property(str(self.certificates)),
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())


def create_listener(directory: Path) -> SecuredListener:
    """Choose a port, and write key and certificate for `127.0.0.1`."""
    directory.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate = signed.public_bytes(serialization.Encoding.PEM)
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    ca_file, certificates = directory / "ca.pem", directory / "broker.pem"
    ca_file.write_bytes(certificate)
    certificates.write_bytes(key.private_bytes(*pem) + certificate)
    return SecuredListener(free_port(), certificates, ca_file)


class SecuredBroker(KafkaBroker):
    """The production broker with a further listener."""

    listener: SecuredListener

    def _configure(self) -> Path:
        settings = super()._configure()
        lines = [
            f"{line},SECURED://{self.listener.bootstrap}" if line.startswith(("listeners=", "advertised.")) else line
            for line in settings.read_text().splitlines()
        ]
        settings.write_text("\n".join(lines) + "\n" + self.listener.properties())
        return settings
