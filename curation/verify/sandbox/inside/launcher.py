"""Starts a slot's process: isolates it on its rung, drops all rights, and becomes the supervisor.

Invariants: the supervisor starts only if every step of the rung has worked; a failing step ends the process with its
name on stderr, which the ladder reads. With namespaces the supervisor is pid 1, so its death ends all processes there;
it dies with this process (PDEATHSIG), and this process when the judge closes the control socket.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys

from . import kernel

EXECUTE = 0b1
READ_ONLY = 0b1101
"""Landlock: execute, read files, list directories."""
READ_WRITE = 0b1101 | 0b10 | 0x10 | 0x20 | 0x80 | 0x100 | 0x400 | 0x1000 | 0x2000 | 0x4000
"""… and write, remove, make directories, files, pipes and links, rename, truncate."""
FILE_RIGHTS = 0b111 | 0x4000
VERSION_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
DEVICES = {"run": ("null", "full", "random", "urandom"), "compile": ("null",)}
"""Without zero, whose mappings are shared memory that no limit counts."""
INNER_ID = 1000
SAFE = kernel.MS_NOSUID | kernel.MS_NODEV


class Plan:
    """Settings of a slot, from `curation.verify.sandbox.slot`."""

    rung: str
    kind: str
    control: int
    uid: int
    binds: list[str]
    hidden: list[str]
    scratch: str
    scratch_mb: int
    packages: str
    library: str

    def __init__(self, words: dict[str, object]) -> None:
        vars(self).update(words)

    @property
    def apart(self) -> bool:
        """Return whether it has namespaces of its own."""
        return self.rung in APART


READS, BECOMES = 0, 1


def _tried(plan: Plan) -> int:
    """Return whether a child of root can become the slot's user and `READS` the toolchain, only `BECOMES` it (the
    toolchain may be in a private home), or neither.
    """
    child = os.fork()
    if child == 0:
        _become(plan.uid)
        readable = all(os.access(path, os.R_OK) for path in plan.binds)
        os._exit(READS if readable and os.access(os.path.dirname(plan.scratch) or "/", os.X_OK) else BECOMES)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    kernel.call("prctl", kernel.PR_SET_DUMPABLE, 1)


def _own_user_namespace(plan: Plan) -> tuple[bool, bool]:
    """Enter a user namespace; return whether the kernel counts its processes separately (from Linux 5.14 on, except
    for root), and whether no other slot has its user id.

    If the slot's user cannot read the toolchain, root stays root until the new root is mounted.
    """
    tried = _tried(plan) if os.geteuid() == 0 else -1
    if tried == BECOMES:
        _unshare_with(f"0 0 1\n{INNER_ID} {plan.uid} 1\n")
        return True, True
    if tried == READS:
        _become(plan.uid)
    uid, gid = os.geteuid(), os.getegid()
    kernel.call("unshare", kernel.CLONE_NEWUSER)
    kernel.call("prctl", kernel.PR_SET_DUMPABLE, 1)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INNER_ID} {uid} 1"),
        ("gid_map", f"{INNER_ID} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    major, minor = os.uname().release.split(".")[:2]
    return uid != 0 and (int(major), int("".join(filter(str.isdigit, minor)))) >= (5, 14), uid == plan.uid


def _unshare_with(ids: str) -> None:
    """Enter a user namespace with several ids, which a process outside must write."""
    (source, target), parent = os.pipe(), os.getpid()
    child = os.fork()
    if child == 0:
        os.close(target)
        os.read(source, 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{parent}/{name}", "w") as file:
                file.write(ids)
        os._exit(0)
    os.close(source)
    kernel.call("unshare", kernel.CLONE_NEWUSER)
    os.close(target)
    if os.waitpid(child, 0)[1]:
        raise OSError(0, "uid_map: the user ids cannot be named")


def _bind(source: str, target: str, flags: int) -> None:
    kernel.call("mount", source, target, None, kernel.MS_BIND | kernel.MS_REC)
    kernel.make_read_only(target, kernel.MS_NOSUID | flags)


APART = ("namespaces", "user-namespace")
"""Rungs with a new root."""


def seen_at(path: str) -> str:
    """Return a host path's path in a new root, which differs if the private /tmp would cover it."""
    return "/packages" + path if path.startswith(("/tmp/", "/dev/shm/")) else path


def move_imports() -> None:
    """Adapt import paths to those in the box."""
    sys.path[:] = map(seen_at, sys.path)
    for module in list(sys.modules.values()):
        if isinstance(paths := getattr(module, "__path__", None), list):
            paths[:] = map(seen_at, paths)


