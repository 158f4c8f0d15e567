"""A number that tells the data directories of a group's workers apart."""

import socket
from pathlib import Path
from zlib import crc32

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def directory_identity(directory: Path) -> int:
    """Return a number that all processes with this directory have in common: those that its locks keep apart.

    A machine is told by its boot: directories of two machines may have the same inode.
    """
    machine = BOOT_ID.read_text(encoding="ascii") if BOOT_ID.exists() else socket.gethostname()
    found = directory.stat()
    return crc32(f"{machine}/{found.st_dev}/{found.st_ino}".encode())
