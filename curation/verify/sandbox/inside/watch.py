"""Waits for a program within its limits: CPU time, wall time, resident memory, output and files.

A tick checks every 10 ms; the resources that the kernel counted (wait4) show what it missed, so the verdict never
depends on the tick. Wall time excludes waits for a CPU (schedstat), up to ten times the guard; of parallel processes,
the longest wait counts.

Resident memory excludes the kernel's memory for processes: page tables, mappings, sockets and pipes. A few processes
can have little of it, by limits on descriptors and address space; for more it is counted (`kernel_kb`). The folder's
list lacks deleted files, which are counted by the processes that have them open, unless the folder is a file system.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import select
import signal
import stat
import time
from collections.abc import Callable, Iterator, Sequence

from .folder import UNREADABLE, used_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TICK_S = 0.01
HARD_WALL = 10
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
MAPPINGS_A_KB, PIPE_KB = 4, 64
"""Mappings per KiB of kernel memory, and KiB of a full pipe; larger pipes are limited per user."""
MAX_LIGHT_PROCESSES = 4
"""Max processes whose limits allow little kernel memory; a compiler has no more."""
PAUSE_FACTOR = 9
"""Pause after a slow check, in multiples of its CPU time, so that checks take at most a tenth of the time."""
GONE = (FileNotFoundError, ProcessLookupError, PermissionError, ValueError, IndexError)


class Proc:
    """Reads /proc, or an outer /proc that `launcher` left open as ``descriptor``, with its ``outer_pids``."""

    def __init__(self) -> None:
        self.descriptor = -1
        self.outer_pids: dict[int, int] = {}

    def look_from(self, descriptor: int) -> None:
        """Use the folder open at this descriptor."""
        self.descriptor = descriptor
        self.outer_pids = {os.getpid(): int(os.readlink("self", dir_fd=descriptor))}

    def forget(self) -> None:
        """Forget the outer numbers of ended programs."""
        self.outer_pids = {pid: number for pid, number in self.outer_pids.items() if pid == os.getpid()}

    def open(self, pid: int, name: str, how: int = 0) -> int:
        """Open a process's file. Raises OSError."""
        flags = os.O_RDONLY | os.O_CLOEXEC | how
        if self.descriptor < 0:
            return os.open(f"/proc/{pid}/{name}", flags)
        if pid not in self.outer_pids:
            for _ in descendants(os.getpid()):
                continue
        return os.open(f"{self.outer_pids.get(pid, 'gone')}/{name}", flags, dir_fd=self.descriptor)

    def here(self, number: int) -> int:
        """Return the process number here of one in /proc."""
        if self.descriptor < 0:
            return number
        self.outer_pids[0] = number
        try:
            lines = _read(0, "status").splitlines()
        finally:
            del self.outer_pids[0]
        pid = next(int(line.split()[-1]) for line in lines if line.startswith(b"NSpid:"))
        self.outer_pids[pid] = number
        return pid


PROC = Proc()


def _read(pid: int, name: str) -> bytes:
    descriptor = PROC.open(pid, name)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)


def _threads(pid: int) -> list[str]:
    descriptor = PROC.open(pid, "task", os.O_DIRECTORY)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)


def descendants(pid: int) -> Iterator[int]:
    """Yield the descendants of ``pid``, of all threads; none without /proc."""
    below = [pid]
    while below:
        parent = below.pop()
        try:
            for thread in _threads(parent):
                for word in _read(parent, f"task/{thread}/children").split():
                    with contextlib.suppress(*GONE, StopIteration):
                        below.append(child := PROC.here(int(word)))
                        yield child
        except GONE:
            continue


def sees_children() -> bool:
    """Return whether /proc shows memory and children, without which child processes cannot be watched."""
    pid = os.getpid()
    try:
        (thread,) = _threads(pid)
        return resident_kb(pid) > 0 and isinstance(_read(pid, f"task/{thread}/children"), bytes)
    except GONE:
        return False


def kill_rest(whole: bool, spare: int = 0) -> None:
    """Kill and collect what a program left running: all of the slot's processes but this one and ``spare``.

    ``whole``: this process may signal only the slot's.
    """
    if whole and not spare:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
    while True:
        for pid in (remaining := [pid for pid in descendants(os.getpid()) if pid != spare]):
            with contextlib.suppress(ProcessLookupError):  # collected by a parent that ignores SIGCHLD
                os.kill(pid, signal.SIGKILL)
        if not remaining and (spare or not _collected()):
            return
        for pid in remaining:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _collected() -> bool:
    """Collect an ended child, if any; return whether children remain."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def cpu_clock(pid: int) -> float:
    """Return a running process's CPU seconds in all threads (clock_getcpuclockid(3)); 0 if it is gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _where(pid: int) -> str:
    """Return the prefix of a process's memory and descriptor files: a living thread's if the first has ended."""
    if _read(pid, "statm").startswith(b"0 "):
        for thread in _threads(pid):
            if not _read(pid, f"task/{thread}/statm").startswith(b"0 "):
                return f"task/{thread}/"
    return ""


