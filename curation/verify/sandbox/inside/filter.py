"""The allow-list of system calls, as a seccomp filter in classic BPF (seccomp(2), x86_64 and aarch64).

Three lists: a Python program (no exec), a binary (exec of one descriptor, whose number is above what the program may
open, so that nothing else can ever stand there), and a compiler (may fork and exec: it is the toolchain that runs, not
the foreign code). All refuse sockets but a connected pair, ptrace, memfd, shared memory segments, namespaces, mounts,
keys, io_uring, BPF and whatever else is not named. A program that was promised processes (``spared``) may fork and
signal besides, but neither the processes with the spared numbers, which serve it, nor a whole group of others.

That of a Python program comes in two parts, since making one takes longer the more it says. ``forker`` is put around
the process that forks the tests, who inherit it: it allows besides what that process and the calls before the foreign
code need. ``forked`` is added in each test and takes just that away. The kernel does what the strictest filter says,
so that together they are ``python``.

A refused call returns EPERM; ``clone3`` returns ENOSYS, on which the C library falls back to ``clone``, whose flags
can be looked at. A call by another ABI (32 bit, x32) kills the process or is refused.
"""

from __future__ import annotations

import ctypes

from . import kernel
from .syscalls import AUDIT_ARCH, NUMBERS

EXEC_DESCRIPTOR = 511
"""Where a binary waits to be executed: above every RLIMIT_NOFILE, so that no program can put another file there."""

PLAIN = tuple(
    """
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat close stat fstat lstat
    newfstatat statx lseek mmap mprotect munmap mremap madvise brk msync mlock munlock rt_sigaction
    rt_sigprocmask rt_sigreturn sigaltstack rt_sigpending rt_sigtimedwait rt_sigsuspend access faccessat faccessat2
    pipe pipe2 select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
    eventfd eventfd2 dup dup2 dup3 nanosleep clock_nanosleep getitimer setitimer alarm pause getpid gettid getppid
    getuid geteuid getgid getegid getgroups getresuid getresgid getpgrp getpgid getsid exit exit_group flock fsync
    fdatasync ftruncate truncate getdents64 getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir creat
    unlink unlinkat readlink readlinkat symlink symlinkat link linkat umask gettimeofday time clock_gettime
    clock_getres times getrusage sysinfo uname getrlimit setrlimit statfs fstatfs futex set_robust_list
    get_robust_list rseq set_tid_address arch_prctl sched_yield sched_getaffinity sched_getparam sched_getscheduler
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval getcpu getpriority getrandom
    sendfile fadvise64 restart_syscall close_range timerfd_create timerfd_settime
    timerfd_gettime sendto recvfrom shutdown getsockname getpeername
    """.split()
)
"""All that socket calls can reach is a pair of connected streams (`_stream_pair`), which takes no address."""
COMPILER = (
    *PLAIN,
    *"clone fork vfork execve execveat wait4 waitid chmod fchmod fchmodat setpgid prlimit64 tgkill".split(),
)

FORKING = (
    *"recvmsg setsid landlock_restrict_self seccomp".split(),
    *"kill tkill tgkill prlimit64 sched_setaffinity".split(),  # whose process number is not known before the fork
)

# struct seccomp_data: nr at 0, arch at 4, arguments as 64-bit words from 16; the low half is enough for all we read.
NR, ARCH, ARGUMENT = 0, 4, 16
LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN, JUMP = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06, 0x05
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS = 1, 38
X32_BIT = 0x40000000

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
"""F_SETOWN, F_SETSIG, F_SETOWN_EX: with them the kernel sends signals to others in one's name."""
AF_UNIX, SOCK_STREAM, SOCK_TYPE_MASK = 1, 1, 0xF
SOCKET_OPTIONS = (3, 4, 38, 39)
"""SO_TYPE, SO_ERROR, SO_PROTOCOL, SO_DOMAIN."""
PRCTLS = (3, 15, 16, 0x53564D41)
"""PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_SET_VMA (the allocator names its maps)."""


def _give(action: int) -> Code:
    return [(RETURN, 0, 0, action)]


def _one_of(argument: int, values: tuple[int, ...], inside: int, outside: int) -> Code:
    """Return ``inside`` where the argument's low half is among the values, else ``outside``."""
    code: Code = [(LOAD, 0, 0, ARGUMENT + 8 * argument)]
    for place, value in enumerate(values):
        code.append((EQUAL, len(values) - place, 0, value))
    return [*code, *_give(outside), *_give(inside)]


def _thread_only() -> Code:
    refuse = _give(ERRNO | EPERM)
    mask = kernel.CLONE_THREAD | NAMESPACE_FLAGS
    return [(LOAD, 0, 0, ARGUMENT), (AND, 0, 0, mask), (EQUAL, 1, 0, kernel.CLONE_THREAD), *refuse, *_give(ALLOW)]


def _no_namespaces() -> Code:
    refuse = _give(ERRNO | EPERM)
    return [(LOAD, 0, 0, ARGUMENT), (ANY_BIT, 0, 1, NAMESPACE_FLAGS), *refuse, *_give(ALLOW)]


def _exec_of_descriptor() -> Code:
    refuse = _give(ERRNO | EPERM)
    return [
        *[(LOAD, 0, 0, ARGUMENT), (EQUAL, 0, 2, EXEC_DESCRIPTOR), (LOAD, 0, 0, ARGUMENT + 32)],
        *[(EQUAL, 1, 0, kernel.AT_EMPTY_PATH), *refuse, *_give(ALLOW)],
    ]


