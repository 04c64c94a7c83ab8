"""Builds the allow-list of system calls, a seccomp filter in classic BPF (seccomp(2), x86_64 and aarch64).

Three lists: a Python program (no exec), a binary (exec of `EXEC_DESCRIPTOR` alone), and a compiler, which is trusted
and may fork and exec. All refuse sockets but a connected pair, ptrace, memfd, shared memory segments, namespaces,
mounts, keys, io_uring, BPF and all that is not named. A program that may start processes (``spared``) may also fork and
signal, except the processes with the spared numbers, which serve it, and whole groups.

One filter covers a whole program. It begins with a set of call numbers, 32 to a word, which the kernel loads faster
than a search tree.

A refused call returns EPERM, or what lets the C library or Python go on without it (`ANSWERS`): ``clone3`` ENOSYS, so
that ``clone`` is called, whose flags can be checked. A call of another machine (32 bit) kills the process; x32's
numbers are beyond the set.

In a slot with its own user id the kernel decides on attributes of files (modes, times, owners), as all its files are
its programs'. Elsewhere they never change: Landlock has no rule for them, and /proc/self/exe leads past any mount to
the interpreter. Setting a mode or a given time then reports success, as many programs copy files with them; setting an
owner or the current time returns EPERM, upon which `Path.touch` creates the file.
"""

from __future__ import annotations

import ctypes
import struct

from . import kernel
from .syscalls import AUDIT_ARCH, NUMBERS

EXEC_DESCRIPTOR = 511
"""A binary's descriptor until it is executed, above every RLIMIT_NOFILE, so that no program can replace it."""

PLAIN = tuple(
    """
    read write readv writev pread64 pwrite64 preadv pwritev open openat close stat fstat lstat
    newfstatat statx lseek mprotect munmap mremap madvise brk msync mlock munlock rt_sigaction
    rt_sigprocmask rt_sigreturn sigaltstack rt_sigpending rt_sigtimedwait rt_sigsuspend access faccessat faccessat2
    pipe pipe2 select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait
    eventfd eventfd2 dup dup2 dup3 nanosleep clock_nanosleep getitimer setitimer alarm pause getpid gettid getppid
    getuid geteuid getgid getegid getgroups getresuid getresgid getpgrp getpgid getsid exit exit_group flock fsync
    fdatasync ftruncate truncate getdents64 getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir creat
    unlink unlinkat readlink readlinkat symlink symlinkat link linkat umask gettimeofday time clock_gettime
    clock_getres times getrusage sysinfo uname getrlimit setrlimit statfs fstatfs futex set_robust_list
    rseq set_tid_address arch_prctl sched_yield sched_getaffinity sched_getparam sched_getscheduler
    sched_get_priority_max sched_get_priority_min getcpu getpriority getrandom
    sendfile fadvise64 restart_syscall timerfd_create timerfd_settime
    timerfd_gettime sendto recvfrom shutdown getsockname getpeername
    """.split()
)
"""Socket calls reach only a pair of connected streams (`_rules`), which takes no address."""
FORKING = ("wait4", "waitid", "fork", "vfork")
COMPILER = (*PLAIN, *FORKING, *"clone execve execveat setpgid prlimit64 tgkill".split())
MODES = ("chmod", "fchmod", "fchmodat")
ATTRIBUTES = (*MODES, *"utimensat utime utimes futimesat chown fchown lchown fchownat".split())

# struct seccomp_data: nr at 0, arch at 4, arguments as 64-bit words from 16; the low half suffices here.
NR, ARCH, ARGUMENT = 0, 4, 16
LOAD, LOAD_VALUE, EQUAL, AT_LEAST, ANY_BIT, JUMP, RETURN = 0x20, 0x00, 0x15, 0x35, 0x45, 0x05, 0x06
AND, SHIFT, SHIFT_BY_X, TO_X = 0x54, 0x74, 0x7C, 0x07
ALLOW, KILL, DONE, EPERM, ENOSYS, ENODATA, EOPNOTSUPP = (
    0x7FFF0000,
    0x80000000,
    *(0x00050000 + number for number in (0, 1, 38, 61, 95)),
)
ANSWERS = {
    ENOSYS: ("clone3", "fchmodat2"),
    EOPNOTSUPP: ("fallocate",),  # posix_fallocate(3) writes then
    ENODATA: ("getxattr", "lgetxattr", "fgetxattr"),
    DONE: ("listxattr", "llistxattr", "flistxattr"),  # none
}
WORD = 32

