"""Talks to one slot, a supervisor process (see `inside`).

Invariants: the supervisor is a fresh interpreter; inputs and outputs travel as memory files, never in it; a misbehaving
slot is killed with all its processes and raises `SlotError`.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from curation.storage.scratch import ScratchFolder
from curation.verify.sandbox.inside import folder
from curation.verify.sandbox.inside.folder import empty, path_in
from curation.verify.sandbox.library import build_library
from curation.verify.sandbox.outcomes import Ending, Limits, RunResult

LIBRARY_PATHS = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/etc/ld.so.cache")
ZONES = "/usr/share/zoneinfo"
COMPILER_PATHS = ("/bin", "/usr/bin", "/usr/libexec", "/usr/include", "/usr/local/bin", "/usr/local/include")
LINKS = ("/etc/alternatives",)
TASKS = "reasoning_gym"
"""Package whose scorers import others; ``tasks`` slots see its parent folder."""


@dataclass(frozen=True, slots=True)
class SandboxView:
    """Visible paths, hidden paths within them, and a folder for ``sys.path``."""

    binds: tuple[str, ...]
    hidden: tuple[str, ...]
    packages: str


def interpreter() -> str:
    """Return the bare interpreter below a virtual environment."""
    return str(getattr(sys, "_base_executable", None) or sys.executable)


def numpy_site_packages() -> Path | None:
    """Return the packages folder with numpy, without importing it."""
    return _site_packages("numpy")


def _site_packages(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent.parent if spec and spec.origin else None


def _without_nested(paths: list[str]) -> tuple[str, ...]:
    outermost: list[str] = []
    for path in paths:
        inner = Path(path)
        inside = any(inner != Path(outer) and inner.is_relative_to(outer) for outer in paths)
        if inner.exists() and not inside and path not in outermost:
            outermost.append(path)
    return tuple(outermost)


def build_view(kind: str, tools: Path | None) -> SandboxView:
    """Return the view for a kind of slot: ``std``, ``numpy``, ``tasks`` or ``compile``."""
    base = Path(sys.base_prefix)
    names = {name: str(base) for name in ("base", "platbase", "installed_base", "installed_platbase")}
    stdlib = [sysconfig.get_path(name, vars=names) for name in ("stdlib", "platstdlib")]
    paths = [*LIBRARY_PATHS, ZONES, *stdlib]
    if base != Path("/usr"):
        paths.append(str(base / "lib"))
    packages = numpy_site_packages() if kind == "numpy" else _site_packages(TASKS) if kind == "tasks" else None
    if packages is not None:
        paths += [str(packages)] if kind == "tasks" else [str(packages / "numpy"), str(packages / "numpy.libs")]
    if kind == "compile":
        paths += [*COMPILER_PATHS, *LINKS, *([str(tools.resolve())] if tools else [])]
    folders = [*(f"{folder}/site-packages" for folder in dict.fromkeys(stdlib)), "/usr/lib/python3/dist-packages"]
    hidden = [path for path in folders if Path(path).is_dir() and packages != Path(path)]
    return SandboxView(_without_nested(paths), tuple(hidden), str(packages or ""))


START_S = 600.0
ANSWER_S = 600.0
"""Max wall seconds for a start and for an answer; a slot's end is noticed at once."""
SCRATCH_MB = {"std": 256, "numpy": 256, "tasks": 256, "compile": 2048}
FIRST_UID = 0x70000000
"""First user id beyond those of ordinary machines and account ranges."""
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
START = "import sys; sys.path.insert(0, sys.argv[1]); from inside import launcher; del sys.path[0]; "
START += "launcher.main(sys.argv[2])"
SWEEP = "import os, sys; sys.path.insert(0, sys.argv[1]); import folder; "
SWEEP += "folder.empty(sys.argv[2], float('inf')); os.rmdir(sys.argv[2])"
LIMITS = "ulimit -S -s 16777216 2>/dev/null || ulimit -S -s $(ulimit -H -s); "
LIMITS += 'ulimit -S -n 1024 2>/dev/null; ulimit -c 0; exec "$@"'
"""Sets the stack (KiB), which an interpreter reserves at its start, and descriptors up to a binary's."""
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LD_BIND_NOW": "1",  # lazy binding would be repeated in every fork
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
STDERR_BYTES = 65536
KILLED = {
    "memory": Ending.MEMORY_LIMIT,
    "cpu": Ending.CPU_LIMIT,
    "wall": Ending.WALL_LIMIT,
    "output": Ending.OUTPUT_LIMIT,
    "files": Ending.OUTPUT_LIMIT,
}
ANSWER_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("peak_kb", "uid", "status", "died"), (int,)),
    **dict.fromkeys(("cpu_s", "wall_s"), (int, float)),
    **dict.fromkeys(("killed", "failed"), (str,)),
    **dict.fromkeys(("ready", "done", "written", "proc", "alone", "forks", "owns"), (bool,)),
    **dict.fromkeys(("ran", "sizes"), (list,)),
}
"""Allowed keys of a supervisor's message, and their types."""
MAX_NUMBER = 1 << 53


