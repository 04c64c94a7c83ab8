"""Record times of commands and stages in `DIR/history.jsonl`.

A command without an end line was killed, or still runs. ``at`` is a Unix time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from curation.public_urls import public_text
from curation.records import GoldilocksError
from curation.storage.locks import is_locked
from flows.run.progress import add_line, read_lines
from flows.run.stage import StageResult

FILE = "history.jsonl"
FINISHED, FAILED = "finished", "failed"

_reused: ContextVar[dict[str, int] | None] = ContextVar("reused", default=None)


@contextmanager
def recorded(folder: Path, command: str) -> Iterator[None]:
    """Record a command's begin and end."""
    begun = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    add_line(folder / FILE, {"command": command, "state": "begun"})
    counts = {"reused": 0}
    token = _reused.set(counts)
    try:
        yield
    finally:
        error = sys.exception()
        end = {"state": FINISHED}
        if error is not None:
            kind = "" if isinstance(error, GoldilocksError) else f"{type(error).__name__}: "
            end = {"state": FAILED, "error": public_text(f"{kind}{error}")}
        _reused.reset(token)
        add_line(folder / FILE, {"command": command, **end, "seconds": _since(begun), **counts})


def record_item(folder: Path, name: str, result: StageResult | None, begun: float) -> None:
    """Record a stage's or step's end within `recorded`, and its time since ``begun``."""
    counts = _reused.get()
    if counts is None:
        return
    if result is not None and result.reused:
        counts["reused"] += 1
        return
    rows = {} if result is None else {"in": result.manifest.rows_in, "kept": result.manifest.kept}
    add_line(folder / FILE, {"stage": name, "state": FINISHED, "seconds": _since(begun), **rows})


def last_command(folder: Path) -> str | None:
    """Return a sentence on the last command, or None."""
    lines = last_lines(folder)
    if not lines:
        return None
    stages = [line for line in lines if "stage" in line]
    end = next((line for line in lines if "command" in line and line["state"] != "begun"), None)
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(lines[0]["at"]))
    if end is not None:
        state = f"{end['state']} after {end['seconds']:,.1f} s"
    else:
        state = "still running" if is_locked(folder) else "killed before it ended"
    words = [f"last `{lines[0]['command']}`: begun {began}, {state}"]
    if stages:
        longest = max(stages, key=lambda line: float(line["seconds"]))
        words.append(f"{len(stages)} stages computed, longest {longest['stage']} {longest['seconds']:,.1f} s")
    elif end is not None and end["reused"]:
        words.append(f"all {end['reused']} stages reused")
    if end is not None and "error" in end:
        words.append(end["error"])
    return "; ".join(words)


def stage_seconds(folder: Path) -> dict[str, float]:
    """Return each stage's last wall seconds."""
    return {line["stage"]: line["seconds"] for line in read_lines(folder / FILE) if "stage" in line}


def last_lines(folder: Path) -> list[dict[str, Any]]:
    """Return the last command's lines."""
    lines = read_lines(folder / FILE)
    first = next((at for at in reversed(range(len(lines))) if lines[at]["state"] == "begun"), None)
    return lines[first:] if first is not None else []


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 3)