def _stream_pair() -> Code:
    """Allow a pair of AF_UNIX streams: unlike datagrams they cannot be sent to an address."""
    refuse = _give(ERRNO | EPERM)
    return [
        *[(LOAD, 0, 0, ARGUMENT), (EQUAL, 0, 3, AF_UNIX), (LOAD, 0, 0, ARGUMENT + 8), (AND, 0, 0, SOCK_TYPE_MASK)],
        *[(EQUAL, 1, 0, SOCK_STREAM), *refuse, *_give(ALLOW)],
    ]


def _none_of(numbers: tuple[int, ...]) -> Code:
    """Allow where the first argument is none of these numbers of processes, nor that of a group (negative)."""
    code: Code = [(LOAD, 0, 0, ARGUMENT), (AT_LEAST, len(numbers) + 1, 0, 1 << 31)]
    for place, number in enumerate(numbers):
        code.append((EQUAL, len(numbers) - place, 0, number))
    return [*code, *_give(ALLOW), *_give(ERRNO | EPERM)]


def _forks_below_itself() -> Code:
    refuse = _give(ERRNO | EPERM)
    return [(LOAD, 0, 0, ARGUMENT), (ANY_BIT, 0, 1, NAMESPACE_FLAGS | kernel.CLONE_PARENT), *refuse, *_give(ALLOW)]


def _rules(kind: str, pid: int, spared: tuple[int, ...]) -> dict[str, Code]:
    """Return name of a call → its action. ``pid`` is the program's own.

    That is the only one it may send signals to, but where it may start processes.
    """
    refuse = ERRNO | EPERM
    rules = {name: _give(ALLOW) for name in (COMPILER if kind == "compiler" else PLAIN)}
    rules["clone3"] = _give(ERRNO | ENOSYS)
    rules["fcntl"] = _one_of(1, OWNER_COMMANDS, refuse, ALLOW)
    rules["ioctl"] = _one_of(1, IOCTLS, ALLOW, refuse)
    rules["prctl"] = _one_of(0, PRCTLS, ALLOW, refuse)
    rules["sched_setaffinity"] = _one_of(0, (0, pid), ALLOW, refuse)
    rules["socketpair"] = _stream_pair()
    rules["getsockopt"] = _one_of(2, SOCKET_OPTIONS, ALLOW, refuse)
    if kind != "compiler" and spared:
        rules["clone"] = _forks_below_itself()
        rules |= dict.fromkeys(("prlimit64", "kill", "tgkill", "tkill", "sched_setaffinity"), _none_of(spared))
        rules["wait4"] = rules["waitid"] = _give(ALLOW)
    elif kind != "compiler":
        rules["clone"] = _thread_only()
        rules["prlimit64"] = _one_of(0, (0, pid), ALLOW, refuse)
        rules["kill"] = _one_of(0, (0, pid), ALLOW, refuse)
        rules["tgkill"] = rules["tkill"] = _one_of(0, (pid,), ALLOW, refuse)
    if kind == "binary":
        rules["execveat"] = _exec_of_descriptor()
    if kind == "forker":
        rules |= {name: _give(ALLOW) for name in FORKING}
        rules["clone"] = _no_namespaces()
        rules["prctl"] = _one_of(0, (*PRCTLS, kernel.PR_SET_PDEATHSIG, kernel.PR_SET_DUMPABLE), ALLOW, refuse)
    return rules


def _tree(ranges: list[tuple[int, Code]]) -> Code:
    """Return the code of a binary search over ranges of call numbers, given by their first numbers, ascending.

    The last range is open.
    """
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    low, high = _tree(ranges[:middle]), _tree(ranges[middle:])
    return [(AT_LEAST, 0, 1, ranges[middle][0]), (JUMP, 0, 0, len(low)), *low, *high]


def build(kind: str, pid: int, machine: str = kernel.MACHINE, spared: tuple[int, ...] = ()) -> Code:
    """Return the filter for ``python`` (or its parts ``forker`` and ``forked``), ``binary`` or ``compiler``.

    ``spared``: the program may start processes and signal them, but not these.
    """
    numbers = NUMBERS[machine]
    refuse = _give(ERRNO | EPERM)
    head: Code = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, AUDIT_ARCH[machine]), *_give(KILL), (LOAD, 0, 0, NR)]
    if kind != "forked":
        rules, other = _rules(kind, pid, spared), refuse
    else:  # other machines' calls, those of x32 and what neither allows have been refused by then
        wide, narrow = _rules("forker", pid, spared), _rules("python", pid, spared)
        rules = {name: narrow.get(name, refuse) for name, code in wide.items() if narrow.get(name) != code}
        other, head = _give(ALLOW), head[-1:]
    by_number = {numbers[name]: code for name, code in rules.items() if name in numbers}
    ranges: list[tuple[int, Code]] = []
    for number in range(max(by_number) + 2):
        code = by_number.get(number, other)
        if not ranges or ranges[-1][1] != code:
            ranges.append((number, code))
    if machine == "x86_64" and kind != "forked":
        ranges.append((X32_BIT, refuse))
    return head + _tree(ranges)


class Template:
    """A filter built once, its process number filled in per program: building takes a millisecond, filling none.

    ``address`` is what seccomp(2) takes, ``marks`` where the number belongs.
    """

    def __init__(self, kind: str, spared: tuple[int, ...] = ()) -> None:
        marker = 0x7EADBEEF
        code = build(kind, marker, spared=spared)
        self._filter = kernel.Filter(code)
        places = [place for place, (_, _, _, operand) in enumerate(code) if operand == marker]
        self._numbers = [self._filter.operand(place) for place in places]
        self.address = self._filter.address
        self.marks = [ctypes.addressof(word) for word in self._numbers]

    def fill(self, pid: int) -> None:
        """Fill in the process number."""
        for word in self._numbers:
            word.value = pid