class SlotError(Exception):
    """The slot is unusable, for the stated reason."""


class Answer(dict[str, Any]):
    """A supervisor's message; a missing key raises `SlotError`."""

    def __missing__(self, key: str) -> Any:
        raise SlotError(f"the supervisor's answer lacks {key!r}")


def _checked(pairs: list[tuple[str, Any]]) -> Answer:
    for key, value in pairs:
        fits = type(value) in ANSWER_TYPES.get(key, ())
        match value:
            case list():
                fits &= all(type(item) is (int if key == "sizes" else Answer) for item in value)
                fits &= key != "sizes" or len(value) == 2
            case int() | float():
                fits &= 0 <= value < MAX_NUMBER
        if not fits:
            raise ValueError(f"{key!r} is {str(value)[:40]}")
    return Answer(pairs)


_ANSWERS = json.JSONDecoder(object_pairs_hook=_checked)


def read_answer(data: bytes) -> Answer:
    """Return a supervisor's message. Raises `SlotError` if it is invalid."""
    try:
        message = _ANSWERS.decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise SlotError(f"the supervisor's answer cannot be read: {str(error)[:100]}") from error
    if not isinstance(message, Answer):
        raise SlotError("the supervisor's answer is no object")
    return message


def file_names(files: Iterable[str]) -> list[str]:
    """Return a program's file names. Raises `SlotError` if one leaves its folder."""
    names = list(files)
    try:
        for name in names:
            path_in("", name)
    except ValueError as error:
        raise SlotError(str(error)) from error
    return names


