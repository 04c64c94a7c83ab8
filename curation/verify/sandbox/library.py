"""The compiled half of the sandbox: `inside/start.c`, made once with this machine's own C compiler, kept in the cache.

Invariants: what is loaded was made from this very source, and no other user could have changed it; where it cannot be
had, programs are started by Python, more slowly and by the same system calls, and the reason is told.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).parent / "inside" / "start.c"
COMPILERS = ("cc", "gcc", "g++", "clang")
FLAGS = ("-x", "c", "-std=gnu11", "-O2", "-shared", "-fPIC", "-Wall")
COMPILE_S = 60.0
MIN_LINUX = (5, 9)
"""It has close_range(2), for which Python knows a slower way."""


class LibraryUnavailable(Exception):
    """Why programs are started by Python."""


def cache_folder() -> Path:
    """Return the user's cache, for what is dear to make."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "goldilocks"


def build_library() -> Path:
    """Return the library, compiled now if it is not there yet. Raises `LibraryUnavailable`."""
    release = tuple(int(word) for word in platform.release().split("-")[0].split(".")[:2])
    if release < MIN_LINUX:
        raise LibraryUnavailable(f"Linux is older than {'.'.join(map(str, MIN_LINUX))}")
    text = SOURCE.read_bytes()
    digest = hashlib.sha256(repr((text, FLAGS, platform.machine())).encode()).hexdigest()
    made = cache_folder() / "start" / f"{digest[:16]}.so"
    try:
        if not made.is_file():
            _compile(text, made)
        for path in (made, made.parent):
            state = path.stat()
            if state.st_uid != os.geteuid() or state.st_mode & 0o022:
                raise LibraryUnavailable(f"{path} is another user's, or could be changed by others")
        ctypes.CDLL(str(made))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LibraryUnavailable(f"{made} cannot be made or loaded: {error}") from error
    return made


def _compile(text: bytes, made: Path) -> None:
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise LibraryUnavailable("no C compiler is installed")
    made.parent.mkdir(parents=True, exist_ok=True)
    made.parent.chmod(0o700)
    aside = made.with_name(f"{made.name}.{os.getpid()}")
    command = [compiler, *FLAGS, "-o", str(aside), "-"]
    done = subprocess.run(command, input=text, capture_output=True, timeout=COMPILE_S, check=False)
    if done.returncode:
        raise LibraryUnavailable(f"{compiler} fails: {done.stderr.decode(errors='replace').strip()[:200]}")
    aside.chmod(0o755)
    aside.replace(made)