INSTRUCTION = struct.Struct("HBBI")
"""``struct sock_filter``."""
Code = list[tuple[int, int, int, int]]
"""Instructions as (code, jump if true, jump if false, operand)."""

NAMESPACE_FLAGS = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWCGROUP
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
)
IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""
OWNER_COMMANDS = (8, 10, 15)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX, by which the kernel signals other processes."""
S_IFMT, S_IFIFO = 0o170000, 0o010000
MAP_SHARED, MAP_ANONYMOUS, MAP_HUGETLB, PAGE = 0x01, 0x20, 0x40000, 4096
CLOSE_RANGE_UNSHARE = 2
AF_UNIX, SOCK_STREAM, SOCK_TYPE_MASK, ALL = 1, 1, 0xF, 0xFFFFFFFF
SOCKET_OPTIONS = (3, 4, 38, 39)
"""SO_TYPE, SO_ERROR, SO_PROTOCOL, SO_DOMAIN."""
PRCTLS = (3, 15, 16, 0x53564D41)
"""PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_SET_VMA (the allocator names its maps)."""
OWN = 0x7EADBEEF
"""A placeholder for a process number, which `start.c` fills in."""


def _one_of(argument: int, values: tuple[int, ...], if_listed: int, otherwise: int) -> Code:
    """Return ``if_listed`` if the argument's low half is among the values, else ``otherwise``."""
    tests = [(EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [(LOAD, 0, 0, ARGUMENT + 8 * argument), *tests, (RETURN, 0, 0, otherwise), (RETURN, 0, 0, if_listed)]


def _all(*conditions: tuple[int, int, int]) -> Code:
    """Allow if for each (argument, mask, value) the masked argument is the value, else refuse."""
    code: Code = []
    for index, (argument, mask, value) in enumerate(conditions):
        refuse = 3 * (len(conditions) - index - 1) + 1
        code += [(LOAD, 0, 0, ARGUMENT + 8 * argument), (AND, 0, 0, mask), (EQUAL, 0, refuse, value)]
    return [*code, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, EPERM)]


def _mapping() -> Code:
    """Allow mappings, except of huge pages, and of more than a page of shared memory without a file.

    Neither counts as resident memory: shared pages stay when a program unmaps all but one.
    """
    shared, length = MAP_SHARED | MAP_ANONYMOUS, ARGUMENT + 8
    return [
        (LOAD, 0, 0, ARGUMENT + 24),
        (ANY_BIT, 7, 0, MAP_HUGETLB),
        (AND, 0, 0, shared),
        (EQUAL, 0, 4, shared),
        (LOAD, 0, 0, length + 4),
        (EQUAL, 0, 3, 0),
        (LOAD, 0, 0, length),
        (AT_LEAST, 1, 0, PAGE + 1),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, EPERM),
    ]


def _none_of(numbers: tuple[int, ...]) -> Code:
    """Allow unless the first argument is one of these process numbers, or a group (negative)."""
    load, *tests = _one_of(0, numbers, EPERM, ALLOW)
    return [load, (AT_LEAST, len(numbers) + 1, 0, 1 << 31), *tests]


def _any_bit(argument: int, bits: int, if_set: Code, otherwise: Code) -> Code:
    """Continue with ``if_set`` if the argument's low half has any of the bits, else with ``otherwise``."""
    return [(LOAD, 0, 0, ARGUMENT + 8 * argument), (ANY_BIT, 0, len(if_set), bits), *if_set, *otherwise]


