"""Confine this process to what reading a file needs: limit memory and processor time, deny network and file writes.

A library's defect must not become the worker's. Limits hold on every system; on Linux the kernel also refuses sockets,
programs, further processes, signals to others and changes of files, whatever code runs. Elsewhere only Python code is
refused them.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
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
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446
LANDLOCK_CHANGES = 0x1FF2
"""All rights of its first version but to run, read and list: write, remove, make."""

LANDLOCK_VERSION, LANDLOCK_TRUNCATE, TRUNCATE_SINCE = 1, 1 << 14, 3
"""The flag that asks for its version; the right to shorten a file, since its third."""

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
        handled = struct.pack("<Q", LANDLOCK_CHANGES | (LANDLOCK_TRUNCATE if shortens else 0))
        # Without a rule, none of what it handles is allowed anywhere. A kernel without Landlock refuses the call.
        if (ruleset := libc.syscall(LANDLOCK_CREATE_RULESET, handled, len(handled), 0)) >= 0:
            libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0)
            os.close(ruleset)
        if platform.machine() in REFUSED_SYSCALLS:
            program = _syscall_filter(*REFUSED_SYSCALLS[platform.machine()])
            code = ctypes.create_string_buffer(program)
            described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
            libc.prctl(PR_SET_SECCOMP, 2, described, 0, 0)


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
