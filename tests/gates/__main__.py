"""Run gates and print their table.

    python -m tests.gates                      the quick ones, as in CI; `--quick` is the same
    python -m tests.gates --room verify        all of a room that do not take hours; may be given several times
    python -m tests.gates --all                every one; takes hours
    python -m tests.gates verify/near-misses   by name, whatever the tier
    python -m tests.gates --list               names, rooms, tiers and limits, nothing is measured

Two rooms run at a time, each in a process of its own. The exit status is 1 if a gate fails or is stale.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.gates.base import GATES, Gate, Row, Status, read_rows, register_tests, run, write_rows
from tests.places import ROOT

LANES = 2
TIERS = ("quick", "room", "all")
ROOMS = "counts difficulty exports filters flows made_tests programs training translations verify".split()


def rooms(only: Iterable[str] = ()) -> None:
    """Register the gates of these rooms, or of all."""
    for room in ROOMS:
        if room in (set(only) or ROOMS):
            importlib.import_module(f"tests.gates.{room}")
            register_tests(room)


def chosen(parsed: argparse.Namespace) -> list[Gate]:
    """Return the gates that the command line names."""
    rooms(parsed.room if not parsed.names else [name.partition("/")[0] for name in parsed.names])
    if unknown := [name for name in parsed.names if name not in GATES]:
        sys.exit(f"{', '.join(unknown)}: no such gate; --list prints them")
    if unknown := [room for room in parsed.room if room not in ROOMS]:
        sys.exit(f"{', '.join(unknown)}: no such room; they are {', '.join(ROOMS)}")
    if parsed.names:
        return [GATES[name] for name in parsed.names]
    if parsed.room:
        return [one for one in GATES.values() if one.room in parsed.room and one.tier != "all"]
    return [one for one in GATES.values() if parsed.all or one.tier == "quick"]


def run_room(gates: list[Gate], file: Path) -> list[Row]:
    """Measure gates of one room in a process of their own."""
    command = [sys.executable, "-m", "tests.gates", "--rows", str(file), *(one.name for one in gates)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    rows = {row.name: row for row in read_rows(file)}
    note = f"its process ended with status {done.returncode}"
    return [rows.get(one.name) or Row(one.name, one.room, "", "", str(one.limit), "fails", note, 0.0) for one in gates]


def run_all(gates: list[Gate]) -> list[Row]:
    """Measure gates, two rooms at a time; rows come back in the order of the gates."""
    by_room = [[one for one in gates if one.room == room] for room in dict.fromkeys(one.room for one in gates)]
    with TemporaryDirectory() as folder, ThreadPoolExecutor(LANES) as lanes:
        files = [Path(folder) / f"{some[0].room}.jsonl" for some in by_room]
        rows = {row.name: row for some in lanes.map(run_room, by_room, files) for row in some}
    return [rows[one.name] for one in gates]


def table(rows: list[Row]) -> str:
    """Return rows as aligned columns, notes under their row."""
    cells = [("gate", "value", "95 %", "must hold", "", "s")]
    cells += [(r.name, r.value, r.interval, r.limit, r.status, f"{r.seconds:.0f}") for r in rows]
    widths = [max(len(cell[at]) for cell in cells) for at in range(6)]
    lines = []
    for cell, row in zip(cells, [None, *rows], strict=True):
        lines.append("  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip())
        if row is not None and row.note:
            lines.append(f"    {row.note}")
    return "\n".join(lines)


def main() -> int:
    """Return the status for the shell."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gates", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="the quick ones (the default)")
    parser.add_argument("--all", action="store_true", help="every one")
    parser.add_argument("--room", action="append", default=[], metavar="ROOM")
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there too, a JSON line a gate")
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    gates = chosen(parsed)
    if parsed.list:
        for one in GATES.values():
            print(f"{one.name:44} {one.tier:6} {one.limit}" + (f"  (until {one.until})" if one.until else ""))
        return 0
    if parsed.rows:
        for one in gates:
            write_rows([run(one)], parsed.rows)
        return 0
    started = time.monotonic()
    rows = run_all(gates)
    print(table(rows))
    if parsed.json:
        parsed.json.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows), encoding="utf-8")
    counts: Counter[Status] = Counter(row.status for row in rows)
    summary = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    print(f"\n{len(rows)} gates: {summary}, in {time.monotonic() - started:.0f} s")
    return 1 if counts["fails"] or counts["stale"] else 0


if __name__ == "__main__":
    sys.exit(main())
