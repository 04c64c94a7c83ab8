"""Builds and caches `inside/start.c`, which starts programs.

Invariant: the loaded library was built from this source, and no other user could change it.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from curation.records import VerifierError

SOURCE = Path(__file__).parent / "inside" / "start.c"
COMPILERS = ("cc", "gcc", "g++", "clang")
FLAGS = ("-x", "c", "-std=gnu11", "-O2", "-shared", "-fPIC", "-Wall")
COMPILE_S = 60.0


def cache_folder() -> Path:
    """Return the user's cache folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "goldilocks"


def build_library() -> Path:
    """Return the library's path, compiled if missing. Raises `VerifierError`."""
    text = SOURCE.read_bytes()
    digest = hashlib.sha256(repr((text, FLAGS, platform.machine())).encode()).hexdigest()
    library = cache_folder() / "start" / f"{digest[:16]}.so"
    try:
        if not library.is_file():
            _compile(text, library)
        for path in (library, library.parent):
            state = path.stat()
            if state.st_uid != os.geteuid() or state.st_mode & 0o022:
                raise VerifierError(f"{path} is another user's, or could be changed by others; remove it")
        ctypes.CDLL(str(library))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VerifierError(f"{library}, which starts programs, cannot be made or loaded: {error}") from error
    return library


def _compile(text: bytes, target: Path) -> None:
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise VerifierError("no C compiler is installed, which the sandbox needs; install gcc or clang")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.parent.chmod(0o700)
    temporary = target.with_name(f"{target.name}.{os.getpid()}")
    command = [compiler, *FLAGS, "-o", str(temporary), "-"]
    completed = subprocess.run(command, input=text, capture_output=True, timeout=COMPILE_S, check=False)
    if completed.returncode:
        raise VerifierError(f"{compiler} fails: {completed.stderr.decode(errors='replace').strip()[:200]}")
    temporary.chmod(0o755)
    temporary.replace(target)
