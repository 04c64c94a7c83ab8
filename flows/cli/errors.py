"""Reports a command's error in one sentence, with a status other than 0.

An unexpected error's trace is written to a log in the user's cache folder; ``--debug`` prints all traces.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from curation.errors import GoldilocksError
from curation.public_urls import public_text
from flows.run.safe_text import written_out

INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses after Ctrl-C and SIGTERM."""

debug = False
"""Whether errors print their traces; set by the command line."""

training: Path | None = None
"""The folder of the training run that a command works on, for messages about ``--resume``."""


def _again() -> str:
    if training is not None and (training / "run.json").exists():
        return f"go on with `goldilocks train --resume {training}`"
    return "run the same command again to go on"


def cache_folder() -> Path:
    """Return our folder in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks"


def ended(command: Callable[[], object]) -> int:
    """Run a command, print its error, and return its exit status."""
    global training
    before, training = signal.signal(signal.SIGTERM, _terminated), None
    try:
        command()
    except SystemExit as end:
        if end.code in (INTERRUPTED, TERMINATED):  # typer ends an interrupted command so
            cause = "interrupted" if end.code == INTERRUPTED else "ended by SIGTERM"
            return _report(f"{cause}; {_again()}.", end.code)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return _report(f"interrupted; {_again()}.", INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the boundary: a trace is for us, a sentence for the user
        return failed(error)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _terminated(_number: int, _frame: FrameType | None) -> None:
    if os.getpid() != _process:  # a fork that has the handler with it: it ends as it would have
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        return
    raise SystemExit(TERMINATED)


_process = os.getpid()


def _report(sentence: str, status: int) -> int:
    print(f"goldilocks: {written_out(public_text(sentence))}", file=sys.stderr)
    return status


def failed(error: Exception) -> int:
    """Print an error, and return its exit status."""
    if debug:
        print(_trace_text(error), end="", file=sys.stderr)
    return _report(_sentence(error), 1)


def _trace_text(error: BaseException) -> str:
    return public_text("".join(traceback.format_exception(error)))


def _sentence(error: Exception) -> str:
    if isinstance(error, GoldilocksError):
        return str(error)
    from curation.storage.stages import system_error

    found = error if isinstance(error, OSError) and error.errno else system_error(error)
    if found is None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split()) or "no message"
        return (
            f"unexpected error in {Path(frame.filename).name} line {frame.lineno}: "
            f"{type(error).__name__}: {text}. {_logged(error)}"
        )
    place, reason = found.filename or "a file", found.strerror or str(found)
    parents = Path(str(place)).absolute().parents
    if found.errno != errno.ENOENT and not parents[0].exists():  # a temporary folder is gone by now
        place = next(path for path in parents if path.exists())
    if found.errno in (errno.ENOSPC, errno.EDQUOT):
        at = f" ({place})" if found.filename else ""
        return f"the disk is full{at}; make room, and {_again()}."
    if found.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{place} cannot be read or written ({reason}); fix its permissions, or give another folder."
    return f"{place}: {reason}; {_again()}. {_logged(error)}"


def _logged(error: Exception) -> str:
    if debug:
        return "The trace is above."
    log = cache_folder() / "errors.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as out:
            words = public_text(" ".join(sys.argv))
            out.write(f"\n{time.strftime('%Y-%m-%d %H:%M:%S')} {words}\n{_trace_text(error)}")
    except OSError:
        return "`--debug` prints its trace."
    return f"Its trace is in {log}; `--debug` prints it."