def resident_kb(pid: int) -> int:
    """Return a process's resident KiB; 0 if it is gone or without /proc."""
    try:
        words = _read(pid, "statm").split()
        if words[0] == b"0":
            words = _read(pid, f"{_where(pid)}statm").split()
        return int(words[1]) * PAGE_KB
    except GONE:
        return 0


def proportional_kb(pid: int) -> int:
    """Return a process's KiB with its share of shared pages; all resident ones if that is unknown."""
    try:
        lines = _read(pid, f"{_where(pid)}smaps_rollup").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(b"Pss:"))
    except (*GONE, StopIteration):
        return resident_kb(pid)


def socket_kb() -> int:
    """Return the KiB of a full socket; programs cannot change its buffer."""
    pair = _socket.socketpair()
    try:
        return pair[0].getsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF) // 1024
    finally:
        for end in pair:
            end.close()


def _descriptors(pid: int) -> list[os.stat_result]:
    """Return the states of a process's open files."""
    states = []
    with contextlib.suppress(*GONE):
        folder = PROC.open(pid, f"{_where(pid)}fd", os.O_DIRECTORY)
        try:
            for name in os.listdir(folder):
                with contextlib.suppress(FileNotFoundError):
                    states.append(os.stat(name, dir_fd=folder))
        finally:
            os.close(folder)
    return states


def _mappings(pid: int) -> Iterator[bytes]:
    """Yield a process's mappings as in /proc, in chunks that may split lines."""
    with contextlib.suppress(*GONE):
        maps = PROC.open(pid, f"{_where(pid)}maps")
        try:
            while chunk := os.read(maps, 65536):
                yield chunk
        finally:
            os.close(maps)


def kernel_kb(pids: Sequence[int], enough_kb: int) -> int:
    """Return the kernel's KiB for processes: page tables, mappings, and all sockets and pipes as if full.

    Stops counting beyond ``enough_kb``.
    """
    sizes: dict[int, int] = {}
    total, full = 0, socket_kb()
    for pid in pids:
        for opened in _descriptors(pid):
            if stat.S_ISSOCK(opened.st_mode) or stat.S_ISFIFO(opened.st_mode):
                sizes[opened.st_ino] = full if stat.S_ISSOCK(opened.st_mode) else PIPE_KB
        with contextlib.suppress(*GONE, StopIteration):
            lines = _read(pid, f"{_where(pid)}status").splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith(b"VmPTE:"))
        count = 0
        for chunk in _mappings(pid):
            count += chunk.count(b"\n")
            if total + count // MAPPINGS_A_KB > enough_kb:
                break
        total += count // MAPPINGS_A_KB
        if total + sum(sizes.values()) > enough_kb:
            break
    return total + sum(sizes.values())


def nameless_bytes(pids: Sequence[int], folder: str) -> int:
    """Return the bytes of the folder's deleted files that processes have open.

    A file that is mapped but not open cannot be measured, and counts as more than any limit.
    """
    device, blocks = os.stat(folder).st_dev, dict[int, int]()
    for pid in pids:
        for opened in _descriptors(pid):
            if stat.S_ISREG(opened.st_mode) and not opened.st_nlink and opened.st_dev == device:
                blocks[opened.st_ino] = opened.st_blocks
    start, gone = f" {folder}/".encode(), b" (deleted)"
    for pid in pids:
        lines = b"".join(_mappings(pid))
        if gone in lines:
            for line in lines.splitlines():
                hidden = start in line and line.endswith(gone) and int(line.split()[4]) not in blocks
                if hidden and _is_mapped(pid, line):
                    return UNREADABLE
    return 512 * sum(blocks.values())


def _is_mapped(pid: int, line: bytes) -> bool:
    """Return whether a process still has this mapping, and no descriptor of its file."""
    inode = int(line.split()[4])
    return all(opened.st_ino != inode for opened in _descriptors(pid)) and line in b"".join(_mappings(pid))


def _stat(pid: int) -> list[int]:
    """Return a process's number of threads, and its collected children's clock ticks."""
    try:
        words = _read(pid, "stat").rsplit(b")", 1)[1].split()
        return [int(words[17]), int(words[13]) + int(words[14])]
    except GONE:
        return [0, 0]


def waited_s(pid: int) -> float:
    """Return the longest wait of a thread for a CPU, in seconds."""
    longest = 0.0
    try:
        for thread in _threads(pid):
            longest = max(longest, int(_read(pid, f"task/{thread}/schedstat").split()[1]) / 1e9)
    except GONE:
        return longest
    return longest


@contextlib.contextmanager
def ended_or_gone(watched: int, control: int) -> Iterator[Callable[[float | None], bool | None]]:
    """Yield a function that waits until the descriptor ``watched`` is readable; close it at the end.

    It returns True then, False if the judge is gone, None after ``seconds``. A process is readable once it has ended.
    """
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    poll.register(control, 0)

    def wait(seconds: float | None = None) -> bool | None:
        events = dict(poll.poll(None if seconds is None else seconds * 1000))
        return control not in events if events else None

    try:
        yield wait
    finally:
        os.close(watched)