def memory_file(content: bytes) -> int:
    """Return a descriptor of a sealed read-only file with this content."""
    writable = os.memfd_create("box", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        remaining = memoryview(content)
        while remaining:
            remaining = remaining[os.write(writable, remaining) :]
        fcntl.fcntl(writable, fcntl.F_ADD_SEALS, SEALS)
        return os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(writable)


def output_file() -> int:
    """Return a descriptor of an empty output file in memory."""
    return os.memfd_create("out", os.MFD_CLOEXEC)


def writable(output: int) -> int:
    """Return a write-only descriptor with its own position."""
    return os.open(f"/proc/self/fd/{output}", os.O_WRONLY | os.O_CLOEXEC)


def read_file(descriptor: int, max_bytes: int) -> bytes:
    """Return a file's first bytes, whatever its writer's position."""
    chunks, position = [], 0
    while position < max_bytes and (chunk := os.pread(descriptor, min(max_bytes - position, 1 << 24), position)):
        chunks.append(chunk)
        position += len(chunk)
    return b"".join(chunks)


class Slot:
    """A warm supervisor of kind ``std``, ``numpy``, ``tasks`` or ``compile``."""

    def __init__(self, rung: str, kind: str, tools: Path | None = None) -> None:
        self.rung, self.kind, self.usable = rung, kind, True
        self.facts = Answer()
        view, library = build_view(kind, tools), str(build_library())
        has_folder = rung in {"landlock", "none"}  # with namespaces the scratch folder is a separate file system
        self._folder = ScratchFolder("box") if has_folder else None
        self.scratch = self._folder.path if self._folder is not None else ""
        self.control, supervisor_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.RLock()  # a descriptor closed while in use may soon be another file's
        self._uid = FIRST_UID + int.from_bytes(os.urandom(4)) % (1 << 27)  # containers share user ids
        plan = {
            "rung": rung,
            "kind": kind,
            "control": supervisor_end.fileno(),
            "uid": self._uid,
            "binds": view.binds,
            "hidden": view.hidden,
            "scratch": self.scratch,
            "scratch_mb": SCRATCH_MB[kind],
            "packages": view.packages,
            "library": library,
        }
        python = [interpreter(), "-s", "-S", "-P", "-c", START, str(Path(__file__).parent), json.dumps(plan)]
        with supervisor_end:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", LIMITS, "sh", *python],
                env=ENVIRONMENT | _preloaded(rung, library),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(supervisor_end.fileno(),),
                start_new_session=True,
            )
        try:
            self.facts = self.answer(START_S)
        except SlotError as failure:
            assert self.process.stderr is not None
            stderr = self.process.stderr.read().decode(errors="replace").strip().rsplit("\n", 1)[-1]
            raise SlotError(stderr or str(failure)) from failure
        finally:
            if self.process.stderr is not None:
                self.process.stderr.close()

    def close(self) -> None:
        """Kill the supervisor's processes and remove its folder; waiting threads get `SlotError`."""
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        with self._lock:
            self.control.close()
            folder, self._folder = self._folder, None  # two threads may close it
        if folder is not None:
            if self.facts.get("owns") and self.facts["uid"] == self._uid:  # no namespace ends its user's processes
                self._kill_user_processes()
            try:
                empty(folder.path)
            except OSError:
                _empty_later(folder.give_away())
            else:
                folder.remove()

    def _kill_user_processes(self) -> None:
        none = subprocess.DEVNULL
        subprocess.run(
            ["/bin/sh", "-c", f'[ "$(id -u)" = {self._uid} ] && kill -9 -1'],
            user=self._uid,
            group=self._uid,
            extra_groups=(),
            env=ENVIRONMENT,
            cwd="/",
            stdin=none,
            stdout=none,
            stderr=none,
            check=False,
        )

    def send(self, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Send a message with descriptors. Raises `SlotError` if the supervisor is gone."""
        try:
            with self._lock:
                socket.send_fds(self.control, [json.dumps(message).encode()], list(descriptors))
        except OSError as error:
            self.close()
            raise SlotError(f"the supervisor is gone ({error.strerror})") from error

    def answer(self, timeout_s: float) -> Answer:
        """Return the next message. Raises `SlotError` if none comes in time."""
        try:
            with self._lock:
                self.control.settimeout(timeout_s)
                data, is_closed = self.control.recv(1 << 18), True
        except TimeoutError:
            data, is_closed = b"", False
        except OSError:
            data, is_closed = b"", True
        if not data:
            self.close()
            raise SlotError("the supervisor ended" if is_closed else f"no answer within {timeout_s:g} s")
        try:
            return read_answer(data)
        except SlotError:
            self.close()
            raise

    def ask(self, message: Mapping[str, Any], descriptors: Sequence[int], timeout_s: float = ANSWER_S) -> Answer:
        """Send a message and return the answer."""
        self.send(message, descriptors)
        return self.answer(timeout_s)


def _preloaded(rung: str, library: str) -> dict[str, str]:
    """Return the variable that preloads the library, as Landlock has no /dev/shm."""
    return {"LD_PRELOAD": library} if rung == "landlock" and not {" ", ":"} & {*library} else {}


def _empty_later(path: str) -> None:
    command = ["nice", interpreter(), "-I", "-S", "-c", SWEEP, str(Path(folder.__file__).parent), path]
    none = subprocess.DEVNULL
    subprocess.run(
        ["/bin/sh", "-c", '"$@" &', "sh", *command],
        env=ENVIRONMENT,
        stdin=none,
        stdout=none,
        stderr=none,
        start_new_session=True,
        check=False,
    )


def limits_message(limits: Limits, tree: bool) -> dict[str, Any]:
    """Return limits for the supervisor; ``tree`` allows and counts child processes."""
    return {**asdict(limits), "wall_s": limits.wall_guard_s, "tree": tree}


def broken_run(note: str) -> RunResult:
    """Return a run of unknown outcome."""
    return RunResult(Ending.BROKEN, None, None, b"", b"", 0.0, 0.0, 0, note)


def worse_than_limits(usage: Mapping[str, Any], limits: Limits) -> bool:
    """Return whether the memory limit was exceeded."""
    return bool(usage["peak_kb"] > limits.memory_mb * 1024)


def _ending(usage: Mapping[str, Any], limits: Limits, written: int) -> Ending:
    status = usage["status"] & 0xFFFF
    if usage["killed"] in KILLED:
        return KILLED[usage["killed"]]
    if worse_than_limits(usage, limits):
        return Ending.MEMORY_LIMIT
    if usage["cpu_s"] > limits.cpu_s:
        return Ending.CPU_LIMIT
    signaled = os.WIFSIGNALED(status)
    if written > limits.output_bytes or (signaled and os.WTERMSIG(status) == signal.SIGXFSZ):
        return Ending.OUTPUT_LIMIT
    return Ending.SIGNALED if signaled else Ending.EXITED


def run_result(usage: Mapping[str, Any], limits: Limits, stdout: int = -1, stderr: int = -1) -> RunResult:
    """Return the `RunResult` of `Watch.wait` and the program's files."""
    if usage.get("failed"):
        return broken_run(usage["failed"])
    status = usage["status"] & 0xFFFF
    sizes = usage.get("sizes") or [os.fstat(output).st_size if output >= 0 else 0 for output in (stdout, stderr)]
    notes = {"processes": f"more than {limits.processes} threads", "files": f"more than {limits.file_mb} MiB in /tmp"}
    return RunResult(
        ending=_ending(usage, limits, max(sizes)),
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        stdout=read_file(stdout, min(sizes[0], limits.output_bytes)) if sizes[0] else b"",
        stderr=read_file(stderr, min(sizes[1], STDERR_BYTES)) if sizes[1] else b"",
        cpu_s=usage["cpu_s"],
        wall_s=usage["wall_s"],
        memory_mb=-(-usage["peak_kb"] // 1024),
        note=notes.get(usage["killed"], ""),
    )
