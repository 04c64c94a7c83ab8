"""The kernel calls that Python has no function for, through ctypes: each is one line with its manual page.

A call that fails raises OSError with its name. Nothing is decided here. No well kept binding for seccomp or Landlock
is to be had from the package index (pyseccomp: three releases, needs libseccomp; none for Landlock).
"""

from __future__ import annotations

import ctypes
import os
import signal

from .syscalls import NUMBERS

MACHINE = os.uname().machine
NUMBER = NUMBERS.get(MACHINE, {})

# unshare(2), clone(2)
CLONE_PARENT, CLONE_NEWNS, CLONE_THREAD = 0x8000, 0x00020000, 0x00010000
CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWTIME = 0x10000000, 0x20000000, 0x40000000, 0x00000080
# mount(2), mount_setattr(2)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 4096, 16384, 1 << 18, 2
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
# prctl(2)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
LANDLOCK_RULE_PATH_BENEATH, LANDLOCK_CREATE_RULESET_VERSION = 1, 1
SECCOMP_SET_MODE_FILTER = 1
LAST_DESCRIPTOR = 0xFFFFFFFF

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.prctl.argtypes = (ctypes.c_int, *(4 * (ctypes.c_ulong,)))
_close_range = _libc["syscall"]
_close_range.argtypes = (ctypes.c_long, *(3 * (ctypes.c_uint,)))
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
_holding = ctypes.PyDLL(None, use_errno=True)
_fork = _holding.fork
_plain = _holding["syscall"]
_plain.argtypes = 7 * (ctypes.c_long,)
_plain.restype = ctypes.c_long


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _RulesetAttr(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


class Instruction(ctypes.Structure):
    """One instruction of classic BPF (``struct sock_filter``)."""

    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _call(name: str, *arguments: object) -> int:
    if name not in NUMBER:
        raise OSError(38, f"{name}: not known on {MACHINE}")
    return _checked(name, int(_libc.syscall(ctypes.c_long(NUMBER[name]), *arguments)))


def fork() -> int:
    """Call fork(2), without the steps that Python takes in the child.

    Those steps mend locks that other threads held and reseed `random`; in a process with one thread they change nothing
    that matters, and cost more than the fork itself: each page they write to is copied.
    """
    return _checked("fork", int(_fork()))


def clone(flags: int) -> int:
    """Call clone(2), as `fork` does; with CLONE_PARENT the new process is the child of this one's parent."""
    return call("clone", flags | signal.SIGCHLD)


def call(name: str, *arguments: int) -> int:
    """Call a system call by its name, with numbers as arguments (pointers are numbers too)."""
    if name == "close_range":
        close_from(arguments[0], arguments[1])
        return 0
    return _checked(name, int(_plain(NUMBER[name], *arguments, *(6 - len(arguments)) * (0,))))


def words(texts: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    """Return texts as exec(3) takes them, with a null pointer behind the last."""
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)


def unshare(flags: int) -> None:
    """Call unshare(2)."""
    _checked("unshare", _libc.unshare(flags))


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Call mount(2)."""
    texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
    result = _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])
    _checked(f"mount {target}", result)


def make_read_only(target: str, extra: int, deep: bool = True) -> None:
    """Call mount_setattr(2) for the mount (and all below): read only, plus MS_NOSUID, MS_NODEV … (the same bits)."""
    attr = _MountAttr(MS_RDONLY | extra, 0, 0, 0)
    path = ctypes.c_char_p(target.encode())
    size = ctypes.c_size_t(ctypes.sizeof(attr))
    flags = ctypes.c_uint(AT_RECURSIVE if deep else 0)
    _call("mount_setattr", ctypes.c_int(AT_FDCWD), path, flags, ctypes.byref(attr), size)


def pivot_root(new: str, old: str) -> None:
    """Call pivot_root(2)."""
    _call("pivot_root", ctypes.c_char_p(new.encode()), ctypes.c_char_p(old.encode()))


def unmount(target: str) -> None:
    """Call umount2(2), lazily."""
    _checked("umount2", _libc.umount2(target.encode(), MNT_DETACH))


def set_host_name(name: bytes) -> None:
    """Call sethostname(2)."""
    _checked("sethostname", _libc.sethostname(name, ctypes.c_size_t(len(name))))


def prctl(option: int, value: int, third: int = 0) -> int:
    """Call prctl(2)."""
    return _checked("prctl", _libc.prctl(option, value, third, 0, 0))


def drop_bounding_set() -> None:
    """Empty the bounding set (capabilities(7)): no program started later can gain any. Needs CAP_SETPCAP."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # past the last one, or (EPERM) without CAP_SETPCAP: then the other sets are all that counts
            break


def drop_capabilities() -> None:
    """Empty the ambient, effective, permitted and inheritable sets (capabilities(7)), for good."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = _CapHeader(0x20080522, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
    prctl(PR_SET_NO_NEW_PRIVS, 1)


class Filter:
    """A filter as seccomp(2) takes it, at ``address``."""

    def __init__(self, code: list[tuple[int, int, int, int]]) -> None:
        self._program = (Instruction * len(code))(*(Instruction(*words) for words in code))
        self._head = _Program(len(code), ctypes.addressof(self._program))
        self.address = ctypes.addressof(self._head)

    def operand(self, place: int) -> ctypes.c_uint32:
        """Return the operand of an instruction, to be filled in late."""
        return ctypes.c_uint32.from_buffer(self._program, place * ctypes.sizeof(Instruction) + Instruction.k.offset)


def landlock_version() -> int:
    """Return the version of Landlock (landlock_create_ruleset(2)). Raises OSError where there is none."""
    return _call("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint32(LANDLOCK_CREATE_RULESET_VERSION))


def landlock_ruleset(version: int) -> int:
    """Return a descriptor of a rule set that refuses all that this version can (landlock_create_ruleset(2))."""
    last = 16 if version >= 5 else 15 if version >= 3 else 14 if version >= 2 else 13
    attr = _RulesetAttr((1 << last) - 1, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    return _call("landlock_create_ruleset", ctypes.byref(attr), ctypes.c_size_t(size), ctypes.c_uint32(0))


def landlock_allow(ruleset: int, path: str, access: int) -> None:
    """Allow ``access`` to everything below ``path`` (landlock_add_rule(2))."""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = _PathBeneath(access, descriptor)
    kind = ctypes.c_int(LANDLOCK_RULE_PATH_BENEATH)
    try:
        _call("landlock_add_rule", ctypes.c_int(ruleset), kind, ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def close_from(first: int, last: int = LAST_DESCRIPTOR) -> None:
    """Close every descriptor from ``first`` on, up to and with ``last`` (close_range(2))."""
    if _close_range(NUMBER["close_range"], first, last, 0) < 0:  # before Linux 5.9
        os.closerange(first, min(last + 1, 4096))


def resident(address: int) -> bool:
    """Return whether the page at this address (a multiple of its size) has been used (mincore(2))."""
    flags = ctypes.create_string_buffer(1)
    return _libc.mincore(address, 1, flags) == 0 and flags.raw[0] & 1 == 1


def set_thread_stack(size: int) -> None:
    """Set the stack of threads that name none (pthread_setattr_default_np(3)); else it is as RLIMIT_STACK was."""
    if hasattr(_libc, "pthread_setattr_default_np"):
        attributes = ctypes.create_string_buffer(128)
        _libc.pthread_attr_init(attributes)
        _libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size))
        _libc.pthread_setattr_default_np(attributes)