def used(status: int, cpu_s: float, wall_s: float, peak_kb: int, killed: str = "") -> dict[str, Any]:
    """Return an ended program's usage, and the limit that killed it."""
    return {"status": status, "killed": killed, "cpu_s": cpu_s, "wall_s": wall_s, "peak_kb": peak_kb}


class Watch:
    """Watches a program, started ``ago`` seconds before.

    ``base``: bytes in its folder before; ``spare``: the process that starts programs, which does not count.
    """

    def __init__(
        self,
        limits: dict[str, Any],
        outputs: Sequence[int],
        folder: str,
        apart: bool,
        base: int,
        ago: float = 0.0,
        spare: int = 0,
    ) -> None:
        self.limits, self.outputs, self.folder, self.apart, self.base = limits, outputs, folder, apart, base
        self.spare = spare
        self.pid = 0
        self.peak_kb = 0
        PROC.forget()
        self.start = time.monotonic() - ago
        self._first: dict[int, float] = {}
        self._waited: dict[int, float] = {}
        """Seconds of waiting for a CPU by process: of those that had ended when it began, and with its own."""
        self._looks: dict[str, tuple[int, float]] = {}

    def _tree(self) -> list[int]:
        """Return the processes that count, orphans too, which are this process's children."""
        if not self.limits["tree"]:
            return [self.pid]
        return [pid for pid in descendants(os.getpid()) if pid != self.spare]

    def _passed_limit(self) -> str:
        """Return the limit that the program has passed, if any."""
        limits, pids = self.limits, self._tree()
        max_kb = limits["memory_mb"] * 1024
        resident = sum(map(resident_kb, pids))
        kernel = self._throttled("kernel", lambda: self._kernel_kb(pids)) if len(pids) > MAX_LIGHT_PROCESSES else 0
        if resident + kernel > max_kb and len(pids) > 1:
            resident = sum(map(proportional_kb, pids))
        resident += kernel
        self.peak_kb = max(self.peak_kb, resident)
        if resident > max_kb:
            return "memory"
        threads, ended_ticks = map(sum, zip(*map(_stat, pids), strict=True)) if pids else (0, 0)
        if sum(map(cpu_clock, pids)) + limits["tree"] * ended_ticks / TICKS_PER_S > limits["cpu_s"]:
            return "cpu"
        if threads > limits["processes"] + 1:
            return "processes"
        wall = time.monotonic() - self.start
        if limits["tree"] or wall > limits["wall_s"]:
            excused = self._excused(pids)
            if wall - excused > limits["wall_s"]:
                return "wall"
        if wall > HARD_WALL * limits["wall_s"]:
            return "wall"
        if any(os.fstat(output).st_size > limits["output_bytes"] for output in self.outputs):
            return "output"
        written = used_bytes(self.folder, self.apart) - self.base
        if not self.apart:
            written += self._throttled("nameless", lambda: nameless_bytes(pids, self.folder))
        return "files" if written > limits["file_mb"] << 20 else ""

    def _kernel_kb(self, pids: list[int]) -> int:
        return kernel_kb(pids, self.limits["memory_mb"] * 1024 - sum(map(proportional_kb, pids)))

    def _throttled(self, name: str, look: Callable[[], int]) -> int:
        """Return a check's result, or the last one if checking now would take too much time."""
        result, due = self._looks.get(name, (0, 0.0))
        if time.monotonic() >= due:
            began = time.thread_time()
            result = look()
            self._looks[name] = result, time.monotonic() + PAUSE_FACTOR * (time.thread_time() - began)
        return result

    def _excused(self, pids: list[int]) -> float:
        """Return the seconds of waiting for a CPU: the longest sum over successive processes."""
        ended = max((seconds for pid, seconds in self._waited.items() if pid not in pids), default=0.0)
        for pid in pids:
            self._waited[pid] = self._first.setdefault(pid, ended) + waited_s(pid)
        return max(self._waited.values(), default=0.0)

    def _kill(self) -> None:
        for pid in {*self._tree(), self.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def wait(self, pid: int, ended: int, control: int) -> dict[str, Any] | None:
        """Return a program's usage at its end; if the judge is gone, kill it and return None."""
        self.pid, killed = pid, ""
        with ended_or_gone(ended, control) as waited:
            state = waited(max(0.0, self.start + TICK_S - time.monotonic()))
            while state is None:
                if not killed and (killed := self._passed_limit()):
                    self._kill()
                state = waited(TICK_S)
            if not state:
                self._kill()
                return None
        _, status, spent = os.wait4(self.pid, 0)
        wall, peak_kb = time.monotonic() - self.start, max(spent.ru_maxrss, self.peak_kb)
        return used(status, spent.ru_utime + spent.ru_stime, wall, peak_kb, killed)
