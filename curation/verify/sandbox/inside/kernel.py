"""Makes kernel calls that Python lacks, through ctypes, by their names in `syscalls` and the manual pages.

A failing call raises OSError with its name. No maintained package binds seccomp or Landlock.
"""

from __future__ import annotations

import ctypes
import os
import struct

from .syscalls import NUMBERS

MACHINE = os.uname().machine
NUMBER = NUMBERS.get(MACHINE, {})

# unshare(2), clone(2)
CLONE_VM, CLONE_FILES, CLONE_VFORK, CLONE_PARENT = 0x100, 0x400, 0x4000, 0x8000
CLONE_THREAD, CLONE_NEWNS = 0x00010000, 0x00020000
CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
# mount(2), mount_setattr(2), umount2(2)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 4096, 16384, 1 << 18, 2
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
# prctl(2)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
SECCOMP_SET_MODE_FILTER = 1
LAST_DESCRIPTOR = 0xFFFFFFFF

_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc["syscall"]
_syscall.argtypes, _syscall.restype = 7 * (ctypes.c_long,), ctypes.c_long


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def call(name: str, *arguments: int | str | bytes | None) -> int:
    """Make a system call by its name; texts and bytes, also buffers that it fills, are passed by address."""
    if name not in NUMBER:
        raise OSError(38, f"{name}: not known on {MACHINE}")
    kept = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
    words = [
        ctypes.cast(ctypes.c_char_p(argument), ctypes.c_void_p).value if isinstance(argument, bytes) else argument
        for argument in kept
    ]
    return _checked(name, int(_syscall(NUMBER[name], *(word or 0 for word in words), *(6 - len(words)) * (0,))))


def fork() -> int:
    """Call fork(2) without Python's steps in the child.

    They reset locks and reseed `random`: needless with one thread, and slower than the fork, as they write to pages.
    """
    return _checked("fork", int(_libc.fork()))


def words(texts: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    """Return texts for exec(3), with a null pointer after the last."""
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)


def make_read_only(target: str, extra: int, deep: bool = True) -> None:
    """Call mount_setattr(2) for the mount (and all below): read only, plus MS_NOSUID, MS_NODEV …"""
    attributes = struct.pack("4Q", MS_RDONLY | extra, 0, 0, 0)
    call("mount_setattr", AT_FDCWD, target, AT_RECURSIVE if deep else 0, attributes, len(attributes))


def drop_bounding_set() -> None:
    """Empty the bounding set (capabilities(7)), so that no later program gains any."""
    for capability in range(64):
        try:
            call("prctl", PR_CAPBSET_DROP, capability)
        except OSError:  # past the last one, or EPERM without CAP_SETPCAP: then only the other sets count
            break


def drop_capabilities() -> None:
    """Empty the effective, permitted, inheritable and ambient sets (capabilities(7)) for good."""
    call("capset", struct.pack("Ii", 0x20080522, 0), bytes(24))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1)


def close_from(first: int, last: int = LAST_DESCRIPTOR) -> None:
    """Close descriptors ``first`` to ``last`` (close_range(2))."""
    call("close_range", first, last, 0)


def resident(address: int) -> bool:
    """Return whether the page at an aligned address has been used (mincore(2))."""
    flags = ctypes.c_ubyte()
    return _syscall(NUMBER["mincore"], address, 1, ctypes.addressof(flags), 0, 0, 0) == 0 and flags.value & 1 == 1


def set_thread_stack(size: int) -> None:
    """Set the default stack of threads (pthread_setattr_default_np(3)) instead of RLIMIT_STACK."""
    if hasattr(_libc, "pthread_setattr_default_np"):
        attributes = ctypes.create_string_buffer(128)
        _libc.pthread_attr_init(attributes)
        _libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size))
        _libc.pthread_setattr_default_np(attributes)
