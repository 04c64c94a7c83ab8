"""The test suite in lanes: `make test`, with `--all` `make test-all`.

Without `--all`, tests marked `slow` are left out: those that take over three seconds, alone or by their fixture, except
one of each flow. `ROOMS` is ordered by measured time, longest first; each free lane takes the next room. Tests
that share an expensive fixture (a Prefect server, a finished run, an engine's models) are in one room, and so are all
engines, as tests of training look at `/dev/shm`. Arguments go to pytest, and a `-m` among them replaces the choice made
here; if they name a file or a folder, pytest runs as it always does, slow tests and all.

Tests wait a quarter of their time, so there are two lanes more than cores, up to `MAX_LANES`; with `--all` one more,
since slow tests watch times. Polars, numpy's BLAS and torch get one thread per process: their threads wait by spinning.

Invariants: every test module is in exactly one room, and the status is that of the worst room.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from tests.places import ROOT

MAX_LANES = 4
ROOMS = (
    ("tests/training", "tests/curation/policies"),
    ("tests/curation/verify",),
    ("tests/flows",),
    ("tests",),
    ("tests/flows/pipelines", "tests/flows/publish", "tests/flows/stages"),
    (
        "tests/flows/page",
        "tests/flows/serve",
        "tests/flows/cli/test_cli.py",
        "tests/flows/pipelines/test_verl_loop.py",
        "tests/flows/run/test_new_stage.py",
        "tests/flows/test_flow_modules.py",
    ),
)
"""Folders and modules of each room; a module belongs to the room that names it, or the deepest folder above it."""

THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
ANSWERED = {"-h", "--help", "-V", "--version", "--markers", "--fixtures"}
"""What pytest answers without a test, and the same for every room."""

ALL = "--all"
QUICK = ("-m", "not slow")

NO_TESTS = 5
"""Pytest's status if no test was picked."""

WORDS = ("failed", "error", "passed", "skipped", "deselected", "xfailed", "xpassed", "warning")
COUNTS = re.compile(rf"(\d+) ({'|'.join(WORDS)})s?\b")


def rooms() -> list[tuple[str, list[str]]]:
    made: dict[tuple[str, ...], list[str]] = {folders: [] for folders in ROOMS}
    room_of = {folder: folders for folders in ROOMS for folder in folders}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        above = (str(place.relative_to(ROOT)) for place in (path, *path.parents))
        made[next(room_of[folder] for folder in above if folder in room_of)].append(str(path.relative_to(ROOT)))
    return [(folders[0], modules) for folders, modules in made.items() if modules]


class Room:
    """A pytest process; its progress is shown at once, its report as a whole when it has ended."""

    lock = threading.Lock()

    def __init__(self, name: str, modules: Sequence[str], flags: Sequence[str]) -> None:
        self.command = [sys.executable, "-m", "pytest", *flags, *modules]
        self.name = name
        self.status = 0
        self.counts: Counter[str] = Counter()

    def run(self) -> None:
        begun, report = time.monotonic(), []
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        environment = {**THREADS, **os.environ}
        process = subprocess.Popen(self.command, cwd=ROOT, env=environment, text=True, **pipes)
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                if report or (line.startswith("===") and "test session starts" not in line):
                    report.append(line)
                else:
                    self.show(line)
                if found := COUNTS.findall(line):
                    self.counts = Counter({word: int(number) for number, word in found})
        _, ended, used = os.wait4(process.pid, 0)
        self.status = process.returncode = os.waitstatus_to_exitcode(ended)
        cpu_s = used.ru_utime + used.ru_stime
        took = f"{time.monotonic() - begun:.0f} s, {cpu_s:.0f} CPU s, status {self.status}"
        self.show("".join([f"\n-- {self.name}: {took}\n", *report]))

    def show(self, text: str) -> None:
        """Write whole lines, one room at a time."""
        with self.lock:
            sys.stdout.write(text)
            sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    flags = [argument for argument in arguments if argument != ALL]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if ANSWERED & {*flags} or any((ROOT / flag.partition("::")[0]).exists() for flag in flags if flag[:1] != "-"):
        return subprocess.run([sys.executable, "-m", "pytest", *flags], cwd=ROOT).returncode
    flags = flags if ALL in arguments else [*QUICK, *flags]
    if cores < 2:
        return subprocess.run([sys.executable, "-m", "pytest", *flags], cwd=ROOT).returncode
    begun = time.monotonic()
    all_rooms = [Room(name, modules, flags) for name, modules in rooms()]
    number = min(cores + (1 if ALL in arguments else 2), MAX_LANES)
    lanes, interrupted = ThreadPoolExecutor(number), False
    running = [lanes.submit(room.run) for room in all_rooms]
    try:
        wait(running)
    except KeyboardInterrupt:  # pytest is interrupted too, and says how far it came
        interrupted = True
        lanes.shutdown(cancel_futures=True)
    for done in running:
        if not done.cancelled():
            done.result()
    total: Counter[str] = Counter()
    for room in all_rooms:
        total += room.counts
    counts = ", ".join(f"{total[word]} {word}" for word in WORDS if total[word])
    print(f"\n== {counts or 'no tests'} in {time.monotonic() - begun:.0f} s", flush=True)
    statuses = [room.status for room in all_rooms]
    if interrupted:
        return 130
    return NO_TESTS if set(statuses) == {NO_TESTS} else max((s & 255 for s in statuses if s != NO_TESTS), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
