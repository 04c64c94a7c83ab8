"""`goldilocks status`: prints how far a run is, from the user's cache while no file of the run has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from curation.storage.locks import is_locked
from flows.cli.as_json import print_json
from flows.cli.errors import cache_folder
from flows.run.safe_text import written_out

_TITLES = ["stage", "in", "kept", "dropped", "kept %", "why dropped"]
_ROOM = 30
"""Min columns for the reasons."""


def show_status(folder: Path, *, as_json: bool = False) -> None:
    """Print a run's funnel so far, or a training run's progress."""
    table = read_status(folder)
    if as_json:
        print_json(table)
        return
    for line in (*_funnel_lines(table), *table["lines"]):
        typer.echo(written_out(line))


def read_status(folder: Path) -> dict[str, Any]:
    """Return the run's `status_table`, whose modules are imported only if it must be made again."""
    folder = folder.absolute()
    state, stored = _state_of(folder), Path(os.devnull) / "status"
    with suppress(RuntimeError):  # a user without a home
        stored = cache_folder() / "status" / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(stored.read_bytes())
        if known["state"] == state:
            return dict(known["table"])
    from flows.pipelines.run_tables import status_table

    table = status_table(folder)
    with suppress(OSError):
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(json.dumps({"state": state, "table": table}, default=str), encoding="utf-8")
    return table


def _state_of(folder: Path) -> str:
    """Return a hash of names, sizes and times of our code, of the user's next to the recipe, and of all files there."""
    is_working = False
    with suppress(OSError):  # no folder, or not ours to lock
        is_working = is_locked(folder)
    code = Path(__file__).parents[2]
    paths = [path for room in ("curation", "training", "flows") for path in (code / room).rglob("*.py")]
    with suppress(OSError, ValueError, KeyError, TypeError):
        paths += Path(json.loads((folder / "run.json").read_bytes())["recipe_folder"]).glob("*.py")
    paths += [Path(place, name) for place, _, names in os.walk(folder) for name in names if name != ".lock"]
    state = hashlib.sha256(str(is_working).encode())
    for path in sorted(paths):
        with suppress(OSError):  # a run that works there removes files
            about = path.lstat()
            state.update(os.fsencode(f"{path}\0{about.st_size} {about.st_mtime_ns} "))
    return state.hexdigest()


def _funnel_lines(table: dict[str, Any]) -> Iterator[str]:
    """Yield the funnel, with the reasons folded in the last column (rich would take longer to import than to print)."""
    if "stages" not in table:
        return
    rows = [_TITLES, *(_cells(stage) for stage in table["stages"] if stage["shown"])]
    *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    room = max(shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths), _ROOM)
    yield f"{table['recipe']}: {table['folder']}"
    for title, *numbers, why in rows:
        start = "  ".join([title.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])])
        first, *further = textwrap.wrap(why, room) or [""]
        yield f"{start}  {first}".rstrip()
        yield from (" " * (len(start) + 2) + line for line in further)


def _cells(stage: dict[str, Any]) -> list[str]:
    if not stage["finished"] and not stage["shards"]:
        return [stage["title"], "", "", "", "", "not begun"]
    reasons = ", ".join(f"{name} {count:,}" for name, count in sorted(stage["reasons"].items(), key=lambda r: -r[1]))
    if not stage["finished"]:
        out_of = f" of {stage['shards_in_all']}" if stage["shards_in_all"] is not None else ""
        reasons = f"[so far: {stage['shards']}{out_of} shards] {reasons}"
    share = f"{100 * stage['kept'] / stage['in']:.1f}" if stage["in"] else ""
    return [stage["title"], *(f"{stage[name]:,}" for name in ("in", "kept", "dropped")), share, reasons]