def _rules(kind: str, pid: int, spared: tuple[int, ...], owns: bool) -> dict[str, Code]:
    """Return rules by name, for calls that are neither always nor never allowed.

    ``pid`` is the program, the only process that it may signal without ``spared`` ones.
    """
    rules: dict[str, Code] = {name: [(RETURN, 0, 0, answer)] for answer, names in ANSWERS.items() for name in names}
    if not owns:
        rules |= {name: [(RETURN, 0, 0, DONE)] for name in MODES}
        rules["utimensat"] = _one_of(2, (0,), EPERM, DONE)  # no times: now
    rules |= {
        "mmap": _mapping(),
        "close_range": _all((2, CLOSE_RANGE_UNSHARE, 0)),
        "fcntl": _one_of(1, OWNER_COMMANDS, EPERM, ALLOW),
        "ioctl": _one_of(1, IOCTLS, ALLOW, EPERM),
        "prctl": _one_of(0, PRCTLS, ALLOW, EPERM),
        "sched_setaffinity": _one_of(0, (0, pid), ALLOW, EPERM),
        "socketpair": _all((0, ALL, AF_UNIX), (1, SOCK_TYPE_MASK, SOCK_STREAM)),  # datagrams can go to an address
        "getsockopt": _one_of(2, SOCKET_OPTIONS, ALLOW, EPERM),
        "mknod": _all((1, S_IFMT, S_IFIFO)),
        "mknodat": _all((2, S_IFMT, S_IFIFO)),
        "setpriority": _all((0, ALL, 0), (1, ALL, 0)),  # its own
    }
    if kind == "compiler":
        return rules
    thread = kernel.CLONE_THREAD | kernel.CLONE_FILES  # what a thread has open is what its process has open
    threads = _all((0, thread | NAMESPACE_FLAGS, thread))
    processes = _all((0, kernel.CLONE_THREAD | NAMESPACE_FLAGS | kernel.CLONE_PARENT, 0))
    rules["clone"] = _any_bit(0, kernel.CLONE_THREAD, threads, processes) if spared else threads
    if spared:
        rules |= dict.fromkeys(("prlimit64", "kill", "tgkill", "tkill", "sched_setaffinity"), _none_of(spared))
    else:
        rules["prlimit64"] = rules["kill"] = _one_of(0, (0, pid), ALLOW, EPERM)
        rules["tgkill"] = rules["tkill"] = _one_of(0, (pid,), ALLOW, EPERM)
    if kind == "binary":
        rules["execveat"] = _all((0, ALL, EXEC_DESCRIPTOR), (4, ALL, kernel.AT_EMPTY_PATH))
    return rules


def _in_set(numbers: set[int]) -> Code:
    """Allow the call if its loaded number is in the set, else continue."""
    words = [0] * (max(numbers) // WORD + 1)
    for number in numbers:
        words[number // WORD] |= 1 << number % WORD
    code: Code = [(AND, 0, 0, WORD - 1), (TO_X, 0, 0, 0), (LOAD, 0, 0, NR), (SHIFT, 0, 0, WORD.bit_length() - 1)]
    for index, word in enumerate(words):
        distance = 3 * (len(words) - index - 1) + 1
        code += [(EQUAL, 0, 2, index), (LOAD_VALUE, 0, 0, word), (JUMP, 0, 0, distance)]
    return [*code, (LOAD_VALUE, 0, 0, 0), (SHIFT_BY_X, 0, 0, 0), (ANY_BIT, 0, 1, 1), (RETURN, 0, 0, ALLOW)]


def build(
    kind: str,
    pid: int,
    machine: str = kernel.MACHINE,
    spared: tuple[int, ...] = (),
    owns: bool = True,
) -> Code:
    """Return the filter for a ``python`` program, a ``binary`` or a ``compiler`` with process number ``pid``.

    ``spared``: the program may start processes, and signal all but these. ``owns``: its user's files are its own.
    """
    numbers = NUMBERS[machine]
    names = COMPILER if kind == "compiler" else (*PLAIN, *FORKING) if spared else PLAIN
    if owns:
        names += ATTRIBUTES
    code: Code = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, AUDIT_ARCH[machine]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NR)]
    code += [*_in_set({numbers[name] for name in names if name in numbers}), (LOAD, 0, 0, NR)]
    for name, rule in _rules(kind, pid, spared, owns).items():
        if name in numbers:
            code += [(EQUAL, 0, len(rule), numbers[name]), *rule]
    return [*code, (RETURN, 0, 0, EPERM)]


class Template:
    """A filter built once, which takes a millisecond; `start.c` writes each program's process number to ``marks``.

    ``address`` is for seccomp(2) (``struct sock_fprog``).
    """

    def __init__(self, kind: str, owns: bool, spared: tuple[int, ...] = ()) -> None:
        code = build(kind, OWN, spared=spared, owns=owns)
        self._code = ctypes.create_string_buffer(b"".join(INSTRUCTION.pack(*words) for words in code))
        start = ctypes.addressof(self._code)
        self._head = ctypes.create_string_buffer(struct.pack("HP", len(code), start))
        self.address = ctypes.addressof(self._head)
        operands = range(start + 4, start + INSTRUCTION.size * len(code), INSTRUCTION.size)
        self.marks = [address for address, (*_, operand) in zip(operands, code, strict=True) if operand == OWN]
