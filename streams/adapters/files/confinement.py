"""Confine this process to what reading a file needs: limit memory and processor time, deny network and other files.

A library's defect must not become the worker's. Limits hold on every system; on Linux the kernel also refuses sockets,
programs, further processes, signals to others and changes of files, whatever code runs, and since 5.13 (Landlock)
reading any file that does not belong to Python or its libraries. Elsewhere only Python code is refused the former.
"""

import ctypes
import errno
import itertools
import os
import platform
import resource
import signal
import stat
import struct
import sys
from contextlib import suppress
from typing import Any

REFUSED_SYSCALLS = {
    # clone; socket, connect, bind, io_uring_setup, execve, execveat, ptrace, process_vm_readv, process_vm_writev,
    # kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal, setpriority,
    # fchmod, fchmodat, fchmodat2, fchown, fchownat, truncate, ftruncate; of x86 also fork, vfork, chmod, chown, lchown
    "x86_64": (0xC000003E, 56, (41, 42, 49, 425, 59, 322, 101, 310, 311, 62, 200, 234, 129, 297, 424, 141,
                                91, 268, 452, 93, 260, 76, 77, 57, 58, 90, 92, 94)),
    "aarch64": (0xC00000B7, 220, (198, 203, 200, 425, 221, 281, 117, 270, 271, 129, 130, 131, 138, 240, 424, 140,
                                  52, 53, 452, 55, 54, 45, 46)),
}  # fmt: skip
"""By machine: its name in the kernel's audit, the call that begins threads and processes, and those refused."""

CLONE3, CLONE_THREAD = 435, 0x10000

REFUSED_EVENTS = (
    "socket.",
    "subprocess.",
    "os.exec",
    "os.posix_spawn",
    "os.system",
    "os.remove",
    "os.rename",
    "os.fork",
)
"""Beginnings of audit events of Python code that are refused."""

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_RIGHTS, LANDLOCK_READ_FILE, LANDLOCK_LIST = 0x1FFF, 1 << 2, 1 << 3
"""All rights of its first version: run, write, read, list, remove, make; the two that are allowed for some paths."""

LANDLOCK_VERSION, LANDLOCK_TRUNCATE, TRUNCATE_SINCE = 1, 1 << 14, 3
"""The flag that asks for its version; the right to shorten a file, since its third."""

LANDLOCK_PATH_BENEATH = 1
"""The kind of rule that allows rights for a file, or for a folder and all below it."""

SYSTEM_PATHS = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/nix/store", "/etc/ld.so.cache",
    "/etc/localtime", "/etc/mime.types", "/dev/null", "/dev/urandom", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
    "/sys/devices/system",
)  # fmt: skip
"""Libraries, fonts and time zones, and the machine's processors and memory, by which libraries choose their code."""

SPARE_CPU_S = 5.0
"""Processor time beyond the limit of a file, by when the worker has ended the process."""


def confine(memory_bytes: int) -> None:
    """Confine this process, for good."""
    os.nice(10)
    for limit, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        # Some systems have no limit of this kind.
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    sys.addaudithook(_refuse)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # A file that is opened to be read can be emptied by that: an older kernel does not refuse it.
        shortens = libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION) >= TRUNCATE_SINCE
        handled = struct.pack("<Q", LANDLOCK_RIGHTS | (LANDLOCK_TRUNCATE if shortens else 0))
        # None of what it handles is allowed without a rule. A kernel without Landlock refuses the call.
        if (ruleset := libc.syscall(LANDLOCK_CREATE_RULESET, handled, len(handled), 0)) >= 0:
            for path in readable_paths():
                _allow_reading(libc, ruleset, path)
            libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0)
            os.close(ruleset)
        if platform.machine() in REFUSED_SYSCALLS:
            program = _syscall_filter(*REFUSED_SYSCALLS[platform.machine()])
            code = ctypes.create_string_buffer(program)
            described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
            libc.prctl(PR_SET_SECCOMP, 2, described, 0, 0)


def readable_paths() -> set[str]:
    """Return what Python, its libraries and this program are made of; some may be missing.

    A folder of the search path is allowed only for the packages that are loaded from it: it may be anyone's home.
    """
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    libraries = {f"{prefix}/{folder}" for prefix in prefixes for folder in ("lib", "lib64")}
    libraries.update(entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages")))
    libraries.update(filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")))
    packages = [list(getattr(module, "__path__", ())) for name, module in sys.modules.items() if "." not in name]
    # Without its cache of compiled files Python would compile each library that it imports from now on.
    cache = [sys.pycache_prefix] if sys.pycache_prefix else []
    return {*SYSTEM_PATHS, *libraries, *cache, *itertools.chain(*packages), os.path.realpath(sys.executable)}


def _allow_reading(libc: Any, ruleset: int, path: str) -> None:
    # A rule is about the opened folder: `/proc/self` is this process's, and no other one's.
    with suppress(OSError):
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        rights = LANDLOCK_READ_FILE | (LANDLOCK_LIST if is_folder else 0)
        libc.syscall(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_BENEATH, struct.pack("<Qi", rights, opened), 0)
        os.close(opened)


def limit_cpu(seconds: float) -> None:
    """Have the system end this process after this much more processor time: also when no worker is left to do so."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds + SPARE_CPU_S)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _refuse(event: str, _: Any) -> None:
    if event.startswith(REFUSED_EVENTS):
        raise PermissionError(f"a process that reads files may not do this: {event}")


def _syscall_filter(machine: int, clone: int, refused: tuple[int, ...]) -> bytes:
    """Return a BPF program: refused calls, and those of another machine's numbers, fail with EPERM.

    Threads may begin, processes not: of `clone3` a filter can't see which it is, and the C library does without it.
    """
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, fail, missing = 0x7FFF0000, 0x00050001, 0x00050000 | errno.ENOSYS
    count = len(refused)
    # Each is: what to do, how many steps to skip if it is so, if not, with which number.
    steps = [(load, 0, 0, 4), (equal, 0, count + 7, machine), (load, 0, 0, 0), (at_least, count + 5, 0, 0x40000000)]
    steps += [(equal, count + 4 - index, 0, number) for index, number in enumerate(refused)]
    steps += [(equal, 5, 0, CLONE3), (equal, 0, 2, clone), (load, 0, 0, 16), (any_bit, 0, 1, CLONE_THREAD)]
    steps += [(give, 0, 0, allow), (give, 0, 0, fail), (give, 0, 0, missing)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
