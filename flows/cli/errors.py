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
from typing import Any

from typer.core import TyperGroup

from curation.errors import GoldilocksError
from curation.public_urls import public_text
from flows.run.safe_text import written_out

INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses after Ctrl-C and SIGTERM."""

FULL = {errno.ENOSPC, errno.EDQUOT}
AGAIN = "run the same command again to go on"

_debug = False
_training: Path | None = None


def resumes(folder: Path) -> None:
    """Note the training folder, for messages about ``--resume``."""
    global _training
    _training = folder


def _again() -> str:
    if _training is not None and (_training / "run.json").exists():
        return f"go on with `goldilocks train --resume {_training}`"
    return AGAIN


def print_traces(debug: bool) -> None:
    """Print errors' traces from now on, or not."""
    global _debug
    _debug = debug


def cache_folder() -> Path:
    """Return our folder in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks"


def ended(command: Callable[[], object]) -> int:
    """Run a command, print its error, and return its exit status."""
    global _training
    before, _training = signal.signal(signal.SIGTERM, _terminated), None
    try:
        command()
    except SystemExit as end:
        return _status(end)
    except KeyboardInterrupt:
        return _say(f"interrupted; {_again()}.", INTERRUPTED)
    except GoldilocksError as error:
        _trace(error)
        return _say(str(error), 1)
    except Exception as error:  # noqa: BLE001 - the boundary: a trace is for us, a sentence for the user
        return _say(_sentence(error), 1)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


class Commands(TyperGroup):
    """All commands, with errors instead of click's "Aborted!"."""

    def invoke(self, ctx: Any) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise SystemExit(_say(_unexpected(error), 1)) from error


def _terminated(_number: int, _frame: FrameType | None) -> None:
    if os.getpid() != _process:  # a fork that has the handler with it: it ends as it would have
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        return
    raise SystemExit(TERMINATED)


_process = os.getpid()


def _status(end: SystemExit) -> int:
    if end.code == INTERRUPTED:  # typer ends an interrupted command so
        return _say(f"interrupted; {_again()}.", INTERRUPTED)
    if end.code == TERMINATED:
        return _say(f"ended by SIGTERM; {_again()}.", TERMINATED)
    return end.code if isinstance(end.code, int) else int(end.code is not None)


def _say(sentence: str, status: int) -> int:
    print(f"goldilocks: {written_out(public_text(sentence))}", file=sys.stderr)
    return status


def _trace(error: BaseException) -> None:
    if _debug:
        print(_trace_text(error), end="", file=sys.stderr)


def _trace_text(error: BaseException) -> str:
    return public_text("".join(traceback.format_exception(error)))


def _sentence(error: Exception) -> str:
    from curation.storage.stages import system_error

    found = error if isinstance(error, OSError) and error.errno else system_error(error)
    return _unexpected(error) if found is None else _system_sentence(found, error)


def _system_sentence(error: OSError, cause: Exception) -> str:
    _trace(cause)
    place, reason = error.filename or "a file", error.strerror or str(error)
    parents = Path(str(place)).absolute().parents
    if error.errno != errno.ENOENT and not parents[0].exists():  # a temporary folder is gone by now
        place = next(path for path in parents if path.exists())
    if error.errno in FULL:
        at = f" ({place})" if error.filename else ""
        return f"the disk is full{at}; make room, and {_again()}."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{place} cannot be read or written ({reason}); mend its rights, or give another folder."
    return f"{place}: {reason}; {_again()}. {_logged(cause)}"


def _unexpected(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split()) or "no message"
    return (
        f"an error that should not be, in {Path(frame.filename).name} line {frame.lineno}: "
        f"{type(error).__name__}: {text}. {_logged(error)}"
    )


def _logged(error: Exception) -> str:
    if _debug:
        _trace(error)
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
