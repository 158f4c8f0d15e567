"""A number that distinguishes the data directories of a group's workers."""

import socket
from pathlib import Path
from zlib import crc32

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def directory_identity(directory: Path) -> int:
    """Return a number common to all processes with this directory: those that its locks keep apart.

    A machine is identified by its boot: directories of two machines may have the same inode.
    """
    machine = BOOT_ID.read_text(encoding="ascii") if BOOT_ID.exists() else socket.gethostname()
    found = directory.stat()
    return crc32(f"{machine}/{found.st_dev}/{found.st_ino}".encode())