def _fill(root: str, plan: Plan, sources: dict[str, int]) -> None:
    """Fill the new root: read-only binds, devices and an empty /tmp."""
    for path, descriptor in sources.items():
        target = root + seen_at(path)
        if os.path.islink(path):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(os.readlink(path), target)
            continue
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
        device = path.startswith("/dev/")
        _bind(f"/proc/self/fd/{descriptor}", target, kernel.MS_NOEXEC if device else kernel.MS_NODEV)
    for name, link in (("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("fd", "fd")):
        os.symlink(f"/proc/self/{link}", f"{root}/dev/{name}")
    for path in plan.hidden:
        kernel.call("mount", "none", root + seen_at(path), "tmpfs", SAFE | kernel.MS_RDONLY, "size=4k")
    os.mkdir(root + "/tmp")
    os.symlink("/tmp", root + "/dev/shm")  # for semaphores between processes
    size = f"size={plan.scratch_mb}m,nr_inodes=20000,mode=0777"
    kernel.call("mount", "none", root + "/tmp", "tmpfs", SAFE | kernel.MS_NOEXEC, size)


def _mount_proc(target: str) -> int:
    """Mount /proc with only traceable processes and return -1; if that is refused, as in most containers, return the
    outer /proc, open.
    """
    os.mkdir(target)
    try:
        kernel.call("mount", "proc", target, "proc", SAFE | kernel.MS_NOEXEC, "hidepid=2,subset=pid")
    except OSError:
        return os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return -1


def _own_namespaces(plan: Plan) -> tuple[bool, bool, int]:
    """Enter namespaces and return as their pid 1 with the new root; the first process waits.

    Returns whether this slot's processes are counted separately, whether its user id is exclusive, and the outer /proc
    if none can be mounted (else -1).
    """
    alone, owns = (True, True) if plan.rung == "namespaces" else _own_user_namespace(plan)
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    own = {"mount": "mnt", "host name": "uts"}
    before = {name: os.stat(f"/proc/self/ns/{kind}").st_ino for name, kind in own.items()}
    kernel.call("unshare", flags)
    for name, kind in own.items():
        if os.stat(f"/proc/self/ns/{kind}").st_ino == before[name]:  # the host's /tmp, and its name
            raise OSError(0, f"unshare: no {name} namespace of its own was made")
    child = os.fork()
    if child:
        kernel.close_from(plan.control)
        os._exit(0 if os.waitpid(child, 0)[1] == 0 else 1)
    kernel.call("prctl", kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.call("mount", None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kind = "compile" if plan.kind == "compile" else "run"
    paths = [*plan.binds, *(f"/dev/{name}" for name in DEVICES[kind])]
    sources = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in paths}
    root = "/tmp"
    kernel.call("mount", "none", root, "tmpfs", SAFE, "size=1m,mode=0755")
    _fill(root, plan, sources)
    outer = _mount_proc(root + "/proc")
    for descriptor in sources.values():
        os.close(descriptor)
    os.chdir(root)
    kernel.call("pivot_root", ".", ".")
    kernel.call("umount2", ".", kernel.MNT_DETACH)
    os.chdir("/")
    kernel.make_read_only("/", SAFE, deep=False)
    kernel.call("sethostname", "box", 3)
    return alone, owns, outer


def _ruleset(plan: Plan) -> int:
    """Return Landlock rules by which a program may read the toolchain and write to its own folder.

    All else that this kernel can refuse is refused (landlock_create_ruleset(2), landlock_add_rule(2)).
    """
    version = kernel.call("landlock_create_ruleset", None, 0, 1)
    rights = VERSION_RIGHTS.get(version, 0xFFFF)
    refused = struct.pack("3Q", rights, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    ruleset = kernel.call("landlock_create_ruleset", refused, len(refused), 0)
    allowed = {path: READ_ONLY if os.path.isdir(path) else READ_ONLY & FILE_RIGHTS for path in plan.binds}
    for name in DEVICES["compile" if plan.kind == "compile" else "run"]:
        allowed[f"/dev/{name}"] = 0b110 if name in {"null", "full"} else 0b100
    allowed[plan.scratch] = READ_WRITE & ~EXECUTE & rights
    for path, access in allowed.items():
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        kernel.call("landlock_add_rule", ruleset, 1, struct.pack("=Qi", access, descriptor), 0)
        os.close(descriptor)
    return ruleset


def enter(plan: Plan) -> tuple[int, int, bool, bool]:
    """Isolate this process; return Landlock's rule set (or -1), an outer /proc (or -1), whether this slot's processes
    are counted separately, and whether its user id is exclusive, so that its files are its programs'.

    Root's rights are dropped even without isolation, so that no program can mount, reboot or signal the host.
    """
    alone, owns, outer = _own_namespaces(plan) if plan.apart else (False, False, -1)
    kernel.drop_bounding_set()
    ruleset = _ruleset(plan) if plan.rung == "landlock" else -1
    if plan.rung == "namespaces":
        _become(plan.uid)
    elif plan.apart and os.geteuid() == 0:
        _become(INNER_ID)
    elif not plan.apart and os.geteuid() == 0 and _tried(plan) == READS:
        os.chown(plan.scratch, plan.uid, plan.uid)
        _become(plan.uid)
        alone = owns = True
    kernel.drop_capabilities()
    kernel.call("prctl", kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.call("prctl", kernel.PR_SET_DUMPABLE, 0)
    kernel.call("prctl", kernel.PR_SET_PDEATHSIG, signal.SIGKILL if plan.apart else 0)
    return ruleset, outer, alone, owns


def main(argument: str) -> None:
    """Run a slot with the `Plan` in JSON."""
    from . import supervisor

    plan = Plan(json.loads(argument))
    try:
        library = supervisor.preload(plan)
        ruleset, outer, alone, owns = enter(plan)
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        sys.stderr.flush()
        os._exit(3)
    supervisor.serve(plan, library, ruleset, outer, alone, owns)
